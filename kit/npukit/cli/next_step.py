"""The command to type after a build, by the tools of this machine and the targets of the board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from npukit.emulator.here import is_here

if TYPE_CHECKING:
    from npukit.board.board import Board


def next_step(folder: Path, board: Board, only_on_hardware: str | None = None) -> str:
    """Validate on an installed emulator, else on the board; without either, how to get one. `only_on_hardware`: an
    accelerator without an emulator."""
    if only_on_hardware:
        why = f"no emulator has {only_on_hardware}, so that only hardware can validate this"
        return f"npukit export {folder} -o LIBRARY, or npukit flash {folder}: {why}"
    if any(is_here(name, board) for name in board.runs_on):
        return f"npukit validate {folder}"
    if "serial" not in board.runs_on:
        return "npukit doctor, which says how to get an emulator of this board"
    from npukit.link.transports import plugged_in

    if plugged_in():
        return f"npukit flash {folder}, then npukit validate {folder} --on serial"
    return f"plug the board in, then npukit flash {folder}"
