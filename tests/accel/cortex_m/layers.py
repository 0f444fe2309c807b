"""Random layers as real ones are: outputs spread over int8, and the multipliers' extremes among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from npukit.accel.cortex_m.layout import NO_PADDING, Shape
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.net import Net, Op
from npukit.net.ops import (
    Add,
    Attributes,
    AveragePool,
    Conv2d,
    Dense,
    DepthwiseConv2d,
    MaxPool,
    Padding,
    Pair,
    Subtract,
)
from npukit.net.tensor import Quantization, Tensor

Generator = np.random.Generator
WEIGHTS, BIAS = "weights", "bias"


def one_op(
    attributes: Attributes,
    inputs: Sequence[tuple[Shape, float, int]],
    output: tuple[Shape, float, int],
    constants: Mapping[str, np.ndarray] | None = None,
) -> OpView:
    """The layer of a net of one op; of each activation its shape, scale and zero point."""
    values = constants or {}
    activations = {f"x{index}": given for index, given in enumerate(inputs)} | {"layer": output}
    tensors = {
        name: Tensor(name, (1, *shape), "int8", Quantization((scale,), (zero,)))
        for name, (shape, scale, zero) in activations.items()
    }
    tensors |= {name: Tensor(name, value.shape, str(value.dtype)) for name, value in values.items()}
    op = Op("layer", attributes, (*list(activations)[:-1], *values), ("layer",))
    return OpView(Net("net", op.inputs[: len(inputs)], op.outputs, (op,), tensors, values), op)


def factors(rng: Generator, channels: int, depth: int, spread: float = 2) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers that put sums of `depth` products into int8, right shifts differing by about `spread`."""
    deviation = 74 * 127 * 0.57 * np.sqrt(depth)
    real = 40 / deviation * 2.0 ** rng.uniform(-spread / 2, spread / 2, channels)
    shifts = np.ceil(np.log2(real)).astype(int)
    multipliers = np.clip(np.round(real * 2.0**-shifts * 2**31).astype(np.int64), 1 << 30, (1 << 31) - 1)
    multipliers[rng.integers(channels)] = 1 << 30
    multipliers[rng.integers(channels)] = (1 << 31) - 1
    return multipliers, shifts


def with_factors(layer: OpView, multipliers: np.ndarray, shifts: np.ndarray) -> OpView:
    """The layer with these for the channels of its output: activations have scale 1."""
    reals = tuple(float(m) * 2.0 ** (int(s) - 31) for m, s in zip(multipliers, shifts, strict=True))
    weights = replace(layer.net.tensor(WEIGHTS), quantization=Quantization(reals, (0,) * len(reals), 0))
    return replace(layer, net=replace(layer.net, tensors={**layer.net.tensors, WEIGHTS: weights}))


def with_shifts(layer: OpView, shifts: np.ndarray) -> OpView:
    return with_factors(layer, layer.requantization.multipliers, shifts)


def with_weights(layer: OpView, values: np.ndarray) -> OpView:
    return replace(layer, net=replace(layer.net, constants={**layer.net.constants, WEIGHTS: values}))


def _output_zero(rng: Generator, *, relu: bool) -> int:
    return -128 if relu else int(rng.integers(-40, 40))


def weights(rng: Generator, shape: tuple[int, ...], *, extreme: bool) -> np.ndarray:
    return (rng.choice([-127, 127], shape) if extreme else rng.integers(-127, 128, shape)).astype(np.int8)


def activations(rng: Generator, shape: tuple[int, ...], *, extreme: bool) -> np.ndarray:
    return (rng.choice([-128, 127], shape) if extreme else rng.integers(-128, 128, shape)).astype(np.int8)


def conv(
    rng: Generator,
    shape: Shape,
    channels: int,
    kernel: Pair = (1, 1),
    *,
    strides: Pair = (1, 1),
    padding: Padding = NO_PADDING,
    dilation: Pair = (1, 1),
    relu: bool = True,
    extreme: bool = False,
    spread: float = 2,
) -> OpView:
    constants = {
        WEIGHTS: weights(rng, (channels, *kernel, shape[2]), extreme=extreme),
        BIAS: rng.integers(-3000, 3000, channels).astype(np.int32),
    }
    zero = int(rng.integers(-128, 128))
    found = factors(rng, channels, kernel[0] * kernel[1] * shape[2], spread)
    result = (*windows(shape, kernel, strides, padding, dilation), channels)
    output = (result, 1.0, _output_zero(rng, relu=relu))
    return with_factors(
        one_op(Conv2d(strides, padding, dilation), [(shape, 1.0, zero)], output, constants),
        *found,
    )


def depthwise(
    rng: Generator,
    shape: Shape,
    *,
    kernel: Pair = (3, 3),
    strides: Pair = (1, 1),
    padding: Padding = (1, 1, 1, 1),
    relu: bool = True,
    extreme: bool = False,
    zero: int = -128,
) -> OpView:
    constants = {
        WEIGHTS: weights(rng, (1, *kernel, shape[2]), extreme=extreme),
        BIAS: rng.integers(-2000, 2000, shape[2]).astype(np.int32),
    }
    found = factors(rng, shape[2], kernel[0] * kernel[1])
    output = ((*windows(shape, kernel, strides, padding), shape[2]), 1.0, _output_zero(rng, relu=relu))
    return with_factors(
        one_op(DepthwiseConv2d(strides, padding), [(shape, 1.0, zero)], output, constants),
        *found,
    )


def dense(
    rng: Generator, inputs: int, outputs: int, *, relu: bool = True, extreme: bool = False, rows: int = 1
) -> OpView:
    constants = {
        WEIGHTS: weights(rng, (outputs, inputs), extreme=extreme),
        BIAS: rng.integers(-3000, 3000, outputs).astype(np.int32),
    }
    zero = int(rng.integers(-128, 128))
    found = factors(rng, outputs, inputs)
    output = ((1, rows, outputs), 1.0, _output_zero(rng, relu=relu))
    return with_factors(one_op(Dense(), [((1, rows, inputs), 1.0, zero)], output, constants), *found)


def add(
    shape: Shape, scales: tuple[float, float, float], zeros: tuple[int, int, int], made: Add | Subtract | None = None
) -> OpView:
    """A sum, or a difference as `made`."""
    *inputs, output = ((shape, scale, zero) for scale, zero in zip(scales, zeros, strict=True))
    return one_op(made or Add(), inputs, output)


def pool(kind: str, shape: Shape, window: Pair, strides: Pair) -> OpView:
    made = {"average": AveragePool, "max": MaxPool}[kind](window, strides)
    return one_op(made, [(shape, 1.0, 0)], ((*windows(shape, window, strides, NO_PADDING), shape[2]), 1.0, 0))


def windows(shape: Shape, window: Pair, strides: Pair, padding: Padding, dilation: Pair = (1, 1)) -> Pair:
    """The number of windows that fit, down and across."""
    top, left, bottom, right = padding
    down = (shape[0] + top + bottom - (window[0] - 1) * dilation[0] - 1) // strides[0] + 1
    across = (shape[1] + left + right - (window[1] - 1) * dilation[1] - 1) // strides[1] + 1
    return down, across
