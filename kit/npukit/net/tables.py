"""Tables of `lookup`: a function of one number, evaluated for all 256 int8 values.

If TensorFlow Lite Micro has an integer algorithm for the function, the table holds its results bit for bit. Other
functions are computed in float and rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npukit.net.fixed_point import Q31_ONE, logistic, reciprocal_root, tanh
from npukit.net.requantize import (
    SATURATES,
    multiplier_for,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rescale,
    rounding_shift_right,
)
from npukit.net.tensor import Quantization

EVERY = np.arange(-128, 128, dtype=np.int64)
"""All int8 values, in the order of a table."""

SIGMOID_OUTPUT = Quantization((1 / 256,), (-128,))
TANH_OUTPUT = Quantization((1 / 128,), (0,))
RANGE_BITS = 4
"""Integer bits of the fixed-point argument of sigmoid and tanh."""


def float_table(function: Callable[[np.ndarray], np.ndarray], source: Quantization, target: Quantization) -> np.ndarray:
    """`function` of the real numbers, rounded to the nearest output integer."""
    with np.errstate(all="ignore"):
        real = (EVERY - source.zero_point).astype(np.float32) * np.float32(source.scale)
        steps = np.asarray(function(real), np.float32) / np.float32(target.scale)
    return np.clip(np.rint(np.nan_to_num(steps)) + target.zero_point, -128, 127).astype(np.int8)


def quantised(
    value: np.ndarray, offset: np.ndarray, step: np.ndarray, zero_point: int, *, away: bool = False
) -> np.ndarray:
    """The integers of a `quantize`. Computed in float32; halves round to even, or `away` from zero."""
    with np.errstate(all="ignore"):
        steps = (value.astype(np.float32) - offset.astype(np.float32)) / step.astype(np.float32)
    low, high = np.float32(-128 - zero_point), np.float32(127 - zero_point)
    within = np.where(steps > low, np.where(steps < high, steps, high), low)
    whole = np.trunc(within)
    rounded_away = whole + np.where(np.abs(within - whole) >= np.float32(0.5), np.sign(within), np.float32(0))
    return ((rounded_away if away else np.rint(within)).astype(np.int32) + zero_point).astype(np.int8)


LEAST_ROOT = 16 * SATURATES
"""Limit like SATURATES, for factors of results of 1 / sqrt(255) and more."""


def sigmoid_table(source: Quantization, target: Quantization) -> np.ndarray:
    """TFLite's integer sigmoid, if the output is quantised as SIGMOID_OUTPUT; else in float."""
    if target != SIGMOID_OUTPUT:
        return float_table(lambda real: 1 / (1 + np.exp(-real)), source, target)
    return _saturating_table(logistic, 8, -128, source)


def tanh_table(source: Quantization, target: Quantization) -> np.ndarray:
    """TFLite's integer tanh, if the output is quantised as TANH_OUTPUT; else in float."""
    if target != TANH_OUTPUT:
        return float_table(np.tanh, source, target)
    return _saturating_table(tanh, 7, 0, source)


def _saturating_table(
    function: Callable[[np.ndarray, int], np.ndarray], output_bits: int, zero_point: int, source: Quantization
) -> np.ndarray:
    """The table of a function that saturates outside the range of its fixed-point argument."""
    multiplier, shift = quantize_multiplier(source.scale * (1 << (31 - RANGE_BITS)))
    radius = int(((1 << RANGE_BITS) - 1) * (1 << (31 - RANGE_BITS)) / 2.0**shift)
    centred = EVERY - source.zero_point
    inside = np.abs(centred) < radius
    argument = multiply_by_quantized_multiplier(np.where(inside, centred, 0), multiplier, shift)
    result = rounding_shift_right(function(argument, RANGE_BITS), 31 - output_bits) + zero_point
    flat = np.where(centred > 0, 127, -128)
    return np.clip(np.where(inside, result, flat), -128, 127).astype(np.int8)


def relu_table(source: Quantization, target: Quantization, clamp: tuple[int, int]) -> np.ndarray:
    """The table of a clip: rescale, then clamp. TFLite divides the scales in float32."""
    factor = multiplier_for(float(np.float32(source.scale) / np.float32(target.scale)))
    moved = rescale(EVERY - source.zero_point, factor) + target.zero_point
    return np.clip(moved, *clamp).astype(np.int8)


