"""Passphrases of keys, entered on a terminal; in scripts, from the environment."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path

from npukit.boot.keys import PASSPHRASE_VARIABLE
from npukit.errors import NpukitError


def asked_passphrase(key: Path) -> str:
    """The passphrase of a key, entered on the terminal; empty without a terminal."""
    return getpass(f"passphrase of {key}: ") if sys.stdin.isatty() else ""


def new_passphrase(key: Path) -> str:
    """A passphrase for a new key: from the environment, or entered twice."""
    given = os.environ.get(PASSPHRASE_VARIABLE) or asked_passphrase(key)
    if not given:
        raise NpukitError(
            "there is no passphrase to encrypt with", tries=[f"{PASSPHRASE_VARIABLE}=... in the environment"]
        )
    if not os.environ.get(PASSPHRASE_VARIABLE) and getpass("again: ") != given:
        raise NpukitError("the two passphrases differ")
    return given
