"""Random layers as real ones are: outputs spread over int8, and the multipliers' extremes among them."""

from __future__ import annotations

import numpy as np

from npukit.accel.cortex_m.layer import (
    NO_PADDING,
    ConvLayer,
    DenseLayer,
    DepthwiseLayer,
    Padding,
    Pair,
    Requantization,
)

Generator = np.random.Generator


def requantization(rng: Generator, channels: int, depth: int, *, relu: bool, spread: float = 2) -> Requantization:
    """Multipliers that put sums of `depth` products into int8, right shifts differing by about `spread`."""
    deviation = 74 * 127 * 0.57 * np.sqrt(depth)
    real = 40 / deviation * 2.0 ** rng.uniform(-spread / 2, spread / 2, channels)
    shifts = np.ceil(np.log2(real)).astype(int)
    multipliers = np.clip(np.round(real * 2.0**-shifts * 2**31).astype(np.int64), 1 << 30, (1 << 31) - 1)
    multipliers[rng.integers(channels)] = 1 << 30
    multipliers[rng.integers(channels)] = (1 << 31) - 1
    return Requantization(multipliers, shifts, -128 if relu else int(rng.integers(-40, 40)))


def weights(rng: Generator, shape: tuple[int, ...], *, extreme: bool) -> np.ndarray:
    return (rng.choice([-127, 127], shape) if extreme else rng.integers(-127, 128, shape)).astype(np.int8)


def activations(rng: Generator, shape: tuple[int, ...], *, extreme: bool) -> np.ndarray:
    return (rng.choice([-128, 127], shape) if extreme else rng.integers(-128, 128, shape)).astype(np.int8)


def conv(
    rng: Generator,
    shape: tuple[int, int, int],
    channels: int,
    kernel: Pair = (1, 1),
    *,
    strides: Pair = (1, 1),
    padding: Padding = NO_PADDING,
    dilation: Pair = (1, 1),
    relu: bool = True,
    extreme: bool = False,
    spread: float = 2,
) -> ConvLayer:
    depth = kernel[0] * kernel[1] * shape[2]
    return ConvLayer(
        "layer",
        shape,
        weights(rng, (channels, *kernel, shape[2]), extreme=extreme),
        rng.integers(-3000, 3000, channels).astype(np.int32),
        int(rng.integers(-128, 128)),
        requantization(rng, channels, depth, relu=relu, spread=spread),
        strides,
        padding,
        dilation,
    )


def depthwise(
    rng: Generator,
    shape: tuple[int, int, int],
    *,
    kernel: Pair = (3, 3),
    strides: Pair = (1, 1),
    padding: Padding = (1, 1, 1, 1),
    relu: bool = True,
    extreme: bool = False,
) -> DepthwiseLayer:
    return DepthwiseLayer(
        "layer",
        shape,
        weights(rng, (*kernel, shape[2]), extreme=extreme),
        rng.integers(-2000, 2000, shape[2]).astype(np.int32),
        -128,
        requantization(rng, shape[2], kernel[0] * kernel[1], relu=relu),
        strides,
        padding,
    )


def dense(rng: Generator, inputs: int, outputs: int, *, relu: bool = True, extreme: bool = False) -> DenseLayer:
    return DenseLayer(
        "layer",
        weights(rng, (outputs, inputs), extreme=extreme),
        rng.integers(-3000, 3000, outputs).astype(np.int32),
        int(rng.integers(-128, 128)),
        requantization(rng, outputs, inputs, relu=relu),
    )
