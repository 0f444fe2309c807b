"""Random layers of every kind: whatever kernel takes one, between whatever layouts, equals the reference.

The laboratory also watches alignment, what is written around the output, the instructions and the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.accel.cortex_m.variants import kernels
from npukit.net.ops import Dense

Generator = np.random.Generator
EXAMPLES = settings(max_examples=12, derandomize=True)
SMALL, STRIDES, PAD = st.integers(1, 3), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(0, 2)
PADDING = st.tuples(PAD, PAD, PAD, PAD)
SEEDS = st.integers(0, 1 << 16)


def check(kernel: Kernel, operands: list[np.ndarray], zero: int, target_zero: int, expected: np.ndarray) -> None:
    memory = (laboratory.pack(layout, x, zero) for layout, x in zip(kernel.inputs, operands, strict=True))
    run = laboratory.run(kernel, *memory)
    np.testing.assert_array_equal(
        laboratory.unpack(kernel.output, run.output, target_zero), expected, err_msg=kernel.variant
    )
    assert (run.instructions, run.stack_bytes) == (kernel.instructions, kernel.stack_bytes)


def check_filter(layer: OpView, rng: Generator, compute: Callable, sources: list[Layout], orders: list[Order]) -> int:
    """Run every kernel of a layer; returns how many there are."""
    shape = layer.input_shape[2:] if isinstance(layer.attributes, Dense) else layer.input_shape
    x = layers.activations(rng, shape, extreme=bool(rng.integers(4) == 0))
    expected = compute(layer, x).reshape(layer.output_shape)
    found = list(_between(layer, sources, orders))
    for kernel in found:
        zeros = (layer.input_zero, layer.output_zero)
        check(kernel, [x.reshape(layer.input_shape)], *zeros, expected)
    return len(found)


def _between(layer: OpView, sources: list[Layout], orders: list[Order]) -> Iterator[Kernel]:
    for source, order in product(sources, orders):
        target = Layout(order, layer.output_shape, transposed=source.transposed)
        yield from (kernel for kernel in kernels(layer, [source], target) if isinstance(kernel, Kernel))


@pytest.mark.exhaustive
@EXAMPLES
@given(
    kernel=st.sampled_from([(1, 1), (3, 3), (2, 3), (4, 1), (1, 5)]),
    strides=st.sampled_from([(1, 1), (2, 2), (1, 2), (3, 1)]),
    padding=PADDING,
    channels=st.tuples(st.integers(1, 18), st.integers(1, 14)),
    transposed=st.booleans(),
    seed=SEEDS,
)
def test_convolutions(kernel, strides, padding, channels, transposed: bool, seed: int):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(5, 9)), int(rng.integers(5, 9)), channels[0])
    relu, extreme = bool(seed % 3), seed % 5 == 0
    layer = layers.conv(
        rng, shape, channels[1], kernel, strides=strides, padding=padding, relu=relu, extreme=extreme, spread=seed % 7
    )
    source = Layout(Order.PIXELS, shape, padding, transposed=transposed)
    orders = [list(Order)[seed % 3]] if relu else [Order.PIXELS]
    assert check_filter(layer, rng, reference.convolution, [source], orders)


@pytest.mark.exhaustive
@EXAMPLES
@given(
    kernel=st.sampled_from([(3, 3), (3, 3), (5, 5), (2, 2), (1, 4), (3, 1)]),
    strides=STRIDES,
    padding=PADDING,
    shape=st.tuples(st.integers(5, 11), st.integers(5, 11), st.integers(1, 5)),
    transposed=st.booleans(),
    seed=SEEDS,
)
def test_depthwise_convolutions(kernel, strides, padding, shape, transposed: bool, seed: int):
    rng = np.random.default_rng(seed)
    padding = tuple(min(side, kernel[axis % 2] - 1) for axis, side in enumerate(padding))
    relu = bool(seed % 3)
    layer = layers.depthwise(
        rng, shape, kernel=kernel, strides=strides, padding=padding, relu=relu, extreme=seed % 5 == 0
    )
    planes = [Layout(order, shape, transposed=transposed) for order in (Order.PLANES8, Order.PLANES16)]
    orders = [list(Order)[seed % 3]] if relu else [Order.PIXELS]
    assert check_filter(layer, rng, reference.depthwise, planes, orders)


@pytest.mark.exhaustive
@EXAMPLES
@given(inputs=st.integers(1, 200), outputs=st.integers(1, 40), relu=st.booleans(), seed=SEEDS)
def test_matrix_vector_products(inputs: int, outputs: int, relu: bool, seed: int):
    rng = np.random.default_rng(seed)
    layer = layers.dense(rng, inputs, outputs, relu=relu, extreme=seed % 5 == 0 and inputs < 150)
    source = Layout(Order.PIXELS, layer.input_shape)
    assert check_filter(layer, rng, reference.dense, [source], [Order.PIXELS])


@EXAMPLES
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    borders=st.tuples(PADDING, PADDING, PADDING),
    zeros=st.tuples(*[st.integers(-128, 127)] * 3),
    seed=SEEDS,
)
def test_sums(shape, borders, zeros, seed: int):
    rng = np.random.default_rng(seed)
    first, second = (float(v) for v in np.exp(rng.uniform(-4, 0, 2)))
    layer = layers.add(shape, (first, second, max(first, second) * float(rng.uniform(0.3, 2.5))), zeros)
    *sources, target = (Layout(Order.PIXELS, shape, border) for border in borders)
    operands = [layers.activations(rng, shape, extreme=False) for _ in sources]
    (kernel,) = kernels(layer, sources, target)
    assert isinstance(kernel, Kernel)
    check(kernel, operands, zeros[0], zeros[2], reference.add(layer, *operands))


@EXAMPLES
@given(
    kind=st.sampled_from(["average", "max"]),
    window=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    strides=STRIDES,
    shape=st.tuples(st.integers(5, 9), st.integers(5, 9), st.integers(4, 17)),
    border=PADDING,
    seed=SEEDS,
)
def test_pools(kind: str, window, strides, shape, border, seed: int):
    layer = layers.pool(kind, shape, window, strides)
    x = layers.activations(np.random.default_rng(seed), shape, extreme=False)
    (kernel,) = kernels(layer, [Layout(Order.PIXELS, shape, border)], Layout(Order.PIXELS, layer.output_shape))
    assert isinstance(kernel, Kernel)
    check(kernel, [x], 5, 5, reference.pool(layer, x))
