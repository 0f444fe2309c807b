"""Passphrases of keys, asked for on a terminal; in scripts they come from the environment."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path

from npukit.boot.keys import PASSPHRASE_VARIABLE
from npukit.errors import NpukitError


def asked_passphrase(key: Path) -> str:
    """The passphrase of a key, if there is a terminal to ask on."""
    return getpass(f"passphrase of {key}: ") if sys.stdin.isatty() else ""


def new_passphrase(key: Path) -> str:
    """A passphrase for a key to be: from the environment, or asked for twice."""
    given = os.environ.get(PASSPHRASE_VARIABLE) or asked_passphrase(key)
    if not given:
        raise NpukitError(
            "there is no passphrase to encrypt with", tries=[f"{PASSPHRASE_VARIABLE}=... in the environment"]
        )
    if not os.environ.get(PASSPHRASE_VARIABLE) and getpass("again: ") != given:
        raise NpukitError("the two passphrases differ")
    return given
