"""Kernels generated for the core, of every kind: inputs, and outputs by the references in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from accel.cortex_m import laboratory, layers, reference, test_convolution, test_dense, test_depthwise, test_winograd
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.add import add
from npukit.accel.cortex_m.kernels.border import copy_with_border, fill_border
from npukit.accel.cortex_m.kernels.pool import pool
from npukit.accel.cortex_m.kernels.to_planes import copy_to_planes
from npukit.accel.cortex_m.layout import NO_PADDING, Layout, Order
from npukit.accel.cortex_m.op_view import OpView


@dataclass(frozen=True)
class Case:
    """A kernel, the contents of its inputs, and the expected output (None: not checked)."""

    kernel: Kernel
    inputs: tuple[np.ndarray, ...]
    output: np.ndarray | None
    zero: int = 0
    """Value of the output's border, if any."""


def cases() -> dict[str, dict[str, Case]]:
    """Kernels of every kind and several shapes, by name, in groups of one program each."""
    groups = {
        "convolutions": (_convolutions,),
        "Winograd and depthwise": (_winograds, _depthwises),
        "the rest": (_denses, _adds, _pools, _copies),
    }
    return {
        group: {name: case for make in makers for name, case in make(np.random.default_rng(3))}
        for group, makers in groups.items()
    }


def _made(kernel: Kernel | Refusal) -> Kernel:
    assert isinstance(kernel, Kernel), kernel.reason
    return kernel


def _filter(kernel: Kernel, layer: OpView, compute: Callable) -> Case:
    x = layers.activations(np.random.default_rng(1), layer.input_shape, extreme=False)
    packed = laboratory.pack(kernel.inputs[0], x, layer.input_zero)
    return Case(kernel, (packed,), compute(layer, x), layer.output_zero)


def _convolutions(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    shapes = {
        "1x1": layers.conv(rng, (3, 7, 24), 10),
        "3x3": layers.conv(rng, (5, 6, 5), 7, (3, 3), padding=(1, 1, 1, 1), spread=6),
        "2x3, stride 2": layers.conv(rng, (6, 7, 3), 9, (2, 3), strides=(2, 2), extreme=True),
    }
    for name, layer in shapes.items():
        for density in Density:
            for order in Order:
                kernel = test_convolution.kernel_for(layer, density, order)
                yield f"convolution {name}, {density}, {order}", _filter(kernel, layer, reference.convolution)


def _winograds(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    for size, channels in (((6, 8, 8), 8), ((5, 7, 3), 2)):
        layer = layers.conv(rng, size, channels, (3, 3), padding=(1, 1, 1, 1), relu=channels > 2)
        for worth in (test_winograd.FAST, test_winograd.SMALL):
            kernel = test_winograd.kernel_for(layer, worth=worth)
            yield f"Winograd {size}, {worth:g}", _filter(kernel, layer, reference.convolution)


def _depthwises(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    shapes = {
        "3x3": layers.depthwise(rng, (6, 9, 5)),
        "3x3, stride 2": layers.depthwise(rng, (7, 8, 3), strides=(2, 2), relu=False),
        "5x5": layers.depthwise(rng, (7, 9, 2), kernel=(5, 5), padding=(2, 2, 2, 2)),
    }
    for name, layer in shapes.items():
        for order in (Order.PLANES16, Order.PLANES8):
            kernel = test_depthwise.kernel_for(layer, order)
            yield f"depthwise {name}, {order}", _filter(kernel, layer, reference.depthwise)


def _denses(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    for inputs, outputs in ((70, 9), (13, 4)):
        layer = layers.dense(rng, inputs, outputs, relu=outputs == 9)
        x = layers.activations(rng, (inputs,), extreme=False)
        for density in Density:
            kernel = _made(test_dense.kernel_for(layer, density))
            expected = reference.dense(layer, x).reshape(layer.output_shape)
            yield f"dense {inputs} to {outputs}, {density}", Case(kernel, (x.view(np.uint8),), expected)


def _adds(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    for zeros in ((3, -7, 11), (-128, 5, -128)):
        layer = layers.add((5, 7, 3), (0.02, 0.03, 0.05), zeros)
        x, y = rng.integers(-128, 128, (2, 5, 7, 3)).astype(np.int8)
        layouts = [Layout(Order.PIXELS, layer.input_shape, border) for border in ((1, 1, 1, 1), NO_PADDING, NO_PADDING)]
        operands = (laboratory.pack(layouts[0], x, zeros[0]), laboratory.pack(layouts[1], y, zeros[1]))
        yield f"add {zeros}", Case(_made(add(layer, *layouts)), operands, reference.add(layer, x, y), zeros[2])


def _pools(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    for kind in ("average", "max"):
        for shape, window, strides in (((7, 7, 13), (3, 2), (2, 1)), ((3, 3, 16), (3, 3), (1, 1))):
            layer = layers.pool(kind, shape, window, strides)
            x = layers.activations(rng, shape, extreme=False)
            target = Layout(Order.PIXELS, layer.output_shape)
            kernel = _made(pool(layer, Layout(Order.PIXELS, shape), target))
            yield (
                f"{kind} pool {shape}",
                Case(kernel, (laboratory.pack(kernel.inputs[0], x, 0),), reference.pool(layer, x)),
            )


def _copies(rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    x = layers.activations(rng, (5, 7, 3), extreme=False)
    pixels, planes = (Layout(order, x.shape) for order in (Order.PIXELS, Order.PLANES16))
    bordered = Layout(Order.PIXELS, x.shape, (1, 2, 1, 0))
    packed = (laboratory.pack(pixels, x, -5),)
    yield "to planes", Case(_made(copy_to_planes("copy", pixels, planes, -5)), packed, x, -5)
    yield "into a border", Case(_made(copy_with_border("copy", pixels, bordered, -5)), packed, x, -5)
    yield "border", Case(_made(fill_border("fill", bordered, 9)), (np.zeros(0, np.uint8),), None)
