"""Boards with dead parts: a network is planned around them, built, run on the emulator, every output and tile compared.

    python benchmarks/mesh/dead_parts.py MODEL [--board pe-mesh] [--percent 5 --draws 3 --pes 152]

Without --percent: each PE of the board dead in turn, then each link. With --percent: a percentage of PEs dead, drawn at
random, `--draws` times.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npukit import api
from npukit.board.board import Board, load_board
from npukit.pipeline import build_folder
from npukit.progress import Silent

Fault = dict[str, Any]
"""The dead PEs or links of a board's mesh, as fields of `mesh`."""


def one_by_one(board: Board) -> Iterator[Fault]:
    """Each PE as the only dead part, then each link between neighbours of one chip."""
    grid = board.mesh.pes
    yield from ({"dead_pes": (pe,)} for pe in range(board.pe_count))
    for pe in range(grid.count):
        row, column = divmod(pe, grid.columns)
        neighbours = [pe + 1] * (column + 1 < grid.columns) + [pe + grid.columns] * (row + 1 < grid.rows)
        yield from ({"dead_links": ((pe, other),)} for other in neighbours)


def line(model: Path, board: Board, fault: Fault, pes: int | None) -> str:
    """A line with the result on one broken board."""
    broken = board.model_copy(update={"mesh": board.mesh.model_copy(update=fault)})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out"
        built = build_folder(model, broken, folder, api.Options(pes=pes), Silent())
        found = api.validate(folder)
        used = {pe.pe for pe in built.plan().pes}
    assert used.isdisjoint(fault.get("dead_pes", ()))
    shown = ", ".join(f"{name} {value}" for name, value in fault.items())
    return f"{'exact' if found.passed else 'DIFFERS':8} {len(used):>4} PEs, {found.tiles_checked} tiles; {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--percent", type=float)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--pes", type=int)
    given = parser.parse_args()
    board = load_board(given.board)
    faults, count = one_by_one(board), round(board.pe_count * (given.percent or 0) / 100)
    if count:
        draws = (random.Random(seed).sample(range(board.pe_count), count) for seed in range(given.draws))
        faults = ({"dead_pes": tuple(sorted(dead))} for dead in draws)
    for fault in faults:
        print(line(given.model, board, fault, given.pes or board.pe_count), flush=True)


if __name__ == "__main__":
    main()
