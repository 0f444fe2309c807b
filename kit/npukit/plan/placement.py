"""Which PEs a plan may use, in which order: neighbours in the order are neighbours on the mesh."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.board.board import Board, Grid
from npukit.errors import DoesNotFit


def pes_in_order(board: Board) -> list[int]:
    """The live PEs along a snake through each chip, chips along a snake too; the root comes first."""
    order = [pe for pe in _snake_of_pes(board) if pe not in board.mesh.dead_pes]
    if not order:
        raise DoesNotFit(f"every PE of {board.name} is dead", tries=["another board"])
    root = min(order)
    return [root, *(pe for pe in order if pe != root)]


def _snake_of_pes(board: Board) -> Iterator[int]:
    for chip in _snake(board.mesh.chips):
        for place in _snake(board.mesh.pes):
            yield chip * board.mesh.pes.count + place


def _snake(grid: Grid) -> Iterator[int]:
    """Row by row, every second row backwards."""
    for row in range(grid.rows):
        columns = range(grid.columns)
        for column in columns if row % 2 == 0 else reversed(columns):
            yield row * grid.columns + column
