"""List schedules: the first blocks of a network of repeated blocks show the room, and are no plan of the network."""

from __future__ import annotations

from npukit.board.board import load_board
from npukit.plan.layout.list_schedule import first_blocks
from npukit.plan.strategies.list_schedules import list_schedules
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import Builder
from plan.planning import searched

BOARD = load_board("pe-mesh")


def test_the_first_blocks_are_never_the_result() -> None:
    b = Builder("blocks")
    y = x = b.input(1, 64)
    for _ in range(8):
        y = b.add(b.dense(y, 64), x)
    graph = Graph(b.net(y))
    assert first_blocks(graph) is not graph
    search = searched(Problem(graph, BOARD, engines(BOARD)).on(range(4)), list_schedules)
    assert len({line.figure for line in search.log}) > 1
    assert search.best
    assert search.best.candidate.problem.net.outputs == (y,)
