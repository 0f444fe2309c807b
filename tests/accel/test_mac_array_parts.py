"""Sums with more bits than the array's accumulators: computed in parts, and exact for the worst inputs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accel.mac_array_memory import Memory
from accel.nets import conv, dense, depthwise, loud
from accel.test_mac_array_tiles import around, cut, net_of, part_of
from firmware.host import host_library
from npukit.accel.interface import Address, Call, Lowered, Tile
from npukit.accel.mac_array.plugin import MacArray
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.net import Net, Op, fuse
from npukit.net.ops import Add, Conv2d
from npukit.net.receptive import needs
from npukit.net.reference.interpreter import evaluate

SLOT = load_board("pe-mesh").accelerator[0]
ARRAY = MacArray(SLOT)
NARROW = MacArray(SLOT.model_copy(update={"figures": {**SLOT.figures, "accumulator_bits": 18}}))
"""A plug-in configured with narrower accumulators: it computes even sums of small filters in parts."""
PARTS = 1
"""Index of the word in `layer` with the number of parts."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("parts")
    return host_library(folder, "mac_array/mac_array_parts.c", "mac_array/mac_array_on_core.c")


def called(library: ctypes.CDLL, memory: Memory, lowered: Lowered) -> int:
    """Call the driver function on the host, with the constants in `memory`. Returns the function's status."""
    for constant in lowered.constants:
        place = memory.take(constant.symbol, constant.values.nbytes, constant.align)
        memory.sram[place : place + constant.values.nbytes] = np.frombuffer(constant.values.tobytes(), np.uint8)
    assert isinstance(lowered.code, Call)
    base = memory.sram.ctypes.data
    places = [a for a in lowered.code.arguments if isinstance(a, Address)]
    return library[lowered.code.function](*(ctypes.c_void_p(base + memory.places[a.symbol] + a.offset) for a in places))


def computed(
    library: ctypes.CDLL, array: MacArray, net: Net, box: Box, hold: Callable[..., Box], x: np.ndarray
) -> None:
    """Compare a computed tile with the reference, and check that no other memory changed."""
    (op,) = net.ops
    want, memory = cut(evaluate(net, [x])[op.output], box), Memory()
    (need,) = needs(net, op, box)
    source, result, cost = net.tensor(op.inputs[0]), net.tensor(op.output), array.cost(net, op, box)
    operand = memory.operand("in", source, need, hold(need, source.shape))
    memory.sram[memory.bytes_of(operand)] = cut(x, need).view(np.uint8)
    output = memory.operand("out", result, box, hold(box, result.shape))
    memory.take("scratch", cost.scratch_bytes, 16)
    lowered = array.lower(Tile("tile", net, op, output, (operand,), Address("scratch")))
    before, places = memory.sram.copy(), memory.bytes_of(output)
    assert called(library, memory, lowered) == 0
    assert np.array_equal(memory.sram[places].view(np.int8), want)
    beside = np.setdiff1d(np.arange(memory.places["scratch"]), places)
    assert np.array_equal(memory.sram[beside], before[beside]), "it wrote beside its tile"


@pytest.mark.parametrize("kind", ["conv2d", "dense"])
@settings(max_examples=40, derandomize=True)
@given(data=st.data())
def test_any_tile_of_any_shape_in_any_number_of_parts(kind: str, library: ctypes.CDLL, data: st.DataObject) -> None:
    net = net_of(kind, data)
    (op,) = net.ops
    assume(NARROW.refusal(net, op) is None)
    box = part_of(net, op, data)
    assume(NARROW.cost(net, op, box).scratch_bytes)
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        -128, 128, net.tensor(op.inputs[0]).shape, np.int8
    )
    computed(library, NARROW, net, box, lambda need, shape: around(need, shape, data), x)


