"""Convolutions as matrix products, run on an emulated core: exact, and exactly as many instructions as predicted."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.convolution import convolution
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops.table import macs

HALFWORDS, BYTES = Density.HALFWORDS, Density.BYTES


def kernel_for(layer: OpView, density: Density, order: Order = Order.PIXELS, *, transposed: bool = False) -> Kernel:
    source = Layout(Order.PIXELS, layer.input_shape, layer.window.padding)
    kernel = convolution(layer, source, Layout(order, layer.output_shape, transposed=transposed), density)
    assert isinstance(kernel, Kernel), kernel.reason
    return kernel


def check(layer: OpView, kernel: Kernel, x: np.ndarray) -> laboratory.Run:
    run = laboratory.run(kernel, laboratory.pack(kernel.inputs[0], x, layer.input_zero))
    got = laboratory.unpack(kernel.output, run.output, layer.output_zero)
    np.testing.assert_array_equal(got, reference.convolution(layer, x))
    assert run.instructions == kernel.instructions
    assert run.stack_bytes == kernel.stack_bytes
    return run


@pytest.mark.parametrize("density", [HALFWORDS, BYTES])
@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("extreme", [False, True])
def test_pointwise_into_every_layout(density: Density, order: Order, extreme: bool):
    rng = np.random.default_rng(5)
    layer = layers.conv(rng, (3, 7, 24), 10, extreme=extreme)
    check(layer, kernel_for(layer, density, order), layers.activations(rng, layer.input_shape, extreme=extreme))


@pytest.mark.parametrize("density", [HALFWORDS, BYTES])
@pytest.mark.parametrize("seed", range(4))
def test_a_dense_layer_on_several_rows_is_pointwise(density: Density, seed: int):
    rng = np.random.default_rng(seed)
    inputs, outputs, rows = int(rng.integers(1, 70)), int(rng.integers(1, 40)), int(rng.integers(2, 9))
    layer = layers.dense(rng, inputs, outputs, relu=bool(seed % 2), rows=rows)
    x = layers.activations(rng, (1, rows, inputs), extreme=seed == 3)
    kernel = kernel_for(layer, density)
    run = laboratory.run(kernel, laboratory.pack(kernel.inputs[0], x, layer.input_zero))
    wanted = [reference.dense(layer, row).ravel() for row in x[0]]
    np.testing.assert_array_equal(run.output.view(np.int8).reshape(rows, outputs), wanted)
    assert run.instructions == kernel.instructions


@pytest.mark.parametrize("seed", range(16))
def test_random_convolutions(seed: int):
    rng = np.random.default_rng(seed)
    kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
    top, left, bottom, right = (int(v) for v in rng.integers(0, 3, 4))
    shape = (int(rng.integers(5, 10)), int(rng.integers(5, 10)), int(rng.integers(1, 20)))
    strides = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    channels, relu, extreme = int(rng.integers(1, 20)), bool(seed % 2), seed % 5 == 4
    layer = layers.conv(
        rng,
        shape,
        channels,
        kernel,
        strides=strides,
        padding=(top, left, bottom, right),
        relu=relu,
        extreme=extreme,
    )
    order = Order.PIXELS if not relu else list(Order)[seed // 2 % 3]
    x = layers.activations(rng, shape, extreme=seed % 3 == 2)
    check(layer, kernel_for(layer, (HALFWORDS, BYTES)[seed % 2], order), x)


@pytest.mark.parametrize("channels", [5, 6, 7, 8, 106])
def test_inputs_scaled_for_pair_words(channels: int):
    """Right shifts of real layers are 6 to 8, where both pixels of a channel are stored as one word."""
    rng = np.random.default_rng(channels)
    layer = layers.conv(rng, (4, 6, channels), 8, spread=1)
    shifts = np.clip(layer.requantization.shifts, -8, -6)
    layer = layers.with_shifts(layer, shifts)
    kernel = kernel_for(layer, HALFWORDS, Order.PLANES16)
    assert "pair words" in kernel.variant
    check(layer, kernel, layers.activations(rng, layer.input_shape, extreme=False))


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("relu", [True, False])
def test_a_right_shift_for_each_channel(relu: bool, order: Order):
    rng = np.random.default_rng(7)
    layer = layers.conv(rng, (4, 6, 12), 8, relu=relu or order is not Order.PIXELS)
    shifts = layer.requantization.shifts - rng.integers(0, 12, 8)
    layer = layers.with_shifts(layer, np.maximum(shifts, -19))
    kernel = kernel_for(layer, HALFWORDS, order)
    assert ".." in kernel.condition.split(",")[0]
    check(layer, kernel, layers.activations(rng, layer.input_shape, extreme=False))


def test_dilation():
    rng = np.random.default_rng(1)
    layer = layers.conv(rng, (9, 11, 6), 8, (3, 2), dilation=(2, 3), padding=(2, 1, 2, 1))
    check(layer, kernel_for(layer, HALFWORDS), layers.activations(rng, layer.input_shape, extreme=False))


@pytest.mark.parametrize("order", [Order.PIXELS, Order.PLANES16])
def test_single_bytes_of_long_lines_lie_beyond_an_immediate(order: Order):
    """Each line of the window ends with bytes that are no whole word; the lines are thousands of bytes apart."""
    rng = np.random.default_rng(4)
    layer = layers.conv(rng, (7, 700, 3), 4, (5, 5), relu=True)
    check(layer, kernel_for(layer, HALFWORDS, order), layers.activations(rng, layer.input_shape, extreme=False))


# Instructions per product, as measured for prototypes by hand.
@pytest.mark.parametrize(
    ("shape", "channels", "density", "order", "prototype"),
    [
        ((25, 5, 64), 64, HALFWORDS, Order.PIXELS, 0.718),
        ((25, 5, 64), 64, BYTES, Order.PIXELS, 0.840),
        ((48, 48, 8), 16, HALFWORDS, Order.PIXELS, 1.301),
        ((24, 24, 16), 32, HALFWORDS, Order.PIXELS, 0.953),
        ((6, 6, 128), 128, HALFWORDS, Order.PIXELS, 0.680),
        ((3, 3, 256), 256, HALFWORDS, Order.PIXELS, 0.731),
    ],
)
def test_no_more_instructions_than_the_prototypes(shape, channels, density, order, prototype):
    rng = np.random.default_rng(2)
    layer = layers.conv(rng, shape, channels)
    kernel = kernel_for(layer, density, order)
    check(layer, kernel, layers.activations(rng, shape, extreme=False))
    assert kernel.instructions <= prototype * macs(layer.net, layer.op)


def test_both_assemblers_agree_with_the_predicted_size():
    layer = layers.conv(np.random.default_rng(3), (5, 7, 13), 9, (3, 3), padding=(1, 1, 1, 1))
    for density in (HALFWORDS, BYTES):
        kernel = kernel_for(layer, density)
        laboratory.check_assemblers(kernel)


def test_layers_of_one_shape_share_their_routine():
    first, second = (layers.conv(np.random.default_rng(seed), (4, 4, 8), 8, spread=0) for seed in (1, 2))
    assert kernel_for(first, HALFWORDS).routine == kernel_for(second, HALFWORDS).routine


def test_a_refusal_names_the_fact():
    layer = layers.conv(np.random.default_rng(4), (4, 4, 8), 8, relu=False)
    source, target = (Layout(order, (4, 4, 8)) for order in (Order.PIXELS, Order.PLANES8))
    refused = convolution(layer, source, target, HALFWORDS)
    assert isinstance(refused, Refusal)
    assert "zero point" in refused.reason


def test_pixels_that_are_stored_beyond_what_an_instruction_reaches_are_refused():
    layer = layers.conv(np.random.default_rng(4), (1, 3, 2), 4097)
    source, target = Layout(Order.PIXELS, layer.input_shape), Layout(Order.PIXELS, layer.output_shape)
    refused = convolution(layer, source, target, HALFWORDS)
    assert isinstance(refused, Refusal)
    assert "4097 bytes" in refused.reason
