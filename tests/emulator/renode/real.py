"""The real Renode, if installed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from npukit.emulator.renode.machine import find_renode
from npukit.errors import NpukitError


def program(name: str) -> Path:
    """Path of a program of Renode. Skips the test if it is not installed."""
    try:
        return find_renode(name)
    except NpukitError as error:
        pytest.skip(f"{error.message}: nothing runs on the real Renode")


def renode_test(suite: Path, results: Path) -> tuple[int, str]:
    """Exit status and output of `renode-test`."""
    command = [program("renode-test"), "-r", results, suite]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=results)
    return done.returncode, done.stdout


def monitor(commands: Sequence[str], folder: Path) -> str:
    """Output of Renode's Monitor for these commands."""
    script = folder / "commands.resc"
    script.write_text("\n".join([*commands, "quit"]))
    command = [program("renode"), "--console", "--plain", "--disable-xwt", "-e", f"include @{script}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        return process.stdout.read()
