"""Range analysis: what a layer can produce at most, from its actual weights and the range of its input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.layer import ConvLayer, DenseLayer, DepthwiseLayer, Range, Requantization

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
    low, high = _centred_input(layer)
    weights = np.asarray(layer.weights, np.int64)
    least, most = np.minimum(weights * low, weights * high), np.maximum(weights * low, weights * high)
    axes = (0, 1) if isinstance(layer, DepthwiseLayer) else tuple(range(1, weights.ndim))
    bias = np.asarray(layer.bias, np.int64)
    return Interval(least.sum(axes) + bias, most.sum(axes) + bias)


def output_range(layer: WeightedLayer) -> Range:
    """The interval of each output channel: requantisation never decreases, so the ends map to the ends."""
    found = accumulators(layer)
    return Range(requantized(found.low, layer.requantization), requantized(found.high, layer.requantization))


def requantized(accumulator: np.ndarray, requantization: Requantization) -> np.ndarray:
    """TensorFlow Lite's MultiplyByQuantizedMultiplier with double rounding, zero point and clamp added."""
    shifts = np.asarray(requantization.shifts, np.int64)
    left, right = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    product = (np.asarray(accumulator, np.int64) << left) * np.asarray(requantization.multipliers, np.int64)
    high = (product + (1 << 30)) >> 31
    half = (np.int64(1) << right) >> 1
    rounded = (high + half - ((right > 0) & (high < 0))) >> right
    return np.clip(rounded + requantization.zero_point, *requantization.clamp)


def _centred_input(layer: WeightedLayer) -> tuple[np.ndarray, np.ndarray]:
    """The interval of input - zero point, zero included where padding brings it in."""
    given = layer.input_range or Range.full(layer.input_shape[2])
    low, high = given.low - layer.input_zero, given.high - layer.input_zero
    if not isinstance(layer, DenseLayer) and any(layer.padding):
        return np.minimum(low, 0), np.maximum(high, 0)
    return low, high
