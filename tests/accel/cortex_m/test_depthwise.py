"""Depthwise convolutions on planes, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.depthwise import depthwise
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops.table import macs

HALFWORDS, BYTES = Order.PLANES16, Order.PLANES8


def kernel_for(layer: OpView, order: Order, target: Layout | None = None, *, transposed: bool = False) -> Kernel:
    source = Layout(order, layer.input_shape, transposed=transposed)
    kernel = depthwise(layer, source, target or Layout(Order.PIXELS, layer.output_shape, transposed=transposed))
    assert isinstance(kernel, Kernel), kernel.reason
    return kernel


def check(layer: OpView, kernel: Kernel, x: np.ndarray) -> None:
    run = laboratory.run(kernel, laboratory.pack(kernel.inputs[0], x, layer.input_zero))
    got = laboratory.unpack(kernel.output, run.output, layer.output_zero)
    np.testing.assert_array_equal(got, reference.depthwise(layer, x))
    assert run.instructions == kernel.instructions
    assert run.stack_bytes == kernel.stack_bytes


@pytest.mark.parametrize("order", [HALFWORDS, BYTES])
@pytest.mark.parametrize("seed", range(10))
def test_random_depthwise(seed: int, order: Order):
    rng = np.random.default_rng(seed)
    height, width, channels = (int(v) for v in rng.integers((3, 3, 1), (12, 12, 6)))
    top, left, bottom, right = (int(v) for v in rng.integers(0, 3, 4))
    down, across = (int(v) for v in rng.integers(1, 3, 2))
    layer = layers.depthwise(
        rng,
        (height, width, channels),
        strides=(down, across),
        padding=(top, left, bottom, right),
        extreme=seed % 4 == 3,
    )
    x = layers.activations(rng, layer.input_shape, extreme=seed % 3 == 2)
    check(layer, kernel_for(layer, order, transposed=seed % 5 == 1), x)


@pytest.mark.parametrize("order", [HALFWORDS, BYTES])
@pytest.mark.parametrize("kernel", [(5, 5), (7, 7), (1, 1), (2, 2), (3, 1), (1, 6), (4, 3), (3, 5)])
@pytest.mark.parametrize("stride", [1, 2])
def test_other_kernels(kernel: tuple[int, int], stride: int, order: Order):
    rng = np.random.default_rng(sum(kernel))
    padding = (kernel[0] // 2, kernel[1] // 2, (kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
    layer = layers.depthwise(rng, (9, 13, 3), kernel=kernel, strides=(stride, stride), padding=padding)
    check(layer, kernel_for(layer, order), layers.activations(rng, layer.input_shape, extreme=False))


@pytest.mark.parametrize("order", [HALFWORDS, BYTES])
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5)])
@pytest.mark.parametrize("spread", [0, 12])
def test_an_output_without_relu(spread: int, kernel: tuple[int, int], order: Order):
    rng = np.random.default_rng(spread)
    layer = layers.depthwise(rng, (6, 9, 8), kernel=kernel, padding=(1, 1, 1, 1), relu=False)
    shifts = np.maximum(layer.requantization.shifts - rng.integers(0, spread + 1, 8), -19)
    layer = layers.with_shifts(layer, shifts)
    check(layer, kernel_for(layer, order), layers.activations(rng, layer.input_shape, extreme=False))


@pytest.mark.parametrize("order", [HALFWORDS, BYTES])
@pytest.mark.parametrize("target", [HALFWORDS, BYTES])
def test_planes_to_planes(order: Order, target: Order):
    rng = np.random.default_rng(7)
    layer = layers.depthwise(rng, (6, 9, 5))
    kernel = kernel_for(layer, order, Layout(target, layer.output_shape))
    check(layer, kernel, layers.activations(rng, layer.input_shape, extreme=False))


@pytest.mark.parametrize("order", [HALFWORDS, BYTES])
def test_a_right_shift_for_each_channel(order: Order):
    rng = np.random.default_rng(9)
    layer = layers.depthwise(rng, (6, 7, 8))
    shifts = np.maximum(layer.requantization.shifts - rng.integers(0, 14, 8), -19)
    layer = layers.with_shifts(layer, shifts)
    check(layer, kernel_for(layer, order), layers.activations(rng, layer.input_shape, extreme=False))


def test_an_output_with_a_border():
    rng = np.random.default_rng(8)
    layer = layers.depthwise(rng, (6, 6, 4))
    kernel = kernel_for(layer, BYTES, Layout(Order.PIXELS, layer.output_shape, border=(1, 1, 1, 1)))
    check(layer, kernel, layers.activations(rng, layer.input_shape, extreme=False))


@pytest.mark.parametrize(("channels", "transposed"), [(1100, False), (2100, True)])
def test_rows_that_are_stored_beyond_what_an_instruction_reaches(channels: int, transposed: bool):
    rng = np.random.default_rng(4)
    layer = layers.depthwise(rng, (3, 4, channels))
    kernel = kernel_for(layer, BYTES, transposed=transposed)
    check(layer, kernel, layers.activations(rng, layer.input_shape, extreme=False))


# Instructions per product, as measured for prototypes by hand.
@pytest.mark.parametrize(
    ("shape", "strides", "order", "prototype"),
    [
        ((5, 25, 64), (1, 1), HALFWORDS, 1.266),
        ((5, 25, 64), (1, 1), BYTES, 1.554),
        ((48, 48, 8), (1, 1), HALFWORDS, 1.235),
        ((48, 48, 8), (1, 1), BYTES, 1.512),
        ((48, 48, 16), (2, 2), HALFWORDS, 1.415),
        ((48, 48, 16), (2, 2), BYTES, 1.859),
        ((6, 6, 128), (1, 1), HALFWORDS, 1.361),
        ((3, 3, 256), (1, 1), BYTES, 2.025),
    ],
)
def test_no_more_instructions_than_the_prototypes(shape, strides, order, prototype):
    padding = (1, 1, 1, 1) if strides == (1, 1) else (0, 0, 1, 1)
    layer = layers.depthwise(np.random.default_rng(2), shape, strides=strides, padding=padding)
    kernel = kernel_for(layer, order)
    check(layer, kernel, layers.activations(np.random.default_rng(3), shape, extreme=False))
    assert kernel.instructions <= prototype * macs(layer.net, layer.op)


@pytest.mark.parametrize("kernel", [(3, 3), (5, 5)])
def test_both_assemblers_agree_with_the_predicted_size(kernel: tuple[int, int]):
    layer = layers.depthwise(np.random.default_rng(3), (5, 25, 4), kernel=kernel)
    for order in (HALFWORDS, BYTES):
        laboratory.check_assemblers(kernel_for(layer, order))


def test_refusals_name_the_fact():
    layer = layers.depthwise(np.random.default_rng(3), (7, 7, 4), kernel=(9, 9), padding=(2, 2, 2, 2))
    refused = depthwise(layer, Layout(BYTES, layer.input_shape), Layout(Order.PIXELS, layer.output_shape))
    assert isinstance(refused, Refusal)
    assert "9x9" in refused.reason
