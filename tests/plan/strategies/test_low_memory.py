"""Plans for short memory are exact: all weights streamed in small weight tiles, orders in DRAM."""

from __future__ import annotations

import pytest

from npukit.plan.predict.memory import missing_bytes
from npukit.plan.strategies.drafts import PES_OF_A_PREFETCHER
from npukit.plan.strategies.low_memory import low_memory_batch, low_memory_frame
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.boards import wide_board
from plan.engines import engines
from plan.networks import small_mobilenet
from plan.planning import best_plan


@pytest.mark.exhaustive
def test_all_pes_as_one_group_are_exact() -> None:
    board, net = wide_board(), small_mobilenet()
    plan = best_plan(Problem(Graph(net), board, engines(board)), low_memory_batch, objective="throughput")
    assert plan.streams
    assert not missing_bytes(board, plan)
    assert_exact(net, plan, rounds=1)


@pytest.mark.exhaustive
def test_a_frame_is_on_all_pes_but_the_prefetchers() -> None:
    board, net = wide_board(), small_mobilenet()
    plan = best_plan(Problem(Graph(net), board, engines(board)), low_memory_frame)
    assert plan.streams
    assert plan.frames == 1
    idle = [pe.pe for pe in plan.pes if not pe.tiles]
    assert len(idle) == -(-board.pe_count // PES_OF_A_PREFETCHER)
    assert_exact(net, plan, rounds=1)
