"""Pipelines: stages of consecutive ops on PEs of their own."""

from __future__ import annotations

from itertools import pairwise

import pytest

from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch_search.layer_pipeline import PipelineSearch, Stages, cuts_of
from npukit.plan.ir.assignment import check_assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.pe_order import pes_in_order
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")
ORDER = pes_in_order(BOARD)


def deep(layers: int = 6, features: int = 256) -> Net:
    """Constants of several PEs."""
    b = Builder("deep")
    x = b.input(1, features)
    for _ in range(layers):
        x = b.dense(x, features)
    return b.net(x)


def stages_of(net: Net, pes: int) -> tuple[PipelineSearch, Stages]:
    search = PipelineSearch(Problem(Graph(net), BOARD, engines(BOARD)), pes)
    return search, search.best(pes)


def pipelined(net: Net, pes: int, micro_batches: int = 6, interleaved: int = 1) -> Plan:
    search, stages = stages_of(net, pes)
    wanted = Batch((search.assignment(stages, ORDER),), interleaved, micro_batches, cuts=cuts_of(stages))
    return emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), wanted)


@pytest.mark.parametrize("pes", [4, 5, 7, 16])
def test_stages_cover_all_ops_each_on_pes_of_its_own(pes: int) -> None:
    net = deep()
    search, stages = stages_of(net, pes)
    assert stages[0].begin == 0
    assert stages[-1].end == len(net.ops)
    for before, after in pairwise(stages):
        assert before.end == after.begin
        assert before.first + before.pes <= after.first
    assert stages[-1].first + stages[-1].pes <= pes
    check_assignment(Graph(net), search.assignment(stages, ORDER), ORDER)


def test_too_few_pes_for_the_constants_have_no_pipeline() -> None:
    assert stages_of(deep(), 3)[1] == ()


def test_a_pe_holds_the_constants_of_its_stage_alone() -> None:
    plan = pipelined(deep(), 6)
    assert not missing_bytes(BOARD, plan)
    assert not plan.streams
    assert len({step.op for pe in plan.pes for step in pe.computes()}) == 6
    assert all(len({step.op for step in pe.computes()}) <= 1 for pe in plan.pes)


def test_a_pipeline_computes_what_the_net_computes() -> None:
    net = deep(3, 64)
    assert len(stages_of(net, 3)[1]) == 3
    assert_exact(net, pipelined(net, 3, micro_batches=3, interleaved=2))


def test_stages_work_at_the_same_time() -> None:
    net = deep()
    one, twelve = (simulate(net, BOARD, pipelined(net, 6, micro_batches)).latency_cycles for micro_batches in (1, 12))
    assert twelve < 12 * one / 2
