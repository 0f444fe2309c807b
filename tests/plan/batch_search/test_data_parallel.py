"""Groups in lock step on a mesh of many PEs: exact, faster, and predicted from one group."""

from __future__ import annotations

import pytest

from npukit.board.board import Board, Grid, load_board
from npukit.errors import DoesNotFit
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.batch_search.data_parallel import groups_of, replicated_plan, root_last
from npukit.plan.ir.assignment import Tile
from npukit.plan.planner import plan_network
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.tries import Budget
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.engines import engines
from plan.networks import Builder, small_net

ROWS, COLUMNS = 3, 7


def wide_board() -> Board:
    """A board of 21 PEs, more than a small mesh."""
    board = load_board("pe-mesh")
    mesh = board.mesh.model_copy(update={"pes": Grid(columns=COLUMNS, rows=ROWS)})
    return board.model_copy(update={"mesh": mesh})


def small_mobilenet() -> Net:
    """A MobileNet whose constants and activations exceed the memory of a PE."""
    b = Builder("mobilenet")
    x = b.conv(b.input(1, 40, 40, 3), 16, 3, 2)
    for channels, stride in ((64, 1), (128, 2), (256, 2), (1280, 2)):
        x = b.conv(b.depthwise(x, 3, stride), channels, 1)
    return b.net(b.dense(b.flatten(b.mean(x)), 100))


@pytest.mark.exhaustive
def test_a_small_mobilenet_in_groups_in_lock_step_is_exact() -> None:
    board, net = wide_board(), small_mobilenet()
    plan = replicated_plan(Problem(Graph(net), board, engines(board)))
    assert plan
    assert plan.frames > 1
    assert plan.streams
    assert not missing_bytes(board, plan)
    assert plan.predicted.interval_cycles < plan.predicted.latency_cycles / plan.frames + 1
    assert_exact(net, plan, rounds=1)


def test_a_search_whose_budget_is_spent_gives_groups_of_the_first_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "is_spent", True)
    board, told = wide_board(), list[str]()
    plan = replicated_plan(Problem(Graph(small_net()), board, engines(board), tell=told.append))
    assert plan
    assert not missing_bytes(board, plan)
    assert plan.frames == ROWS * COLUMNS
    assert told
    assert all("cycles a frame expected" in each for each in told)


def test_what_fits_no_group_nor_all_pes_is_refused_with_what_is_missing() -> None:
    board, b = wide_board(), Builder("wide")
    net = b.net(b.conv(b.conv(b.input(1, 128, 128, 16), 128, 1), 128, 1))
    with pytest.raises(DoesNotFit, match=r"21 PEs, drafted .* needs at least .* more than PE") as refused:
        plan_network(net, board, engines(board), objective="throughput")
    assert refused.value.tries


def test_groups_leave_the_first_pes_to_feed_them() -> None:
    graph = Graph(small_mobilenet())
    whole = {op.name: (Tile(3, Box.whole(graph.shape(op.output))),) for op in graph.ops}
    groups = groups_of(whole, [3, 4, 5, 6, 7], 2)
    assert [{tile.pe for tiles in group.values() for tile in tiles} for group in groups] == [{4}, {6}]
    turned = groups_of(whole, [3, 4, 5, 6], 2, [4, 3, 5, 6])
    assert [{tile.pe for tiles in group.values() for tile in tiles} for group in turned] == [{4}, {5}]


def test_the_root_is_left_or_has_the_last_tiles_of_its_group() -> None:
    assert root_last(range(5), 2) == [0, 1, 2, 3, 4]
    assert root_last(range(4), 2) == [1, 0, 2, 3]
