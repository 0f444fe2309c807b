"""Engines that run asynchronously: no buffer is read or overwritten too early, for any net."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.accel.interface import Abilities, Accelerator
from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.net.receptive import cuttable_axes
from npukit.net.reference.interpreter import run_reference
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Compute, Join, PePlan, Plan
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.op_order import in_overlapping_order
from npukit.plan.tensors.problem import Problem
from oracles.plan_execution import Execution, PlanError
from plan.assignments import emitted_frame, on_one_pe
from plan.engines import SimpleCore, engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


class Helper(SimpleCore):
    """A second accelerator, limited to a single op at a time."""

    name = "helper"
    abilities = Abilities(wait="helper_wait")


ENGINES: dict[str, Accelerator] = {**engines(BOARD), "helper": Helper()}


@st.composite
def branchy_nets(draw: st.DrawFn) -> Net:
    """Ops on any engine with arbitrary earlier tensors as inputs."""
    b = Builder("branches", seed=draw(st.integers(0, 99)))
    made = [b.input(1, 6, 5, 4)]
    for kind in draw(st.lists(st.sampled_from(["conv", "add", "softmax", "pool"]), min_size=2, max_size=9)):
        x = draw(st.sampled_from(made))
        match kind:
            case "conv":
                made.append(b.conv(x, 4, 3))
            case "add":
                made.append(b.add(x, draw(st.sampled_from(made))))
            case "softmax":
                made.append(b.softmax(x))
            case _:
                made.append(b.pool(x, 2, 1))
    read = {name for op in b.ops for name in op.inputs}
    net = b.net(*(name for name in made[1:] if name not in read))
    return net.with_ops(tuple(op.placed(draw(st.sampled_from(_able(op.kind)))) for op in net.ops))


def _able(kind: str) -> list[str]:
    return ["cpu", "helper"] if kind == "softmax" else ["cpu", "helper", "mac_array"]


def planned(net: Net, pes: int) -> Plan:
    """A plan with ops cut by rows over `pes` PEs, where possible."""
    graph = Graph(net)
    assignment = dict(on_one_pe(graph, 0))
    for op in graph.ops if pes > 1 else ():
        if 1 in cuttable_axes(net, op) and op.engine != "cpu":
            shape = net.tensor(op.output).shape
            boxes = to_boxes(grid(shape, (1, min(pes, shape[1]), 1, 1), (1,) * 4))
            assignment[op.name] = tuple(Tile(pe, box) for pe, box in enumerate(boxes))
    return emitted_frame(Problem(graph, BOARD, ENGINES), assignment)


def joins(plan: Plan) -> int:
    return sum(isinstance(step, Join) for pe in plan.pes for step in pe.steps)


@pytest.mark.exhaustive
@settings(max_examples=80, derandomize=True)
@given(net=branchy_nets(), pes=st.sampled_from([1, 1, 3]), seed=st.integers(0, 99))
def test_any_net_computes_what_it_should(net: Net, pes: int, seed: int) -> None:
    ordered = in_overlapping_order(net, ENGINES)
    execution = Execution(ordered, planned(ordered, pes), seed)
    for case in range(2):
        inputs = [np.random.default_rng(case).integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)]
        for got, want in zip(execution.run(inputs), run_reference(net, inputs), strict=True):
            assert np.array_equal(got, want)


@settings(max_examples=40, derandomize=True)
@given(net=branchy_nets())
def test_the_order_is_one_in_which_the_net_can_run(net: Net) -> None:
    ordered = in_overlapping_order(net, ENGINES)
    assert sorted(op.name for op in ordered.ops) == sorted(op.name for op in net.ops)
    known = set(net.inputs)
    for op in ordered.ops:
        assert set(net.activations(op)) <= known
        known |= set(op.outputs)


def branches() -> Net:
    b = Builder("two", seed=4)
    x = b.input(1, 8, 8, 4)
    net = b.net(b.add(b.conv(b.conv(x, 96, 3), 4, 3), b.softmax(x)))
    return net.with_ops(tuple(op.placed("helper") if op.kind == "add" else op for op in net.ops))


def test_a_branch_on_the_core_is_hidden_behind_one_on_an_accelerator() -> None:
    net = branches()
    plan = planned(net, 1)
    first, second, softmax, join, last = plan.pes[0].steps
    assert isinstance(first, Compute)
    assert isinstance(second, Compute)
    assert isinstance(softmax, Compute)
    assert isinstance(last, Compute)
    assert [step.engine for step in (first, second, softmax, last)] == ["mac_array", "mac_array", "cpu", "helper"]
    assert [step.submitted for step in (first, second, softmax, last)] == [True, True, False, False]
    assert join == Join("mac_array")
    apart = sum(step.cycles for step in plan.pes[0].computes())
    together = simulate(net, BOARD, plan).latency_cycles
    assert together < apart - 0.8 * min(first.cycles + second.cycles, softmax.cycles)


def test_what_runs_keeps_its_bytes_until_it_is_waited_for() -> None:
    plan = planned(branches(), 1)
    (pe,) = plan.pes
    read, written = pe.buffer("conv2d0_out"), pe.buffer("conv2d1_out")
    assert read.last == pe.steps.index(Join("mac_array"))
    core = pe.buffer("softmax2_out")
    for buffer in (read, written):
        assert core.offset + core.bytes <= buffer.offset or buffer.offset + buffer.bytes <= core.offset


def test_a_plan_that_does_not_wait_is_found_out() -> None:
    net = branches()
    plan = planned(net, 1)
    (pe,) = plan.pes
    careless: PePlan = replace(pe, steps=tuple(step for step in pe.steps if not isinstance(step, Join)))
    with pytest.raises(PlanError, match="never written"):
        run_often(net, replace(plan, pes=(careless,)))


def run_often(net: Net, plan: Plan) -> None:
    """Run in many random orders, because a race shows only in some orders."""
    for seed in range(20):
        Execution(net, plan, seed).run([np.zeros(net.tensor(net.inputs[0]).shape, np.int8)])


def test_a_net_for_one_engine_keeps_its_order_and_waits_for_nothing() -> None:
    b = Builder("one", seed=4)
    x = b.conv(b.input(1, 8, 8, 4), 8, 3)
    net = b.net(b.add(b.conv(x, 8, 3), b.conv(x, 8)))
    assert in_overlapping_order(net, ENGINES) == net
    assert joins(planned(net, 1)) == 0
