"""The command to type after a build: on what this machine has of all that the board runs on."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npukit.board.board import Board


def next_step(folder: Path, board: Board, only_on_hardware: str | None = None) -> str:
    """Validate on the first emulator that is here, else on the board; without either, what to get.

    `only_on_hardware`: an accelerator that no emulator has.
    """
    if only_on_hardware:
        why = f"no emulator has {only_on_hardware}, so that only hardware can validate this"
        return f"npukit export {folder} -o LIBRARY, or npukit flash {folder}: {why}"
    for number, name in enumerate(board.runs_on):
        if _is_here(name, board):
            return f"npukit validate {folder}{f' --on {name}' if number else ''}"
    if "serial" not in board.runs_on:
        return "npukit doctor, which says how to get an emulator of this board"
    if _ports():
        return f"npukit flash {folder}, then npukit validate {folder} --on serial"
    return f"plug the board in, then npukit flash {folder}"


def _is_here(name: str, board: Board) -> bool:
    if name == "emulator":
        return find_spec("npukit_emulator") is not None
    programs = {"qemu": board.core.type.architecture.qemu, "renode": "renode"}
    return name in programs and shutil.which(programs[name]) is not None


def _ports() -> list[str]:
    from npukit.link.transports import plugged_in

    return plugged_in()
