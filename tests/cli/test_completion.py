"""Completion of command lines by real shells, after npukit has installed its completion."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from select import select

import pytest

from helpers import CHECKOUT

SECONDS = 30
BY_KEYS = ("bash", "zsh")


def needs(shell: str) -> object:
    return pytest.param(shell, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not here"))


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with only npukit installed."""
    command = tmp_path / "npukit"
    command.write_text(f"#!{sys.executable}\nfrom npukit.cli.main import run\nrun()\n")
    command.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    return {"HOME": str(tmp_path), "PATH": path, "PYTHONPATH": str(CHECKOUT / "kit"), "TERM": "dumb"}


@pytest.mark.parametrize("shell", [needs(each) for each in (*BY_KEYS, "fish")])
def test_the_only_board_of_that_name_is_completed(shell: str, home: dict[str, str]) -> None:
    install = [shell, "-c", "npukit --install-completion; true"]
    subprocess.run(install, env=home, cwd=home["HOME"], check=True, capture_output=True)
    line = "npukit build --board stm"
    if shell in BY_KEYS:
        assert "stm32f4-disco" in shown(shell, line, home)
    else:
        asked = subprocess.run([shell, "-c", f"complete -C '{line}'"], env=home, check=True, capture_output=True)
        assert asked.stdout == b"stm32f4-disco\n"


def shown(shell: str, line: str, home: dict[str, str]) -> str:
    """Screen text of an interactive shell after a line and Tab. zsh needs Tab twice: the first loads the completion."""
    ours, theirs = os.openpty()
    process = subprocess.Popen([shell, "-i"], stdin=theirs, stdout=theirs, stderr=theirs, env=home, cwd=home["HOME"])
    try:
        return typed(ours, line)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def typed(terminal: int, line: str) -> str:
    answer, until = b"", time.monotonic() + SECONDS
    os.write(terminal, line.encode())
    while time.monotonic() < until and b"32f4-disco" not in answer:
        if line[-3:].encode() in answer:
            os.write(terminal, b"\t")
        while select([terminal], [], [], 1)[0] and b"32f4-disco" not in answer:
            answer += os.read(terminal, 4096)
    return answer.decode(errors="replace").replace("\a", "").replace("\b", "")