def worst(net: Net, sign: int) -> np.ndarray:
    """The input with the largest sum of the first channel for a `sign` of 1, and the smallest for -1."""
    source, weights = net.tensor("x"), net.constants["w"][0].astype(int)
    if source.shape[1:] == weights.shape or source.shape[1:] == weights.reshape(-1).shape:
        return np.where(sign * weights > 0, 127, -128).astype(np.int8).reshape(source.shape)
    return np.random.default_rng(1).choice(np.array([-128, 127], np.int8), source.shape)


def valid(net: Net) -> Net:
    """The net without padding, with a kernel over the whole input."""
    (op,) = net.ops
    _, height, width, _ = net.constants["w"].shape
    shape = (1, 1, 1, net.tensor("y").shape[-1])
    source = replace(net.tensor("x"), shape=(1, height, width, net.tensor("x").shape[-1]))
    tensors = {**net.tensors, "x": source, "y": replace(net.tensor("y"), shape=shape)}
    return replace(net, ops=(replace(op, attributes=Conv2d()),), tensors=tensors)


def with_scales(net: Net, scale: float) -> Net:
    quantization = net.tensor("w").quantization
    assert quantization
    tensor = replace(net.tensor("w"), quantization=replace(quantization, scales=(scale,) * len(quantization.scales)))
    return replace(net, tensors={**net.tensors, "w": tensor})


DEEP = {
    "a dense layer": (loud(dense(20_000, 4)), 2),
    "a kernel of one pixel": (loud(conv(1, 1, 20_000, 3, 1)), 2),
    "a kernel over all of the input": (valid(loud(conv(3, 3, 2500, 3))), 2),
    "with padding": (loud(conv(2, 3, 2100, 3)), 2),
    "a bias alone": (with_scales(conv(2, 2, 1500, 5, 1, bias=1 << 29), 4e-7), 1),
}


@pytest.mark.parametrize("what", DEEP)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_worst_of_inputs(what: str, sign: int, library: ctypes.CDLL) -> None:
    net, parts = DEEP[what]
    (op,) = net.ops
    assert ARRAY.refusal(net, op) is None
    box = Box.whole(net.tensor("y").shape)
    x = worst(net, sign)
    assert len(np.unique(evaluate(net, [x])["y"])) > 1 or box.elements < 3
    computed(library, ARRAY, net, box, lambda need, shape: Box.whole(shape), x)
    assert number_of_parts(net) == parts


def number_of_parts(net: Net) -> int:
    (op,) = net.ops
    memory, box = Memory(), Box.whole(net.tensor("y").shape)
    (whole,) = needs(net, op, box)
    operand = memory.operand("in", net.tensor("x"), whole, whole)
    output = memory.operand("out", net.tensor("y"), box, box)
    lowered = ARRAY.lower(Tile("tile", net, op, output, (operand,), Address("scratch")))
    return int(lowered.constants[-1].values[PARTS])


def test_what_no_parts_help_is_refused() -> None:
    net = with_scales(depthwise(4, 4, 64), 2e-7)
    biases = np.linspace(1 << 29, 1 << 30, 64).astype(np.int32)
    net = replace(net, constants={**net.constants, "b": biases})
    assert ARRAY.refusal(net, net.ops[0]) == "its sums can need 31 bits, the accumulators have 29"
    net = with_scales(conv(2, 2, 300, 4, bias=(1 << 31) - 1), 1e-7)
    full = {**net.constants, "b": np.full(4, (1 << 31) - 1, np.int32)}
    assert ARRAY.refusal(replace(net, constants=full), net.ops[0]) == "its sums can need 33 bits, the core has 32"


def test_nothing_is_added_by_the_array_to_what_the_core_requantises() -> None:
    net = loud(dense(20_000, 4))
    tensors = {**net.tensors, "other": replace(net.tensor("y"), name="other"), "z": replace(net.tensor("y"), name="z")}
    added = Op("sum", Add(), ("y", "other"), ("z",))
    both = replace(net, ops=(net.ops[0], added), tensors=tensors, inputs=("x", "other"), outputs=("z",))
    reason = ARRAY.refusal(both, fuse(both.ops))
    assert reason == "the core requantises its sums, so that the array cannot add to them"
