"""Boards with different kinds of PE: each op runs on PEs with the op's engine, with exact results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npukit.accel.engines import core_of
from npukit.board.board import Board, PeKind, load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.box import Box
from npukit.net.net import CORE
from npukit.net.reference.interpreter import run_reference
from npukit.plan.ir.plan import Plan
from npukit.plan.layout.splits import Splits
from npukit.plan.planner import plan_network
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.boxes import spread_out
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_to_use
from npukit.plan.user_mapping import read_pins
from oracles.plan_execution import Execution
from plan.engines import engines
from plan.networks import small_net
from plan.planning import best_plan, plan_with_pins

NET = small_net()
ENGINES = engines(load_board("pe-mesh"))
CHECKERED = (0, 2, 5, 7, 8, 10, 13, 15)


def board(*without: int | tuple[int, int]) -> Board:
    """A mesh whose PEs `without` have no array."""
    return load_board("pe-mesh").model_copy(update={"kind": (PeKind(pes=without, accelerators=()),)})


def pes_by_engine(plan: Plan) -> dict[str, set[int]]:
    engine_of = {op.name: op.engine for op in NET.ops}
    found: dict[str, set[int]] = {}
    for pe in plan.pes:
        for step in pe.computes():
            found.setdefault(engine_of[step.op], set()).add(pe.pe)
    return found


@pytest.mark.parametrize("without", [((8, 15),), CHECKERED, tuple(range(15))])
@pytest.mark.parametrize("objective", ["latency", "throughput", "memory"])
def test_ops_of_the_array_are_on_pes_that_carry_it_and_exact(without: tuple[int, ...], objective: str) -> None:
    mixed = board(*without)
    plan = plan_network(NET, mixed, ENGINES, objective=objective)
    assert pes_by_engine(plan)["mac_array"].isdisjoint(mixed.lacking["mac_array"])
    inputs = [
        np.random.default_rng(frame).integers(-128, 128, NET.tensor(NET.inputs[0]).shape, np.int8)
        for frame in range(plan.frames)
    ]
    if plan.frames == 1:
        for got, want in zip(Execution(NET, plan).run(inputs), run_reference(NET, inputs), strict=True):
            assert np.array_equal(got, want)


def test_pes_that_carry_more_come_first_behind_the_root() -> None:
    order = pes_to_use(board(*CHECKERED), None, {"mac_array", CORE})
    assert (order[0], set(order[1:9])) == (0, set(range(16)) - set(CHECKERED))
    assert pes_to_use(board(*CHECKERED), None) == pes_to_use(load_board("pe-mesh"), None)


def test_kinds_of_which_none_carries_more_take_turns() -> None:
    mac, other = PeKind(pes=((0, 7),), accelerators=("mac_array",)), PeKind(pes=((8, 15),), accelerators=("other",))
    slots = load_board("pe-mesh").accelerator
    both = board().model_copy(
        update={
            "kind": (mac, other),
            "accelerator": (*slots, slots[0].model_copy(update={"name": "other", "base": 0xE700_0000})),
        }
    )
    assert [pe < 8 for pe in pes_to_use(both, 5, {"mac_array", "other"})[1:]] == [True, False, True, False]


def mixed_cores() -> Board:
    """A mesh of seven Cortex-M4F and nine Cortex-M0+."""
    return load_board("pe-mesh").model_copy(update={"kind": (PeKind(pes=((1, 9),), cpu="cortex-m0plus"),)})


def test_a_tile_costs_what_the_core_of_its_pe_needs() -> None:
    mixed = mixed_cores()
    problem = Problem(Graph(NET), mixed, {**ENGINES, CORE: core_of(mixed)}, max_pes=16)
    op = next(op for op in NET.ops if op.engine == CORE and op.kind == "softmax")
    whole = Box.whole(NET.tensor(op.output).shape)
    fast, slow = (problem.cost(op, whole, pe).cycles for pe in (0, 1))
    assert fast < slow
    assert problem.cost(op, whole).cycles == fast, "the first PE's"
    assert problem.unlike(7) == (0,), "those with the faster core come first"
    assert problem.unlike(8) == (0, 1)
    index = [each.name for each in problem.graph.ops].index(op.name)
    assert Splits(problem, 16).cost(index, (1, 1)).cycles == fast


@pytest.mark.exhaustive
def test_pes_with_different_cores_share_a_batch_where_that_is_better() -> None:
    mixed = mixed_cores()
    problem = Problem(Graph(NET), mixed, {**ENGINES, CORE: core_of(mixed)}, order=range(3))
    every = best_plan(problem, objective="throughput")
    assert cores_of(every, mixed) == set(mixed.cpus)
    one = best_plan(problem.alike, objective="throughput")
    assert cores_of(one, mixed) == {"cortex-m0plus"}, "of which there are more"
    assert every.predicted.interval_cycles < one.predicted.interval_cycles


def cores_of(plan: Plan, board: Board) -> set[str]:
    return {board.cpu_of(pe.pe) for pe in plan.pes if any(pe.computes())}


def test_slower_cores_take_longer_for_messages_and_waits() -> None:
    plan = plan_network(NET, load_board("pe-mesh"), ENGINES, max_pes=4)
    cycles = [simulate(NET, board, plan).latency_cycles for board in (load_board("pe-mesh"), mixed_cores())]
    assert plan.pes_used == 4
    assert cycles[0] == plan.predicted.latency_cycles < cycles[1]


def test_too_few_pes_to_have_an_array_are_refused() -> None:
    with pytest.raises(DoesNotFit, match="none of the PEs that may be used carries mac_array") as refused:
        plan_network(NET, board((0, 14)), ENGINES, max_pes=1)
    assert "--pes 2" in refused.value.tries


def test_an_op_pinned_to_a_pe_without_its_engine_is_named(tmp_path: Path) -> None:
    graph, mixed = Graph(NET), board(*CHECKERED)
    (tmp_path / "plan.toml").write_text(f"[ops.{graph.ops[0].name}]\npes = [5]\n")
    with pytest.raises(NpukitError, match="PE 5 does not carry mac_array"):
        read_pins(str(tmp_path / "plan.toml"), graph, mixed)
    (tmp_path / "plan.toml").write_text(f"[ops.{graph.ops[0].name}]\npes = [14]\n")
    pins = read_pins(str(tmp_path / "plan.toml"), graph, mixed)
    plan = plan_with_pins(Problem(graph, mixed, ENGINES, max_pes=16), pins)
    assert pes_by_engine(plan)["mac_array"] <= set(range(16)) - set(CHECKERED)


def test_boxes_spread_out_leave_nothing_between() -> None:
    spread = spread_out(np.array([[[0, 2]], [[2, 4]]]), (1, 3, 4))
    assert spread.tolist() == [[[0, 0]], [[0, 2]], [[0, 0]], [[2, 4]]]
