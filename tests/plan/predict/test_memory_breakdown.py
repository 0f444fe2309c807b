"""Memory of a PE by kind of use: complete, and without overlap."""

from __future__ import annotations

import pytest

from npukit.board.board import load_board
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_network
from npukit.plan.predict.utilisation import kinds_of
from plan.batch.test_batch_emitter import heavy
from plan.engines import engines, planned_on
from plan.networks import keyword_net

BOARD = load_board("pe-mesh")


def check(plan: Plan) -> None:
    for pe in plan.pes:
        kinds = kinds_of(plan, pe)
        assert all(size >= 0 for size in kinds.values())
        assert sum(kinds.values()) == pe.memory.code + pe.memory.constants + pe.memory.activations + pe.memory.stack


def test_one_pe_has_commands_and_nothing_of_a_mesh() -> None:
    net, plan = planned_on(1, keyword_net)
    check(plan)
    kinds = kinds_of(plan, plan.pes[0])
    assert kinds["commands"] == 96 * sum(1 for step in plan.pes[0].computes() if step.engine == "mac_array")
    assert not any(kinds[kind] for kind in ("descriptors", "table", "receive_buffers", "weight_tiles"))
    weights = sum(net.constants[op.inputs[1]].nbytes for op in net.ops if len(op.inputs) > 1)
    assert kinds["constants"] >= weights


def test_a_mesh_has_descriptors_and_receives() -> None:
    _, plan = planned_on(4, keyword_net)
    check(plan)
    kinds = [kinds_of(plan, pe) for pe in plan.pes]
    assert max(each["descriptors"] for each in kinds) > 0
    assert max(each["receive_buffers"] for each in kinds) > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_streams_have_weight_tiles(objective: str) -> None:
    net = heavy()
    plan = plan_network(net, BOARD, engines(BOARD), max_pes=2, objective=objective)
    check(plan)
    if plan.streams:
        assert max(kinds_of(plan, pe)["weight_tiles"] for pe in plan.pes) > 0
