"""`npukit boards`: the boards shipped with npukit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal
from npukit.display import KB

if TYPE_CHECKING:
    from npukit.board.board import Board


MEMORY = "memory of a PE"


@verb(tables=True)
def boards(
    terminal: Terminal,
    file: Annotated[
        str | None, typer.Argument(metavar="[BOARD]", rich_help_panel="Target", help="Check this board or board file.")
    ] = None,
) -> None:
    """List the boards that npukit knows, or check one: its file, and the functions that its C must define."""
    from npukit.board.board import known_boards, load_board

    known = [load_board(file)] if file else list(known_boards())
    terminal.result([_facts(board) for board in known])
    headings = ("board", ">PEs", ">clock", ">RAM a PE", MEMORY, "accelerator", "runs on")
    terminal.table(headings, [_row(board) for board in known], [each for each in headings if each != MEMORY])
    if file:
        _check(known[0])


def _facts(board: Board) -> dict[str, Any]:
    facts = board.model_dump(mode="json", include={"name", "summary", "runs_on", "memory", "mesh"})
    return facts | {
        "pes": board.pe_count,
        "core": board.core.cpu,
        "clock_hz": board.core.clock_hz,
        "accelerators": [slot.name for slot in board.accelerator],
    }


def _row(board: Board) -> tuple[str, ...]:
    memory = ", ".join(f"{each.name} {each.size // KB} KB" for each in board.memory)
    ram = f"{board.memory_for('activations').size // KB} KB"
    accelerators = ", ".join(slot.name for slot in board.accelerator)
    clock = f"{board.core.clock_hz / 1e6:g} MHz"
    return board.name, str(board.pe_count), clock, ram, memory, accelerators, ", ".join(board.runs_on)


def _check(board: Board) -> None:
    """Raise an error that names the functions missing in the board's C."""
    from npukit.errors import NpukitError
    from npukit.project.hal import hal_source, missing_functions
    from npukit.project.toolchain import find_toolchain

    missing, source = missing_functions(board, find_toolchain(core=board.core.type)), hal_source(board)
    if missing:
        message = f"{source.name} of board {board.name} does not define {', '.join(missing)}"
        raise NpukitError(message, tries=["firmware/include/hal.h describes each function", "npukit new board NAME"])
