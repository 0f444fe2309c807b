"""Every op of the MAC array, for any shape, tile and address: the reference's bytes.

The plan's cycles equal the numpy model's, which tests/emulator compares with the emulator's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.mac_array_memory import Memory
from codegen.random_ops import Bundle, matmul
from npukit.accel.interface import Tile
from npukit.accel.mac_array.cycles import Flags, Patch
from npukit.accel.mac_array.plugin import MacArray
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.net import Net, Op, fuse
from npukit.net.ops import Conv2d, DepthwiseConv2d, Matmul
from npukit.net.passes.sums import cut_in_sums
from npukit.net.receptive import cuttable_axes, needs
from npukit.net.reference.interpreter import evaluate
from plan.networks import Builder

ARRAY = MacArray(load_board("pe-mesh").accelerator[0])
KINDS = (
    "conv2d",
    "depthwise_conv2d",
    "dense",
    "add",
    "average_pool",
    "max_pool",
    "mean",
    "residual",
    "depthwise residual",
    "dense residual",
    "sums",
    "dense sums",
    "matmul",
)
sizes, channels = st.integers(1, 9), st.sampled_from([1, 3, 4, 7, 16, 17, 24, 33])


def net_of(kind: str, data: st.DataObject) -> Net:
    """A net whose last op is of `kind`, with random shapes and windows."""
    b = Builder(kind, seed=data.draw(st.integers(0, 99)))
    shape = (1, data.draw(sizes), data.draw(sizes), data.draw(channels))
    kernel, stride = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    made = data.draw(channels)
    x = b.input(*shape) if "dense" not in kind else b.input(*features(data))
    match kind:
        case "conv2d" | "sums":
            y = b.conv(x, made, (kernel, data.draw(st.integers(1, 4))), stride)
        case "depthwise_conv2d":
            y = b.depthwise(x, kernel, stride)
        case "dense" | "dense sums":
            y = b.dense(x, made)
        case "add":
            y = b.add(x, b.input(*shape))
        case "average_pool" | "max_pool":
            y = b.pool(x, kernel, stride, maximum=kind == "max_pool")
        case "mean":
            y = b.mean(x)
        case "residual":
            y = b.add(*data.draw(st.permutations([b.input(*shape), b.conv(x, shape[-1], kernel)])))
        case "dense residual":
            y = b.dense(x, made)
            y = b.add(*data.draw(st.permutations([b.input(*b.tensors[y].shape), y])))
        case _:
            y = b.add(*data.draw(st.permutations([x, b.depthwise(x, kernel)])))
    net = b.net(y)
    net = net.with_ops(tuple(varied(op, net, data) for op in net.ops))
    net = of_four_bits(net) if data.draw(st.booleans()) else net
    if "sums" in kind:
        return one_of_its_sums(net, data)
    net = replace(net, rounds_once=data.draw(st.booleans()))
    return net.with_ops((fuse(net.ops),)) if len(net.ops) > 1 else net


def of_four_bits(net: Net) -> Net:
    """The net with weights from -8 to 7."""
    weights = {op.inputs[1] for op in net.ops if len(op.inputs) > 2}
    return replace(net, constants={name: v >> 4 if name in weights else v for name, v in net.constants.items()})


def random_product(data: st.DataObject) -> Net:
    """A product of activations of any rank and order of axes."""
    bundle = Bundle(np.random.default_rng(data.draw(st.integers(0, 1 << 20))))
    matmul(bundle)
    return replace(bundle.net(), rounds_once=data.draw(st.booleans()))


def one_of_its_sums(net: Net, data: st.DataObject) -> Net:
    """Sums over some of the channels of the only op's input."""
    (op,), depth = net.ops, net.tensor(net.inputs[0]).shape[-1]
    if depth == 1:
        return net
    cut = cut_in_sums(net, op.name, data.draw(st.integers(2, min(depth, 5))))
    return cut.alone(data.draw(st.sampled_from([each for each in cut.ops if each.kind == "sums"])))


def features(data: st.DataObject) -> tuple[int, ...]:
    """The shape of one or several rows of features."""
    rows = data.draw(st.sampled_from([(1,), (1,), (5,), (20,), (1, 20), (3, 7), (1, 5, 6)]))
    return (*rows, data.draw(st.integers(1, 1200 if rows == (1,) else 90)))


