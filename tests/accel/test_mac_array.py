"""The MAC array's plug-in: supported ops, costs and packed constants."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.nets import OUTPUT, add, add_constant, conv, dense, depthwise, pool
from accel.test_core_moves import cut, run
from codegen.random_ops import Bundle
from npukit.accel.cpu import Cpu
from npukit.accel.geometry import Plane, Window
from npukit.accel.interface import Address, Commands, Operand, Tile
from npukit.accel.mac_array.cycles import Figures, Patch
from npukit.accel.mac_array.filters import accumulator_bounds, bits_needed, filter_of
from npukit.accel.mac_array.packing import WeightLayout, pack_parameters
from npukit.accel.mac_array.plugin import COMMAND_BYTES, MacArray
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import Add
from npukit.net.requantize import multiply_by_quantized_multiplier
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

BOARD = load_board("pe-mesh")
SLOT = BOARD.accelerator[0]
ARRAY = MacArray(SLOT)
NETS = [conv(8, 8, 16, 16), conv(5, 7, 3, 20, 1), depthwise(6, 6, 24), dense(40, 12), add(4, 4, 16), pool(5, 5, 32)]
NETS += [add_constant((1, 3, 5, 7)), add_constant((6, 9), first=True)]


def whole(net: Net, name: str) -> Operand:
    tensor = net.tensor(name)
    channels = tensor.shape[-1]
    return Operand(tensor, Box.whole(tensor.shape), Address("arena"), tensor.shape[-2] * channels, channels)


def tile(net: Net) -> Tile:
    (op,) = net.ops
    return Tile("t", net, op, whole(net, op.output), tuple(whole(net, n) for n in net.activations(op)))


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.ops[0].name)
def test_constant_bytes_are_those_of_the_lowered_tile(net: Net) -> None:
    lowered = ARRAY.lower(tile(net))
    packed = sum(constant.values.nbytes for constant in lowered.constants)
    cost = ARRAY.cost(net, net.ops[0], Box.whole(net.tensor("y").shape))
    assert isinstance(lowered.code, Commands)
    assert cost.constant_bytes == packed + COMMAND_BYTES * len(lowered.code.structs)


@pytest.mark.parametrize("net", NETS, ids=lambda net: net.ops[0].name)
def test_it_takes_what_it_can(net: Net) -> None:
    assert ARRAY.refusal(net, net.ops[0]) is None


def test_a_pool_that_rescales_is_refused() -> None:
    net = pool(5, 5, 32, output=OUTPUT)
    assert ARRAY.refusal(net, net.ops[0]) == "input and output have different scales"


def test_cycles_of_the_manuals_formulas() -> None:
    figures = Figures.of(SLOT)
    pointwise, image = Patch(1, 64), Plane(25, 5, 64)
    # 125 pixels, 64 channels, K = 64: G = 32, B = 4, r = 4. The products are the longest part of a step.
    assert figures.convolution(125, 64, pointwise, along_pixels=False) == 28 + 4 * 4 + 32 * 4 * 64 + 8 + 16
    # Along pixels G = 8, B = 16, l = 8: the transposer and the writes fill the port.
    assert figures.convolution(125, 64, pointwise, along_pixels=True) == 28 + 16 * (2 + 8) + 8 * 16 * 80 + 16 + 8 + 16
    # A single pixel takes two lanes, and the weights the whole port.
    assert figures.convolution(1, 64, pointwise, along_pixels=False) == 28 + 4 + 4 * (32 + 1 + 5) + 8 + 4
    # B = 4, Y = 7, columns of 6 pixels, of which 3 are under the kernel and one is new in each step.
    assert figures.depthwise(image, Window((3, 3))) == 28 + 4 * (5 + 7 * (2 * 6 + 5 * 16)) + 8 + 16


def test_weights_lie_sixteen_channels_abreast() -> None:
    weights = np.arange(20 * 3, dtype=np.int8).reshape(20, 3)
    packed = WeightLayout(16).packed(weights).reshape(2, 3, 16)
    assert packed[1, 2, 3] == weights[19, 2]
    assert not packed[1, :, 4:].any()
    narrow = WeightLayout(16, narrow=True).packed(weights)
    assert np.array_equal(narrow[:48], packed[0].ravel())
    assert np.array_equal(narrow[48:].reshape(3, 4), packed[1, :, :4])


def test_two_weights_of_four_bits_lie_in_a_byte() -> None:
    weights = np.array([[-8, 7, 3], [1, -1, 0], [2, 5, -6]], np.int8)
    along = WeightLayout(4, nibbles=True).packed(weights).view(np.uint8)
    assert along.tolist() == [0x18, 0x02, 0xF7, 0x05, 0x03, 0x0A, 0, 0], "a fourth row fills the second pair"
    across = WeightLayout(16, narrow=True, nibbles=True).packed(weights).view(np.uint8)
    assert across.reshape(3, 4)[:, :2].ravel().tolist() == [0x18, 0x02, 0xF7, 0x05, 0x03, 0x0A]


@given(st.integers(1, 70), st.integers(1, 20), st.sampled_from([(4, False), (16, False), (16, True)]), st.booleans())
def test_layouts_state_their_bytes(channels: int, depth: int, form: tuple[int, bool], nibbles: bool) -> None:
    layout = WeightLayout(*form, nibbles)
    stated = layout.bytes(channels, depth)
    assert stated == len(layout.packed(np.ones((channels, depth), np.int8)))
    assert stated <= WeightLayout(*form).bytes(channels, depth)


def test_weights_of_four_bits_take_half_the_memory_and_no_more_cycles() -> None:
    for net in (conv(9, 9, 32, 64), depthwise(9, 9, 32), dense(256, 64)):
        (op,) = net.ops
        weights = net.constants[op.inputs[1]]
        narrow = replace(net, constants={**net.constants, op.inputs[1]: weights >> 4})
        box = Box.whole(net.tensor(op.output).shape)
        before, after = (MacArray(SLOT).cost(each, op, box) for each in (net, narrow))
        assert before.constant_bytes - after.constant_bytes == weights.size // 2
        assert after.cycles <= before.cycles
        code = ARRAY.lower(tile(narrow)).code
        assert isinstance(code, Commands)
        assert all("MAC_ARRAY_NIBBLES" in str(dict(command.fields)["flags"]) for command in code.structs)


def test_parameters_lie_in_blocks() -> None:
    packed = pack_parameters(np.array([1, 2, -3]), np.array([4, 5, 6]), np.array([-1, 0, 1]), 4)
    assert len(packed) == 36
    assert packed[:16].view(np.int32).tolist() == [1, 2, -3, 0]
    assert packed[16:32].view(np.int32).tolist() == [4, 5, 6, 0]
    assert packed[32:].view(np.int8).tolist() == [-1, 0, 1, 0]


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(0, 1 << 29))
def test_bounds_hold_for_every_input(seed: int, depth: int, bias: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (3, depth)).astype(np.int8)
    biases = rng.integers(-bias, bias + 1, 3)
    low, high = accumulator_bounds(weights, biases)
    worst = np.where(weights > 0, 127, -128)
    assert (high == (weights.astype(np.int64) * worst).sum(1) + biases).all()
    sums = weights.astype(np.int64) @ rng.integers(-128, 128, depth) + biases
    assert ((low <= sums) & (sums <= high)).all()
    width = bits_needed(low, high)
    assert -(1 << (width - 1)) <= low.min()
    assert high.max() < 1 << (width - 1)


@given(st.integers(0, 2**32), st.sampled_from([1 << 20, 1 << 28, 1 << 30]))
def test_settled_channels_give_what_the_raw_ones_gave(seed: int, bias: int) -> None:
    net = conv(4, 4, 8, 16, 1, seed=seed, bias=bias)
    (op,) = net.ops
    settled, raw = filter_of(net, op, 29), filter_of(net, op, 64)
    pixels = np.random.default_rng(seed).integers(-128, 128, (50, 8))
    results = []
    for chosen in (settled, raw):
        sums = pixels @ chosen.weights.astype(np.int64).T + chosen.bias
        scaled = multiply_by_quantized_multiplier(sums, chosen.multipliers, chosen.shifts)
        results.append(np.clip(scaled - 7, -128, 127))
    assert (results[0] == results[1]).all()
    assert settled.bits <= raw.bits


@pytest.mark.parametrize("pes", [1, 4])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("shape", [(1, 5, 6, 7), (1, 12, 33), (40,)])
def test_a_constant_is_added_wherever_it_stands(
    shape: tuple[int, ...], pes: int, tmp_path: Path, *, first: bool
) -> None:
    """Position embeddings: each tile stores its part of the constant."""
    net = check_net(add_constant(shape, first=first))
    net = net.with_ops(tuple(op.placed("mac_array") for op in net.ops))
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu(), "mac_array": ARRAY}, max_pes=pes), cut(net, pes))
    assert run(net, planned, tmp_path).layers


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", [1, 4])
def test_what_is_added_to_several_rows_or_pixels_is_read_again(pes: int, tmp_path: Path) -> None:
    """A mask for the scores of all heads; a bias for all tokens, and for images."""
    bundle = Bundle(np.random.default_rng(3))
    for first, second in (((1, 8, 1, 40), (1, 1, 1, 40)), ((1, 1, 24), (1, 9, 24)), ((1, 5, 3, 7), (1, 1, 3, 7))):
        bundle.add(Add(), *map(bundle.activation, (first, second)))
        bundle.add(Add((-90, 80)), *map(bundle.activation, (second, first)))
    net = check_net(bundle.net())
    net = net.with_ops(tuple(op.placed("mac_array") for op in net.ops))
    assert not any(ARRAY.refusal(net, op) for op in net.ops)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu(), "mac_array": ARRAY}, max_pes=pes), cut(net, pes))
    assert run(net, planned, tmp_path).layers


def test_what_is_broadcast_along_channels_stays_on_the_core() -> None:
    bundle = Bundle(np.random.default_rng(3))
    bundle.add(Add(), *map(bundle.activation, ((1, 5, 3, 7), (1, 5, 3, 1))))
    assert ARRAY.refusal(bundle.net(), bundle.ops[0]) == "shapes (1, 5, 3, 7) and (1, 5, 3, 1) differ"
