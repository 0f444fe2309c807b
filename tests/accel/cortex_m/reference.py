"""The layers in plain numpy, the rounding a literal transcription of gemmlowp's and TensorFlow Lite's definitions."""

from __future__ import annotations

from itertools import product

import numpy as np

from npukit.accel.cortex_m.layer import (
    AddLayer,
    ConvLayer,
    DenseLayer,
    DepthwiseLayer,
    Multiplier,
    PoolLayer,
    Requantization,
)


def doubling_high_multiply(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """gemmlowp SaturatingRoundingDoublingHighMul: the nudge has the product's sign, the division truncates."""
    product_ = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    nudged = product_ + np.where(product_ >= 0, 1 << 30, 1 - (1 << 30))
    return np.sign(nudged) * (np.abs(nudged) >> 31)


def rounding_divide_by_power_of_two(x: np.ndarray, exponent: np.ndarray | int) -> np.ndarray:
    exponent = np.asarray(exponent, np.int64)
    mask = (np.int64(1) << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def multiply_by_quantized_multiplier(
    x: np.ndarray, multiplier: np.ndarray | int, shift: np.ndarray | int
) -> np.ndarray:
    shift = np.asarray(shift, np.int64)
    shifted = np.asarray(x, np.int64) << np.maximum(shift, 0)
    return rounding_divide_by_power_of_two(doubling_high_multiply(shifted, multiplier), np.maximum(-shift, 0))


def requantized(accumulator: np.ndarray, requantization: Requantization) -> np.ndarray:
    scaled = multiply_by_quantized_multiplier(accumulator, requantization.multipliers, requantization.shifts)
    return np.clip(scaled + requantization.zero_point, *requantization.clamp).astype(np.int8)


def _padded(x: np.ndarray, padding: tuple[int, int, int, int]) -> np.ndarray:
    top, left, bottom, right = padding
    return np.pad(x, ((top, bottom), (left, right), (0, 0)))


def _taps(x: np.ndarray, layer: ConvLayer | DepthwiseLayer, dilation: tuple[int, int]):
    """For each kernel position the inputs under it, zero point removed."""
    centred = _padded(x.astype(np.int64) - layer.input_zero, layer.padding)
    height, width, _ = layer.output_shape
    for row, column in product(range(layer.kernel[0]), range(layer.kernel[1])):
        y, x_ = row * dilation[0], column * dilation[1]
        rows = slice(y, y + (height - 1) * layer.strides[0] + 1, layer.strides[0])
        columns = slice(x_, x_ + (width - 1) * layer.strides[1] + 1, layer.strides[1])
        yield row, column, centred[rows, columns]


def convolution(layer: ConvLayer, x: np.ndarray) -> np.ndarray:
    total = np.zeros(layer.output_shape, np.int64) + layer.bias
    for row, column, under in _taps(x, layer, layer.dilation):
        total += under @ layer.weights[:, row, column].T.astype(np.int64)
    return requantized(total, layer.requantization)


def depthwise(layer: DepthwiseLayer, x: np.ndarray) -> np.ndarray:
    total = np.zeros(layer.output_shape, np.int64) + layer.bias
    for row, column, under in _taps(x, layer, (1, 1)):
        total += under * layer.weights[row, column].astype(np.int64)
    return requantized(total, layer.requantization)


def dense(layer: DenseLayer, x: np.ndarray) -> np.ndarray:
    centred = x.reshape(-1).astype(np.int64) - layer.input_zero
    total = layer.weights.astype(np.int64) @ centred + layer.bias
    return requantized(total, layer.requantization).reshape(layer.output_shape)


def add(layer: AddLayer, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    first = _shifted_and_rescaled(x, layer.zero_points[0], layer.first)
    second = _shifted_and_rescaled(y, layer.zero_points[1], layer.second)
    total = multiply_by_quantized_multiplier(first + second, layer.output.value, layer.output.shift)
    return np.clip(total + layer.zero_points[2], *layer.clamp).astype(np.int8)


def _shifted_and_rescaled(x: np.ndarray, zero_point: int, factor: Multiplier) -> np.ndarray:
    return multiply_by_quantized_multiplier((x.astype(np.int64) - zero_point) << 20, factor.value, factor.shift)


def pool(layer: PoolLayer, x: np.ndarray) -> np.ndarray:
    height, width, channels = layer.output_shape
    result = np.zeros((height, width, channels), np.int64)
    for i, j in product(range(height), range(width)):
        row, column = i * layer.strides[0], j * layer.strides[1]
        window = (
            x[row : row + layer.window[0], column : column + layer.window[1]].reshape(-1, channels).astype(np.int64)
        )
        result[i, j] = window.max(0) if layer.kind == "max" else _average(window)
    return result.astype(np.int8)


def _average(window: np.ndarray) -> np.ndarray:
    """Halves away from zero, as TensorFlow Lite's integer division does it."""
    total, count = window.sum(0), len(window)
    return np.sign(total) * ((np.abs(total) + count // 2) // count)
