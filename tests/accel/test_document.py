"""docs/accelerators.md: every command on the page works, in the page's order."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit.emulator.rtl import VERILATOR
from npukit.host.programs import find_program

DOCUMENT = CHECKOUT / "docs/accelerators.md"
PROGRAMS = {
    "npukit": [sys.executable, "-c", "from npukit.cli.main import run; run()"],
    "python": [sys.executable],
    "pip": [sys.executable, "-m", "pip", "--quiet"],
}


def commands() -> list[list[str]]:
    text = DOCUMENT.read_text()
    return [line.split() for line in re.findall(r"(?m)^    ((?:npukit|python|pip|cd) .*)$", text)]


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(CHECKOUT / "kit"), *sys.path))}
    if words[0] == "pip":
        words = [*words, "--target", str(folder / "site"), "--no-deps", "--no-build-isolation"]
    command = [*PROGRAMS[words[0]], *words[1:]]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.exhaustive
def test_every_command_works_in_its_order(tmp_path: Path) -> None:
    assert {words[0] for words in commands()} == {"npukit", "python", "pip", "cd"}
    assert sum("rtl" in words for words in commands()) == 3
    folder = tmp_path
    for words in commands():
        if words[0] == "cd":
            folder /= words[1]
            continue
        if words[0] == "pip" and importlib.util.find_spec("hatchling") is None:
            continue
        if "rtl" in words and find_program(VERILATOR) is None:
            continue
        done = run(words, folder)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def test_every_file_it_names_is_there() -> None:
    named = re.findall(r"`((?:kit|examples)/[\w/.]+)`", DOCUMENT.read_text())
    assert len(named) >= 4
    for name in named:
        assert (CHECKOUT / name).exists(), name
