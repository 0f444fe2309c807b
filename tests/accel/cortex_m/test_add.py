"""Elementwise sums and differences, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.add import add
from npukit.accel.cortex_m.layout import NO_PADDING, Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops import Add, Padding, Subtract


def check(layer: OpView, x: np.ndarray, y: np.ndarray, borders: tuple[Padding, Padding, Padding]) -> Kernel:
    layouts = [Layout(Order.PIXELS, layer.input_shape, border) for border in borders]
    kernel = add(layer, *layouts)
    assert isinstance(kernel, Kernel), kernel.reason
    operands = (laboratory.pack(layout, values, 7) for layout, values in zip(layouts, (x, y), strict=False))
    run = laboratory.run(kernel, *operands)
    got = laboratory.unpack(layouts[2], run.output, layer.output_zero)
    np.testing.assert_array_equal(got, reference.add(layer, x, y))
    assert run.instructions == kernel.instructions
    return kernel


@pytest.mark.parametrize("made", [Add(), Subtract()], ids=lambda made: made.kind)
@pytest.mark.parametrize("seed", range(10))
def test_every_pair_of_values(seed: int, made: Add | Subtract):
    rng = np.random.default_rng(seed)
    first, second = (float(v) for v in np.exp(rng.uniform(-4, 0, 2)))
    output = max(first, second) * float(rng.uniform(0.3, 2.5))
    zeros = [int(v) for v in rng.integers(-128, 128, 3)]
    layer = layers.add(
        (256, 256, 1), (first, second, output), (zeros[0], zeros[1], -128 if seed % 2 else zeros[2]), made
    )
    x, y = (v[..., None].astype(np.int8) for v in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    kernel = check(layer, x, y, (NO_PADDING, NO_PADDING, NO_PADDING))
    assert kernel.instructions <= (7.25 if seed % 2 else 8.25) * x.size


def test_tensors_with_borders():
    rng = np.random.default_rng(1)
    layer = layers.add((5, 7, 3), (0.02, 0.03, 0.05), (3, -7, 11))
    x, y = rng.integers(-128, 128, (2, 5, 7, 3)).astype(np.int8)
    laboratory.check_assemblers(check(layer, x, y, ((1, 1, 1, 1), NO_PADDING, (1, 0, 2, 1))))


@pytest.mark.parametrize("over", [0, 1])
def test_the_output_may_lie_on_an_input(over: int):
    rng = np.random.default_rng(1)
    layer = layers.add((5, 7, 3), (0.02, 0.03, 0.05), (3, -7, 11))
    bordered, smaller = (Layout(Order.PIXELS, layer.input_shape, border) for border in ((1, 1, 1, 1), (0, 0, 1, 1)))
    kernel = add(layer, bordered, bordered, smaller)
    assert isinstance(kernel, Kernel)
    assert kernel.may_overwrite == (0, 1)
    x, y = rng.integers(-128, 128, (2, 5, 7, 3)).astype(np.int8)
    run = laboratory.run(kernel, laboratory.pack(bordered, x, 3), laboratory.pack(bordered, y, -7), over=over)
    np.testing.assert_array_equal(laboratory.unpack(smaller, run.output, 11), reference.add(layer, x, y))


def test_planes_are_refused():
    layer = layers.add((4, 4, 4), (0.02, 0.03, 0.05), (-128, -128, -128))
    planes, pixels = (Layout(order, (4, 4, 4)) for order in (Order.PLANES8, Order.PIXELS))
    assert isinstance(add(layer, planes, pixels, pixels), Refusal)