def rounded_relu_table(source: Quantization, target: Quantization, clamp: tuple[int, int]) -> np.ndarray:
    """The table of a clip: rescale, round once, then clamp."""
    return np.clip(float_table(lambda real: real, source, target), *clamp).astype(np.int8)


def abs_table(source: Quantization, target: Quantization) -> np.ndarray:
    """TFLite's integer abs: the rescaled magnitude, unscaled between equal scales. Scales are divided in float32."""
    factor = multiplier_for(float(np.float32(source.scale) / np.float32(target.scale)))
    magnitude = np.abs(EVERY - source.zero_point)
    moved = magnitude if source.scale == target.scale else rescale(magnitude, factor)
    return np.clip(moved + target.zero_point, -128, 127).astype(np.int8)


def rsqrt_table(source: Quantization, target: Quantization) -> np.ndarray:
    """TFLite's integer rsqrt, if the argument is never negative; else in float."""
    if source.zero_point != -128:
        return float_table(lambda real: 1 / np.sqrt(real), source, target)
    fine, value = 20, EVERY[1:] - source.zero_point
    factor = multiplier_for(float(1 / (np.sqrt(np.float32(source.scale)) * np.float32(target.scale))), LEAST_ROOT)
    roots, shifts = reciprocal_root(value)
    scaled = multiply_by_quantized_multiplier(np.ones_like(value), roots, shifts + fine)
    moved = multiply_by_quantized_multiplier(scaled, factor.multiplier, factor.shift - fine) + target.zero_point
    return np.append(127, np.clip(moved, -128, 127)).astype(np.int8)


def leaky_relu_table(source: Quantization, target: Quantization, slope: float) -> np.ndarray:
    """TFLite's integer leaky ReLU: one factor per side, computed in float32."""
    scale, output = np.float32(source.scale), np.float32(target.scale)
    with np.errstate(over="ignore"):
        negative = float(scale * np.float32(slope) / output)
    centred = EVERY - source.zero_point
    left = rescale(centred, multiplier_for(abs(negative))) * (1 if negative >= 0 else -1)
    right = rescale(centred, multiplier_for(float(scale / output)))
    return np.clip(np.where(centred >= 0, right, left) + target.zero_point, -128, 127).astype(np.int8)


def hard_swish_table(source: Quantization, target: Quantization) -> np.ndarray:
    """TFLite's hard swish in 16-bit fixed point."""
    fine = np.float32(1 / 128) * np.float32(source.scale)
    output, output_shift = quantize_multiplier(float(fine / np.float32(target.scale)))
    gate, gate_shift = quantize_multiplier(float(fine / np.float32(3 / 32768)))
    if output_shift > 0:
        return float_table(lambda real: real * np.clip(real + 3, 0, 6) / 6, source, target)
    value = (EVERY - source.zero_point) << 7
    scaled = _high_multiply_16(value, _to_16_bits(output))
    gates = (_gate(value, _to_16_bits(gate), gate_shift) + (1 << 15)) >> 1
    product = gates * scaled
    truncated = np.sign(product) * (np.abs(product) >> 15)
    result = rounding_shift_right(truncated, -output_shift) + target.zero_point
    return np.clip(result, -128, 127).astype(np.int8)


def _gate(value: np.ndarray, multiplier: int, shift: int) -> np.ndarray:
    """The argument scaled so that 3.0 is 32768, saturated to 16 bits."""
    if shift > 0:
        value = _saturated_16(value << (shift - 1))
    value = _high_multiply_16(value, multiplier)
    if shift > 0:
        return _saturated_16(value << 1)
    return rounding_shift_right(value, -shift)


def _to_16_bits(multiplier: int) -> int:
    """A 31-bit multiplier rounded to 15 bits."""
    return 32767 if multiplier >= Q31_ONE - (1 << 15) else (multiplier + (1 << 15)) >> 16


def _high_multiply_16(value: np.ndarray, multiplier: int) -> np.ndarray:
    """gemmlowp's SaturatingRoundingDoublingHighMul on int16."""
    return np.minimum((value * multiplier + (1 << 14)) >> 15, 32767)


def _saturated_16(value: np.ndarray) -> np.ndarray:
    return np.clip(value, -32768, 32767)
