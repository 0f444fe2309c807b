"""The emulators that this machine has, of those that a board runs on."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from npukit.host.programs import find_program

if TYPE_CHECKING:
    from npukit.board.board import Board

INSTALL = "pip install ./kit/npukit_emulator, in the folder of npukit's sources"
"""The way to the built-in emulator, which no package index has."""


def is_here(name: str, board: Board) -> bool:
    """True if this machine has an emulator that can be the board."""
    if name == "emulator":
        return find_spec("npukit_emulator") is not None
    programs = {"qemu": board.core.type.architecture.qemu, "renode": "renode"}
    return name in programs and find_program(programs[name]) is not None


def usual(board: Board) -> str:
    """The target of builds of a board unless told otherwise: the first emulator of its board file that is here."""
    return next((name for name in board.runs_on if is_here(name, board)), board.runs_on[0])
