"""Sums and differences on the MAC array, with constants by channel: exact on the emulator, predicted, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from accel.mac_array_memory import Memory
from accel.nets import OUTPUT
from accel.test_core_moves import BOARD, cut, run
from codegen.random_ops import Bundle
from npukit.accel.cpu import Cpu
from npukit.accel.engines import plugins_of
from npukit.accel.interface import Operand, Tile, whole_cycles
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import Add, Multiply, Subtract
from npukit.net.reference.interpreter import evaluate
from npukit.net.tensor import Quantization
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

ARRAY = plugins_of(BOARD)["mac_array"]
STARTED = 20
"""Upper bound in cycles on the start of a command by the core."""


def by_channel(kind: type[Add | Subtract | Multiply]) -> Net:
    """Ops with a constant of one pixel, row or column, of either rank, and with two activations."""
    bundle = Bundle(np.random.default_rng(3))
    for shape, held in (
        ((1, 5, 6, 7), (1, 1, 1, 7)),
        ((1, 5, 6, 7), (1, 5, 1, 7)),
        ((1, 5, 6, 7), (6, 7)),
        ((1, 12, 33), (33,)),
        ((1, 5, 6, 7), (1, 5, 6, 7)),
    ):
        if kind is Multiply and prod(held) == held[-1]:
            continue  # a depthwise convolution
        constant = bundle.constant(bundle.int8(held), Quantization((0.25,), (3,)))
        source = bundle.activation(shape, Quantization((0.25,), (-9,)))
        bundle.add(kind((-100, 90)), source, constant, quantization=OUTPUT)
        bundle.add(kind(), constant, source, quantization=OUTPUT)
    bundle.add(kind(), source, bundle.activation(shape, Quantization((0.5,), (8,))), quantization=OUTPUT)
    net = check_net(bundle.net())
    return net.with_ops(tuple(op.placed("mac_array") for op in net.ops))


@pytest.mark.parametrize("pes", [1, 4])
@pytest.mark.parametrize("kind", [Add, Subtract, Multiply])
def test_constants_by_channel_are_added_subtracted_and_multiplied(
    kind: type[Add | Subtract | Multiply], pes: int, tmp_path: Path
) -> None:
    net = by_channel(kind)
    assert not any(ARRAY.refusal(net, op) for op in net.ops)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu(), "mac_array": ARRAY}, max_pes=pes), cut(net, pes))
    for op, layer in zip(net.ops, run(net, planned, tmp_path).layers, strict=True):
        assert pes > 1 or 0 <= whole_cycles(net, op, ARRAY) - layer.npu_cycles <= STARTED, layer


@pytest.mark.parametrize(("other", "exact"), [(0.75, True), (0.75 + 2.0**-24, False)])
def test_a_difference_that_rounds_otherwise_stays_on_the_core(other: float, *, exact: bool) -> None:
    """Half a unit of the scaled second operand is rounded up for either sign, and decides about half a result."""
    bundle = Bundle(np.random.default_rng(1))
    operands = (bundle.activation((4,), Quantization((scale,), (3,))) for scale in (1.0, other))
    bundle.add(Subtract(), *operands, quantization=Quantization((2.0,), (1,)))
    refused = ARRAY.refusal(bundle.net(), bundle.ops[0])
    assert refused == (None if exact else "a sum with a negative factor rounds some differences otherwise")


def test_a_constant_takes_as_long_with_and_without_leading_axes_of_one() -> None:
    def cycles(shape: tuple[int, ...]) -> int:
        bundle = Bundle(np.random.default_rng(3))
        constant = bundle.constant(bundle.int8(shape), OUTPUT)
        bundle.add(Add(), bundle.activation((1, 5, 6, 7), OUTPUT), constant, quantization=OUTPUT)
        return whole_cycles(bundle.net(), bundle.ops[0], ARRAY)

    assert cycles((5, 1, 7)) == cycles((1, 5, 1, 7)) > cycles((1, 5, 6, 7))


@pytest.mark.parametrize("kind", [Add, Subtract, Multiply])
def test_channels_that_broadcast_stay_on_the_core(kind: type[Add | Subtract | Multiply]) -> None:
    """The factors of a layer norm in int8: a number of each row by a constant of the row's length."""
    bundle = Bundle(np.random.default_rng(3))
    constant = bundle.constant(bundle.int8((1, 1, 32)), Quantization((0.25,), (3,)))
    bundle.add(kind(), bundle.activation((1, 12, 1), Quantization((0.25,), (-9,))), constant, quantization=OUTPUT)
    net = check_net(bundle.net())
    assert "differ" in str(ARRAY.refusal(net, net.ops[0]))


@pytest.mark.parametrize("constant", [None, 0, 1])
@pytest.mark.parametrize("kind", [Add, Subtract, Multiply])
def test_operands_that_broadcast_are_exact(kind: type[Add | Subtract | Multiply], constant: int | None) -> None:
    """The array reads nothing but its operands, whichever of both has a single row or column."""
    random = np.random.default_rng(3)
    for shapes in product(product((1,), (1, 3), (1, 4), (8,)), repeat=2):
        bundle = Bundle(random)
        operands = [
            bundle.constant(bundle.int8(shape), OUTPUT) if place == constant else bundle.activation(shape, OUTPUT)
            for place, shape in enumerate(shapes)
        ]
        bundle.add(kind(), *operands, quantization=OUTPUT)
        net = check_net(bundle.net())
        assert ARRAY.refusal(net, net.ops[0]) is None
        values = evaluate(net, [bundle.int8(net.tensor(name).shape) for name in net.inputs])
        assert np.array_equal(on_the_array(net, values), values[net.outputs[0]]), shapes


def on_the_array(net: Net, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The output of the net's only op on the numpy model of the array."""
    memory, (op,) = Memory(), net.ops

    def placed(name: str) -> Operand:
        whole = Box.whole(net.tensor(name).shape)
        return memory.operand(name, net.tensor(name), whole, whole)

    inputs, output = tuple(map(placed, net.activations(op))), placed(op.output)
    for name, operand in zip(net.activations(op), inputs, strict=True):
        memory.sram[memory.bytes_of(operand)] = values[name].view(np.uint8)
    memory.run(ARRAY.lower(Tile("tile", net, op, output, inputs)))
    return memory.sram[memory.bytes_of(output)].view(np.int8)
