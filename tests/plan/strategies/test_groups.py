"""Data-parallel groups: exact, in memory, and found within a small budget."""

from __future__ import annotations

import pytest

from npukit.plan.predict.memory import missing_bytes
from npukit.plan.strategies.groups import groups, groups_of
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import on_one_pe
from plan.batch.test_batch_emitter import assert_exact
from plan.boards import wide_board
from plan.engines import engines
from plan.networks import small_mobilenet, small_net
from plan.planning import best_plan


@pytest.mark.exhaustive
def test_a_small_mobilenet_in_groups_is_exact_with_streamed_weights() -> None:
    board, net = wide_board(), small_mobilenet()
    plan = best_plan(Problem(Graph(net), board, engines(board)), groups, objective="throughput")
    assert plan.frames > 1
    assert plan.streams
    assert not missing_bytes(board, plan)
    assert plan.predicted.interval_cycles < plan.predicted.latency_cycles / plan.frames + 1
    assert_exact(net, plan, rounds=1)


def test_groups_leave_the_first_pes_to_prefetch() -> None:
    whole = on_one_pe(Graph(small_net()), 3)
    groups = groups_of(whole, [3, 4, 5, 6, 7], 2)
    assert [{tile.pe for tiles in group.values() for tile in tiles} for group in groups] == [{4}, {6}]
    turned = groups_of(whole, [3, 4, 5, 6], 2, [4, 3, 5, 6])
    assert [{tile.pe for tiles in group.values() for tile in tiles} for group in turned] == [{4}, {5}]