def varied(op: Op, net: Net, data: st.DataObject) -> Op:
    """The op with a clamp, and dilated. Padding at the far ends keeps the shape of the output."""
    if op.kind == "mean":
        return op
    low = data.draw(st.integers(-128, 0))
    attributes = replace(op.attributes, clamp=(low, data.draw(st.integers(low + 1, 127))))  # pyright: ignore
    if isinstance(attributes, Conv2d | DepthwiseConv2d):
        kernel, dilation = net.tensor(op.inputs[1]).shape[1:3], (data.draw(st.integers(1, 3)), data.draw(sizes))
        top, left, bottom, right = attributes.padding
        more = [(size - 1) * (step - 1) for size, step in zip(kernel, dilation, strict=True)]
        padding = (top, left, bottom + more[0], right + more[1])
        attributes = replace(attributes, dilation=dilation, padding=padding)
    return replace(op, attributes=attributes)


def part_of(net: Net, op: Op, data: st.DataObject) -> Box:
    shape = net.tensor(op.output).shape
    starts, stops = [0] * len(shape), list(shape)
    for axis in cuttable_axes(net, op):
        starts[axis] = data.draw(st.integers(0, shape[axis] - 1))
        stops[axis] = data.draw(st.integers(starts[axis] + 1, shape[axis]))
    return Box(tuple(starts), tuple(stops))


def around(box: Box, shape: tuple[int, ...], data: st.DataObject) -> Box:
    """A random box of the tensor around `box`."""
    starts = tuple(data.draw(st.integers(0, start)) for start in box.start)
    stops = tuple(data.draw(st.integers(stop, size)) for stop, size in zip(box.stop, shape, strict=True))
    return Box(starts, stops)


def cut(value: np.ndarray, box: Box) -> np.ndarray:
    return value[tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, derandomize=True)
@given(data=st.data())
def test_any_tile_of_any_shape(kind: str, data: st.DataObject) -> None:
    net = random_product(data) if kind == "matmul" else net_of(kind, data)
    (op,) = net.ops
    assert ARRAY.refusal(net, op) is None
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = evaluate(net, [rng.integers(-128, 128, net.tensor(name).shape, np.int8) for name in net.inputs])
    box, memory = part_of(net, op, data), Memory()
    operands = []
    for index, (name, need) in enumerate(zip(net.activations(op), needs(net, op, box), strict=True)):
        tensor = net.tensor(name)
        operands.append(memory.operand(f"in{index}", tensor, need, around(need, tensor.shape, data)))
        memory.sram[memory.bytes_of(operands[-1])] = cut(values[name], need).view(np.uint8)
    output = net.tensor(op.output)
    result = memory.operand("out", output, box, around(box, output.shape, data))
    before, end = memory.sram.copy(), memory.free
    cycles = memory.run(ARRAY.lower(Tile("tile", net, op, result, tuple(operands))))
    places = memory.bytes_of(result)
    assert np.array_equal(memory.sram[places].view(output.dtype), cut(values[op.output], box))
    predicted = ARRAY.cost(net, op, box).cycles
    apart = kind == "add" and box.shape[-1] < output.shape[-1]  # bytes may lie between the pixels
    assert cycles == predicted or (apart and cycles > predicted)
    outside = np.setdiff1d(np.arange(96, end), places)
    assert np.array_equal(memory.sram[outside], before[outside]), "it wrote beside its tile"


def test_a_row_times_rows_that_are_summed_up_streams_these() -> None:
    """Scores of a token's query and the keys. Streamed, sixteen keys are computed side by side; held, only four."""
    bundle = Bundle(np.random.default_rng(5))
    query, keys = bundle.activation((1, 8, 1, 64)), bundle.activation((1, 8, 32, 64))
    bundle.add(Matmul(second=(0, 1, 3, 2)), query, keys)
    net = bundle.net()
    box = Box((0, 3, 0, 0), (1, 4, 1, 32))
    figures = ARRAY.figures
    cycles = partial(figures.convolution, patch=Patch(1, 64), along_pixels=True, flags=Flags(second=True))
    assert ARRAY.cost(net, net.ops[0], box).cycles == cycles(32, 1) < cycles(1, 32) / 3
