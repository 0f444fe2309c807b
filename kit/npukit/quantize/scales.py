"""Scales and zero points: of activations from their ranges, of weights from their values."""

from __future__ import annotations

import numpy as np

from npukit.net.tensor import Quantization
from npukit.quantize.observe import Range

STEPS = 255
LARGEST_WEIGHT = 127
LARGEST_BIAS = 1 << 26
"""A bias leaves room for the products in an accelerator's accumulator."""
SMALLEST_SCALE = 2.0**-60


def of_activation(around: Range) -> Quantization:
    """int8 with one zero point; zero is always a number it has."""
    low, high = min(around.low, 0.0), max(around.high, 0.0)
    scale = float(np.float32(max((high - low) / STEPS, SMALLEST_SCALE)))
    zero_point = int(np.clip(round(-128 - low / scale), -128, 127))
    return Quantization((scale,), (zero_point,))


def of_weights(weights: np.ndarray, axis: int, least: np.ndarray) -> Quantization:
    """Symmetric int8 with a scale for each index of `axis`, none smaller than `least`."""
    others = tuple(other for other in range(weights.ndim) if other != axis)
    needed = np.abs(weights).max(axis=others) / LARGEST_WEIGHT
    scales = np.maximum(np.maximum(needed, least), SMALLEST_SCALE).astype(np.float32)
    return Quantization(tuple(map(float, scales)), (0,) * len(scales), axis if len(scales) > 1 else None)


def least_scales(bias: np.ndarray | None, channels: int, data: Quantization) -> np.ndarray:
    """The smallest weight scales with which the bias, in units of both scales, is small enough."""
    if bias is None:
        return np.zeros(channels)
    return np.abs(np.ravel(bias)) / (data.scale * LARGEST_BIAS)


def of_constant(value: np.ndarray) -> Quantization:
    return of_activation(Range(float(value.min()), float(value.max())))


def quantised(value: np.ndarray, quantization: Quantization) -> np.ndarray:
    """Real numbers as int8."""
    shape = [1] * value.ndim
    if quantization.axis is not None:
        shape[quantization.axis] = -1
    scales = np.array(quantization.scales).reshape(shape)
    zero_points = np.array(quantization.zero_points).reshape(shape)
    return np.clip(np.rint(value / scales) + zero_points, -128, 127).astype(np.int8)
