"""`npukit boards`: the boards that ship with npukit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal
from npukit.display import KB

if TYPE_CHECKING:
    from npukit.board.board import Board


@verb()
def boards(terminal: Terminal) -> None:
    """List the boards npukit knows."""
    from npukit.board.board import known_boards

    known = list(known_boards())
    terminal.result([_facts(board) for board in known])
    headings = ("board", ">PEs", "memory a PE", ">clock", "accelerators", "runs on")
    terminal.table(headings, [_row(board) for board in known])


def _facts(board: Board) -> dict[str, Any]:
    facts = board.model_dump(mode="json", include={"name", "summary", "runs_on", "memory", "mesh"})
    return facts | {
        "pes": board.pe_count,
        "clock_hz": board.core.clock_hz,
        "accelerators": [slot.name for slot in board.accelerator],
    }


def _row(board: Board) -> tuple[str, ...]:
    memory = ", ".join(f"{each.name} {each.size // KB} KB" for each in board.memory)
    accelerators = ", ".join(slot.name for slot in board.accelerator) or "none"
    clock = f"{board.core.clock_hz / 1e6:g} MHz"
    return board.name, str(board.pe_count), memory, clock, accelerators, ", ".join(board.runs_on)
