"""List scheduling: siblings side by side, layers where there is room, borders of chips crossed when they must be."""

from __future__ import annotations

from itertools import pairwise

import pytest

from npukit.board.board import Board, Grid, load_board
from npukit.net.net import Net
from npukit.plan.ir.assignment import Assignment, fault_of
from npukit.plan.planner import plan_network
from npukit.plan.search.list_schedule import ListSchedule, scheduled_plan
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.engines import engines
from plan.networks import Builder, autoencoder, image_net, keyword_net

PES = 6
"""PEs of each of two chips."""


def two_chips() -> Board:
    board = load_board("pe-mesh")
    mesh = board.mesh.model_copy(update={"chips": Grid(columns=2, rows=1), "pes": Grid(columns=3, rows=2)})
    return board.model_copy(update={"mesh": mesh})


def problem_of(net: Net, board: Board) -> Problem:
    return Problem(Graph(net), board, engines(board), max_pes=board.pe_count)


def chain(layers: int) -> Net:
    b = Builder("chain")
    x = b.input(1, 64)
    for _ in range(layers):
        x = b.dense(x, 64)
    return b.net(x)


def assigned(problem: Problem, room: int = 1 << 16) -> Assignment:
    found = ListSchedule(problem, room).assignment()
    assert found is not None
    return found


@pytest.mark.parametrize("net", [autoencoder(), image_net(), keyword_net()], ids=lambda net: net.name)
def test_every_op_is_on_live_pes_whole_and_the_frame_is_exact(net: Net) -> None:
    whole = two_chips()
    board = whole.model_copy(update={"mesh": whole.mesh.model_copy(update={"dead_pes": (2, 7)})})
    problem = problem_of(net, board)
    assignment = assigned(problem)
    for op in problem.graph.ops:
        assert fault_of(problem.graph.shape(op.output), assignment[op.name], set(problem.order)) is None
    plan = scheduled_plan(problem)
    assert plan is not None
    assert_exact(net, plan, rounds=1)


def test_layers_that_read_the_same_tensor_lie_side_by_side() -> None:
    b = Builder("siblings")
    x = b.input(1, 512)
    first, second = b.dense(x, 32), b.dense(x, 32)
    problem = problem_of(b.net(b.add(first, second)), two_chips())
    assignment, makers = assigned(problem), problem.graph.maker_of
    places = [{tile.pe for tile in assignment[makers[name].name]} for name in (first, second)]
    assert places[0].isdisjoint(places[1])


@pytest.mark.parametrize(("room", "chips"), [(1 << 16, {0}), (5 << 10, {0, 1})])
def test_a_border_is_crossed_only_where_a_chip_is_full(room: int, chips: set[int]) -> None:
    """Each layer has 4 KB of weights, which a chip of 6 PEs holds six times in the one case."""
    assignment = assigned(problem_of(chain(10), two_chips()), room)
    order = [{tile.pe // PES for tile in tiles} for tiles in assignment.values()]
    assert set().union(*order) == chips
    assert sum(before != after for before, after in pairwise(order)) <= 2


def test_what_has_no_room_is_not_placed() -> None:
    assert ListSchedule(problem_of(chain(10), two_chips()), 1 << 10).assignment() is None


def test_a_frame_on_two_chips_is_exact() -> None:
    board, net = two_chips(), image_net()
    plan = plan_network(net, board, engines(board), max_pes=board.pe_count)
    assert plan.objective == "latency"
    assert_exact(net, plan, rounds=1)
