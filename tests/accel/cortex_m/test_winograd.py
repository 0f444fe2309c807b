"""3x3 convolutions by Winograd's algorithm, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.code.assembly import CodeWorth
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.winograd import winograd
from npukit.accel.cortex_m.layout import NO_PADDING, Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops import Padding
from npukit.net.ops.table import macs

FAST, SMALL = 0.0, 1e9
"""What a byte of code is worth: nothing, and more than anything."""


def kernel_for(layer: OpView, output_border: Padding = NO_PADDING, worth: float = FAST) -> Kernel:
    source = Layout(Order.PIXELS, layer.input_shape, layer.window.padding)
    kernel = winograd(layer, source, Layout(Order.PIXELS, layer.output_shape, output_border), CodeWorth(worth))
    assert isinstance(kernel, Kernel), kernel.reason
    return kernel


def check(layer: OpView, kernel: Kernel, x: np.ndarray) -> None:
    run = laboratory.run(kernel, laboratory.pack(kernel.inputs[0], x, layer.input_zero))
    got = laboratory.unpack(kernel.output, run.output, layer.output_zero)
    np.testing.assert_array_equal(got, reference.convolution(layer, x))
    assert run.instructions == kernel.instructions
    assert run.stack_bytes == kernel.stack_bytes


@pytest.mark.parametrize("seed", range(12))
def test_random_convolutions(seed: int):
    rng = np.random.default_rng(seed)
    height, width, channels = (int(v) for v in rng.integers((4, 6, 1), (9, 14, 20)))
    top, left, bottom, right = (int(v) for v in rng.integers(0, 2, 4))
    layer = layers.conv(
        rng,
        (height, width, channels),
        2 * int(rng.integers(1, 6)),
        (3, 3),
        padding=(top, left, bottom, right),
        relu=bool(seed % 2),
        extreme=seed % 3 == 2,
    )
    x = layers.activations(rng, layer.input_shape, extreme=seed % 3 == 2)
    fast, small = (kernel_for(layer, worth=worth) for worth in (FAST, SMALL))
    assert small.routine.bytes < fast.routine.bytes
    for kernel in (fast, small):
        check(layer, kernel, x)


def test_the_largest_transformed_weights():
    """Weights all of one sign transform to nine times themselves; the sums inside may wrap."""
    rng = np.random.default_rng(5)
    layer = layers.conv(rng, (8, 8, 16), 4, (3, 3), padding=(1, 1, 1, 1), extreme=True)
    weights = layer.filter.weights.copy()
    weights[0], weights[1] = 127, -127
    x = layers.activations(rng, layer.input_shape, extreme=True)
    x[:4], x[4:] = 127, -128
    layer = layers.with_weights(layer, weights)
    check(layer, kernel_for(layer), x)


@pytest.mark.parametrize("size", [(6, 8), (6, 11)])
def test_the_output_may_lie_on_the_input(size: tuple[int, int]):
    rng = np.random.default_rng(6)
    layer = layers.conv(rng, (*size, 8), 8, (3, 3), padding=(1, 1, 1, 1))
    kernel = kernel_for(layer)
    assert kernel.may_overwrite == (0,)
    x = layers.activations(rng, layer.input_shape, extreme=False)
    run = laboratory.run(kernel, laboratory.pack(kernel.inputs[0], x, layer.input_zero), over=0)
    got = laboratory.unpack(kernel.output, run.output, layer.output_zero)
    np.testing.assert_array_equal(got, reference.convolution(layer, x))


def test_rows_that_overlap_keep_the_output_off_the_input():
    layer = layers.conv(np.random.default_rng(6), (7, 8, 8), 8, (3, 3), padding=(1, 1, 1, 1))
    assert kernel_for(layer).may_overwrite == ()


# Instructions per product, as measured for prototypes by hand.
@pytest.mark.parametrize(("size", "channels", "prototype"), [(32, 16, 0.441), (16, 32, 0.359), (8, 64, 0.318)])
def test_no_more_instructions_than_the_prototypes(size: int, channels: int, prototype: float):
    rng = np.random.default_rng(2)
    layer = layers.conv(rng, (size, size, channels), channels, (3, 3), padding=(1, 1, 1, 1))
    kernel = kernel_for(layer, (1, 1, 1, 1))
    check(layer, kernel, layers.activations(rng, layer.input_shape, extreme=False))
    assert kernel.instructions <= prototype * macs(layer.net, layer.op)


def test_both_assemblers_agree_with_the_predicted_size():
    layer = layers.conv(np.random.default_rng(3), (7, 9, 5), 4, (3, 3), padding=(1, 1, 1, 1), relu=False)
    for worth in (FAST, SMALL):
        laboratory.check_assemblers(kernel_for(layer, worth=worth))


@pytest.mark.parametrize(("strides", "shape", "words"), [((2, 2), (8, 8, 4), "stride"), ((1, 1), (3, 8, 4), "pair")])
def test_refusals_name_the_fact(strides: tuple[int, int], shape: tuple[int, int, int], words: str):
    layer = layers.conv(np.random.default_rng(3), shape, 4, (3, 3), strides=strides)
    refused = winograd(layer, Layout(Order.PIXELS, shape), Layout(Order.PIXELS, layer.output_shape))
    assert isinstance(refused, Refusal)
    assert words in refused.reason
