"""Floors of a plan: below its cycles, and known values."""

from __future__ import annotations

from typing import Any

import pytest

from npukit.board.board import load_board
from npukit.net.ops.table import total_macs
from npukit.plan.planner import plan_network
from npukit.plan.predict.floors import floors_of, with_measured
from plan.batch.test_batch_emitter import heavy
from plan.engines import engines, planned_on
from plan.networks import keyword_net

BOARD = load_board("pe-mesh")
ARRAY = 64
"""Products of an array in a cycle."""


@pytest.mark.parametrize("options", [{"max_pes": 1}, {"max_pes": 4}, {"max_pes": 4, "objective": "throughput"}])
def test_no_floor_is_above_the_plan(options: dict[str, Any]) -> None:
    for net in (keyword_net(), heavy()):
        plan = plan_network(net, BOARD, engines(BOARD), **options)
        found = floors_of(net, BOARD, plan, engines(BOARD))
        assert 0 < max(found["latency"].values()) <= plan.predicted.latency_cycles
        assert 0 < max(found["interval"].values()) <= plan.predicted.interval_cycles


def test_the_floor_of_products_is_all_arrays_at_their_peak() -> None:
    for pes in (1, 4):
        net, plan = planned_on(pes, keyword_net)
        on_arrays = total_macs(net)
        found = floors_of(net, BOARD, plan, engines(BOARD))["latency"]
        assert found["products"] == round(on_arrays / (ARRAY * plan.pes_used))


def test_one_pe_sends_nothing_and_its_critical_path_is_the_frame() -> None:
    net, plan = planned_on(1, keyword_net)
    found = floors_of(net, BOARD, plan, engines(BOARD))["latency"]
    assert found["messages"] == 0
    assert found["path"] == plan.predicted.latency_cycles


def test_constants_of_the_dram_take_its_rate() -> None:
    net = heavy()
    plan = plan_network(net, BOARD, engines(BOARD), max_pes=1)
    weights = sum(net.constants[op.inputs[1]].nbytes for op in net.ops)
    found = floors_of(net, BOARD, plan, engines(BOARD))["latency"]
    assert weights / 16 <= found["messages"] <= 1.2 * weights / 16
    assert found["path"] < plan.predicted.latency_cycles


def test_the_table_leaves_out_floors_of_zero() -> None:
    told = {"latency": {"products": 0, "messages": 2, "path": 3}, "interval": {"products": 0, "messages": 1, "path": 2}}
    assert with_measured(told, 5, 4) == [("bytes over links", 2, 1), ("critical path", 3, 2), ("this plan", 5, 4)]
