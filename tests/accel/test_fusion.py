"""Groups of ops for an engine with subgraphs: connected, with one way out, and the net's outputs do not change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from npukit.accel.engines import plugins_of
from npukit.accel.fusion import with_patterns, with_subgraphs
from npukit.accel.interface import Abilities, Accelerator, Cost
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net, Op, fuse
from npukit.net.reference.interpreter import run_reference
from plan.engines import SimpleCore
from plan.networks import Builder
from plan.tensors.test_op_order import branchy_nets


class Grower(SimpleCore):
    """An engine for everything but softmax, at most four ops at once."""

    name = "grower"
    abilities = Abilities(subgraphs=True)

    def refusal(self, net: Net, op: Op) -> str | None:
        if len(op.parts) > 4:
            return "too many"
        return "no softmax" if op.kind == "softmax" else None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        return Cost(1, 0)


ENGINES: dict[str, Accelerator] = {"grower": Grower(), "cpu": SimpleCore()}


@settings(max_examples=60, derandomize=True)
@given(net=branchy_nets())
def test_any_net_is_grouped_and_computes_the_same(net: Net) -> None:
    net = net.with_ops(tuple(op.placed("cpu") for op in net.ops))
    grouped = check_net(with_subgraphs(net, ENGINES["grower"], ENGINES))
    assert {op.engine for op in grouped.ops if op.kind == "softmax"} <= {"cpu"}
    for op in grouped.ops:
        inside = {name for part in op.parts for name in part.outputs}
        for part in op.parts[:-1]:
            assert any(name in part.outputs for other in op.parts for name in other.inputs)
        assert len(op.parts) <= 4
        assert set(op.outputs) <= inside
    x = [np.random.default_rng(0).integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)]
    for got, want in zip(run_reference(grouped, x), run_reference(net, x), strict=True):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("twice", [False, True])
def test_results_that_are_added_to_themselves_are_not_fused(twice: bool) -> None:
    """The fused op would have no other operand to add."""
    builder = Builder("sums")
    given = builder.input(1, 16)
    dense = builder.dense(given, 16)
    net = builder.net(builder.add(dense, dense if twice else given))
    array = plugins_of(load_board("pe-mesh"))["mac_array"]
    assert (array.refusal(net, fuse(net.ops)) is None) != twice
    fused = with_patterns(net, array, {"mac_array": array, "cpu": SimpleCore()})
    assert len(fused.ops) == 1 + twice


def test_an_op_is_asked_for_so_often_as_its_group_is_tried_however_long_the_net() -> None:
    """The engine refuses groups above four ops. The size limit of each group follows from the group before."""
    asked = {ops: _asked(ops) for ops in (100, 400)}
    assert asked[400] < 6 * asked[100]


def _asked(ops: int) -> int:
    """The number of ops, counted by parts, offered to an engine for a chain of `ops` ops."""
    b, shown = Builder("chain"), 0
    x = b.input(1, 4, 4, 4)
    for _ in range(ops):
        x = b.pool(x, 1, 1)
    net = b.net(x)

    class Counting(Grower):
        def refusal(self, net: Net, op: Op) -> str | None:
            nonlocal shown
            shown += len(op.parts)
            return super().refusal(net, op)

    with_subgraphs(net.with_ops(tuple(op.placed("cpu") for op in net.ops)), Counting(), ENGINES)
    return shown
