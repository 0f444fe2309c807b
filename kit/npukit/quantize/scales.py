"""Scales and zero points: of activations from their ranges, of weights from their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from npukit.errors import NpukitError
from npukit.net.tensor import Quantization, Tensor
from npukit.quantize.observe import Range

STEPS = 255
LARGEST_WEIGHT = 127
LARGEST_BIAS = 1 << 26
"""A bias leaves room for the products in an accelerator's accumulator."""
SMALLEST_SCALE = 2.0**-60

Quantizer = Callable[[Tensor], Tensor]
"""Gives a tensor the scales that its hardware can have, instead of those that npukit would choose."""


def unchanged(tensor: Tensor) -> Tensor:
    return tensor


def in_turn(quantizers: Sequence[Quantizer]) -> Quantizer:
    """Several quantizers as one, of which each sees what the one before has made."""

    def quantizer(tensor: Tensor) -> Tensor:
        for each in quantizers:
            made = each(tensor)
            if made.quantization is None or made != replace(tensor, quantization=made.quantization):
                raise NpukitError(f"the quantizer changes {tensor.name} in more than its scales and zero points")
            tensor = made
        return tensor

    return quantizer if quantizers else unchanged


def held(quantizer: Quantizer, name: str, shape: Sequence[int], chosen: Quantization) -> Quantization:
    """The quantisation that the quantizer makes of what is chosen for an int8 tensor."""
    made = quantizer(Tensor(name, tuple(shape), "int8", chosen)).quantization
    assert made is not None
    return made


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
