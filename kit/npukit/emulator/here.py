"""Installed emulators for a board."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from npukit.host.programs import find_program

if TYPE_CHECKING:
    from npukit.board.board import Board

INSTALL = "pip install ./kit/npukit_emulator, in the folder of npukit's sources"
"""Installation of the built-in emulator, which no package index has."""


def is_here(name: str, board: Board) -> bool:
    """True if the emulator is installed and can run the board."""
    if name == "emulator":
        return find_spec("npukit_emulator") is not None
    programs = {"qemu": board.core.type.architecture.qemu, "renode": "renode"}
    return name in programs and find_program(programs[name]) is not None


def usual(board: Board) -> str:
    """Default target of a board's builds: the first installed emulator in the board file."""
    return next((name for name in board.runs_on if is_here(name, board)), board.runs_on[0])
