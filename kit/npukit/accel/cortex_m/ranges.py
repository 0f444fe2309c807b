"""The accumulators of a layer at most, from its actual weights and the range of its input, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.layer import ConvLayer, DenseLayer, DepthwiseLayer, Requantization
from npukit.net.value_ranges import centred, sum_bounds

WeightedLayer = ConvLayer | DepthwiseLayer | DenseLayer


@dataclass(frozen=True)
class Interval:
    """Lowest and highest value of each channel's accumulator."""

    low: np.ndarray
    high: np.ndarray

    @property
    def magnitude(self) -> np.ndarray:
        return np.maximum(np.abs(self.low), np.abs(self.high))


def accumulators(layer: WeightedLayer) -> Interval:
    """The interval of each output channel's accumulator, bias included. Partial sums may leave it."""
    padded = not isinstance(layer, DenseLayer) and any(layer.padding)
    inputs = centred(layer.input_range, layer.input_shape[2], layer.input_zero, padded=padded)
    axes = (0, 1) if isinstance(layer, DepthwiseLayer) else tuple(range(1, np.ndim(layer.weights)))
    return Interval(*sum_bounds(layer.weights, layer.bias, inputs, axes))


def requantized(accumulator: np.ndarray, requantization: Requantization) -> np.ndarray:
    """TensorFlow Lite's MultiplyByQuantizedMultiplier with double rounding, zero point and clamp added."""
    shifts = np.asarray(requantization.shifts, np.int64)
    left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    product = (np.asarray(accumulator, np.int64) << left) * np.asarray(requantization.multipliers, np.int64)
    high = (product + (1 << 30)) >> 31
    half = (np.int64(1) << right) >> 1
    rounded = (high + half - ((right > 0) & (high < 0))) >> right
    return np.clip(rounded + requantization.zero_point, *requantization.clamp)
