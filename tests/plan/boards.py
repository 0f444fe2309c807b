"""Boards for the planner's tests."""

from __future__ import annotations

from npukit.board.board import Board, Grid, load_board


def with_memory(kilobytes: int, name: str = "pe-mesh") -> Board:
    """The board with this memory per PE."""
    board = load_board(name)
    return board.model_copy(update={"memory": (board.memory[0].model_copy(update={"size": kilobytes << 10}),)})


def wide_board() -> Board:
    """A board of 21 PEs in three rows."""
    board = load_board("pe-mesh")
    mesh = board.mesh.model_copy(update={"pes": Grid(columns=7, rows=3)})
    return board.model_copy(update={"mesh": mesh})


def two_chips() -> Board:
    """A board of two chips with six PEs each."""
    board = load_board("pe-mesh")
    mesh = board.mesh.model_copy(update={"chips": Grid(columns=2, rows=1), "pes": Grid(columns=3, rows=2)})
    return board.model_copy(update={"mesh": mesh})
