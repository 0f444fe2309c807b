from __future__ import annotations

import pytest

from npukit.plan.batch_search.low_memory import low_memory_plan
from npukit.plan.planner import plan_network
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.wide_frame import PES_OF_A_PREFETCHER
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.batch_search.test_data_parallel import small_mobilenet, wide_board
from plan.engines import engines
from plan.networks import Builder


@pytest.mark.exhaustive
def test_all_pes_as_one_group_with_little_memory_are_exact() -> None:
    board, net = wide_board(), small_mobilenet()
    plan = low_memory_plan(Problem(Graph(net), board, engines(board)))
    assert plan
    assert plan.streams
    assert not missing_bytes(board, plan)
    assert_exact(net, plan, rounds=1)


@pytest.mark.exhaustive
def test_a_frame_that_no_draft_fits_is_made_with_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single frame, on all PEs except the prefetchers of weights."""
    monkeypatch.setattr("npukit.plan.search.objectives._wants_dram", lambda problem: True)
    monkeypatch.setattr("npukit.plan.search.objectives.scheduled_plan", lambda problem: None)
    monkeypatch.setattr("npukit.plan.search.wide_frame.WideFrame.best", lambda search: None)
    board, net = wide_board(), small_mobilenet()
    plan = plan_network(net, board, engines(board), max_pes=board.pe_count)
    assert plan.streams
    assert (plan.objective, plan.frames) == ("latency", 1)
    assert plan.predicted.latency_cycles > 0
    idle = [pe.pe for pe in plan.pes if not pe.tiles]
    assert len(idle) == -(-board.pe_count // PES_OF_A_PREFETCHER)
    assert_exact(net, plan, rounds=1)


def test_tensors_that_no_group_holds_are_told_apart_at_once() -> None:
    board, b = wide_board(), Builder("wide")
    net = b.net(b.conv(b.conv(b.input(1, 160, 160, 16), 128, 1), 128, 1))
    assert low_memory_plan(Problem(Graph(net), board, engines(board))) is None
