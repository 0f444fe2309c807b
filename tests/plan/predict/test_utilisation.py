"""Utilisation of a plan's hardware, compared with known values."""

from __future__ import annotations

import pytest

from npukit.board.board import load_board
from npukit.plan.planner import plan_network
from npukit.plan.predict.utilisation import load_of
from plan.batch.test_batch_emitter import heavy
from plan.engines import engines, planned_on
from plan.networks import keyword_net

BOARD = load_board("pe-mesh")


def test_one_pe_computes_nearly_always_and_no_link_is_taken() -> None:
    net, plan = planned_on(1, keyword_net)
    load = load_of(net, BOARD, plan)
    assert load.computing == pytest.approx(1, abs=0.02)
    assert load.busiest_link is None
    assert load.streamed_bytes == load.fetched_bytes == 0


def test_a_link_carries_what_the_mesh_moves() -> None:
    net, plan = planned_on(4, keyword_net)
    load = load_of(net, BOARD, plan)
    assert load.busiest_link is not None
    assert 0 < load.busiest_link_share < 1
    assert 0.25 < load.computing < 1


def test_streamed_constants_are_the_networks() -> None:
    net = heavy()
    load = load_of(net, BOARD, plan_network(net, BOARD, engines(BOARD), max_pes=1))
    weights = sum(net.constants[op.inputs[1]].nbytes for op in net.ops)
    assert 0 < load.streamed_bytes <= 1.2 * weights
