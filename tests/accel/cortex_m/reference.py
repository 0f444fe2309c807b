"""The layers in plain numpy, the rounding a literal transcription of gemmlowp's and TensorFlow Lite's definitions."""

from __future__ import annotations

from itertools import product

import numpy as np

from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops import Add, AveragePool
from npukit.net.requantize import Multiplier, Requantization, quantization, sum_rescaling


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


def requantized(accumulator: np.ndarray, factors: Requantization, zero: int) -> np.ndarray:
    scaled = multiply_by_quantized_multiplier(accumulator, factors.multipliers, factors.shifts)
    return np.clip(scaled + zero, -128, 127).astype(np.int8)


def _padded(x: np.ndarray, padding: tuple[int, int, int, int]) -> np.ndarray:
    top, left, bottom, right = padding
    return np.pad(x, ((top, bottom), (left, right), (0, 0)))


def _taps(x: np.ndarray, layer: OpView):
    """For each kernel position the inputs under it, zero point removed."""
    window = layer.window
    dilation, strides = window.dilation, window.strides
    centred = _padded(x.astype(np.int64) - layer.input_zero, window.padding)
    height, width, _ = layer.output_shape
    for row, column in product(*map(range, window.kernel)):
        y, x_ = row * dilation[0], column * dilation[1]
        rows = slice(y, y + (height - 1) * strides[0] + 1, strides[0])
        columns = slice(x_, x_ + (width - 1) * strides[1] + 1, strides[1])
        yield row, column, centred[rows, columns]


def convolution(layer: OpView, x: np.ndarray) -> np.ndarray:
    total = np.zeros(layer.output_shape, np.int64) + layer.filter.bias
    for row, column, under in _taps(x, layer):
        total += under @ layer.filter.weights[:, row, column].T.astype(np.int64)
    return requantized(total, layer.requantization, layer.output_zero)


def depthwise(layer: OpView, x: np.ndarray) -> np.ndarray:
    total = np.zeros(layer.output_shape, np.int64) + layer.filter.bias
    for row, column, under in _taps(x, layer):
        total += under * layer.filter.weights[0, row, column].astype(np.int64)
    return requantized(total, layer.requantization, layer.output_zero)


def dense(layer: OpView, x: np.ndarray) -> np.ndarray:
    centred = x.reshape(-1).astype(np.int64) - layer.input_zero
    total = layer.filter.weights.astype(np.int64) @ centred + layer.filter.bias
    return requantized(total, layer.requantization, layer.output_zero).reshape(1, 1, -1)


def add(layer: OpView, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    factors, sign = sum_rescaling(layer.net, layer.op), 1 if isinstance(layer.attributes, Add) else -1
    zeros = [quantization(layer.net, name).zero_point for name in layer.op.inputs]
    first = _shifted_and_rescaled(x, zeros[0], factors.first)
    second = _shifted_and_rescaled(y, zeros[1], factors.second)
    total = multiply_by_quantized_multiplier(first + sign * second, factors.output.multiplier, factors.output.shift)
    return np.clip(total + layer.output_zero, *layer.clamp).astype(np.int8)


def _shifted_and_rescaled(x: np.ndarray, zero_point: int, factor: Multiplier) -> np.ndarray:
    return multiply_by_quantized_multiplier((x.astype(np.int64) - zero_point) << 20, factor.multiplier, factor.shift)


def pool(layer: OpView, x: np.ndarray) -> np.ndarray:
    kernel, strides = layer.window.kernel, layer.window.strides
    height, width, channels = layer.output_shape
    result = np.zeros((height, width, channels), np.int64)
    for i, j in product(range(height), range(width)):
        row, column = i * strides[0], j * strides[1]
        under = x[row : row + kernel[0], column : column + kernel[1]].reshape(-1, channels).astype(np.int64)
        result[i, j] = _average(under) if isinstance(layer.attributes, AveragePool) else under.max(0)
    return result.astype(np.int8)


def _average(window: np.ndarray) -> np.ndarray:
    """Halves away from zero, as TensorFlow Lite's integer division does it."""
    total, count = window.sum(0), len(window)
    return np.sign(total) * ((np.abs(total) + count // 2) // count)
