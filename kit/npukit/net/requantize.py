"""Fixed-point rescaling, bit for bit as in TensorFlow Lite Micro, and checks for overflow of 32-bit integers.

A real factor becomes a 31-bit multiplier and a power of two. Applying the factor rounds in the doubling high multiply
and in the right shift, if there is one. Every kernel and the NPU must round in the same way. On overflow the reference,
the core, the accelerators and TFLite all wrap, so a net with a possible overflow is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from math import floor, frexp, ldexp
from typing import NamedTuple

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Pair
from npukit.net.net import Net, Op
from npukit.net.tensor import Quantization

ADD_LEFT_SHIFT = 20
SOFTMAX_INTEGER_BITS = 5
SATURATES = 512.0
"""Factor from which every integer but 0 leaves the int8 range. Larger factors have the same effect."""


LONGEST_RIGHT_SHIFT = -14
"""The smallest shift whose factor keeps 17 bits without the shift: an error of at most 1/1000 of a result's step."""
WEIGHTS_OF_A_LINE = range(127, 63, -1)
"""Weights tried for the slope of a line: smaller weights leave fewer bits for the rounding."""


@dataclass(frozen=True)
class Multiplier:
    """A real factor: multiplier * 2**(shift - 31)."""

    multiplier: int
    shift: int


ONE_HALF = Multiplier(1 << 30, 0)


@dataclass(frozen=True)
class Requantization:
    """An int32 multiplier and a shift (positive: left) per output channel."""

    multipliers: np.ndarray
    shifts: np.ndarray


@dataclass(frozen=True)
class AddRescaling:
    """The factors of an addition: of both operands, shifted left by ADD_LEFT_SHIFT, and of their sum."""

    first: Multiplier
    second: Multiplier
    output: Multiplier


@dataclass(frozen=True)
class SoftmaxScaling:
    """The scaling of softmax differences: (x - max) << left_shift, doubling-high-multiplied by `multiplier`, is x - max
    in Q5.26.

    Below `diff_min`, exp is 0.
    """

    multiplier: int
    left_shift: int
    diff_min: int


def quantize_multiplier(real: float) -> tuple[int, int]:
    """TFLite's QuantizeMultiplier: `real` == multiplier * 2**(shift - 31), to 31 bits."""
    mantissa, shift = frexp(real)
    multiplier = floor(ldexp(mantissa, 31) + 0.5)
    if multiplier == 1 << 31:
        multiplier, shift = 1 << 30, shift + 1
    if shift < -31:
        return 0, 0
    if shift > 30:
        return (1 << 31) - 1, 30
    return multiplier, shift


def multiplier_for(real: float, most: float = SATURATES) -> Multiplier:
    """The multiplier of a factor to int8 results. Limited to `most`, because larger factors shift bits out of 32."""
    return Multiplier(*quantize_multiplier(min(most, real)))


def factor_of_products(real: float, rounds_once: bool) -> Multiplier:
    """The factor of products and their sums. Without a right shift it is applied with a single rounding."""
    factor = multiplier_for(real)
    if not rounds_once or not LONGEST_RIGHT_SHIFT <= factor.shift < 0:
        return factor
    return Multiplier(round(ldexp(factor.multiplier, factor.shift)), 0)


class Rescaling(NamedTuple):
    """Values and their rescaling factors."""

    value: np.ndarray
    multiplier: np.ndarray
    shift: np.ndarray


_watched: ContextVar[list[Rescaling] | None] = ContextVar("rescalings", default=None)


@contextmanager
def rescalings() -> Iterator[list[Rescaling]]:
    """Record every rescaling by `multiply_by_quantized_multiplier` inside the context."""
    calls = list[Rescaling]()
    before = _watched.set(calls)
    try:
        yield calls
    finally:
        _watched.reset(before)


def doubling_high_multiply(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """gemmlowp's SaturatingRoundingDoublingHighMul, on int32 values in int64 arrays."""
    high = (np.asarray(a, np.int64) * b + (1 << 30)) >> 31
    return np.minimum(high, (1 << 31) - 1)


def rounding_shift_right(value: np.ndarray, exponent: np.ndarray | int) -> np.ndarray:
    """gemmlowp's RoundingDivideByPOT: halves round away from zero."""
    exponent = np.asarray(exponent, np.int64)
    half = (np.int64(1) << exponent) >> 1
    return (value + half - np.where(exponent > 0, value < 0, 0)) >> exponent


def wrap_int32(value: np.ndarray) -> np.ndarray:
    """The low 32 bits as a signed number, in int64."""
    return value.astype(np.int32).astype(np.int64)


def multiply_by_quantized_multiplier(
    value: np.ndarray, multiplier: np.ndarray | int, shift: np.ndarray | int
) -> np.ndarray:
    """TFLite's MultiplyByQuantizedMultiplier with double rounding. The left shift wraps in 32 bits. Returns int64."""
    shift = np.asarray(shift, np.int64)
    if (calls := _watched.get()) is not None:
        calls.append(Rescaling(np.asarray(value, np.int64), np.asarray(multiplier, np.int64), shift))
    shifted = wrap_int32(np.asarray(value, np.int64) << np.maximum(shift, 0))
    high = doubling_high_multiply(shifted, np.asarray(multiplier, np.int64))
    return rounding_shift_right(high, np.maximum(-shift, 0))


def rescale(value: np.ndarray, factor: Multiplier) -> np.ndarray:
    return multiply_by_quantized_multiplier(value, factor.multiplier, factor.shift)


def quantization(net: Net, name: str) -> Quantization:
    """The quantisation of a tensor. Raises `KeyError` if none."""
    if (found := net.tensor(name).quantization) is None:
        raise KeyError(f"tensor {name} has no quantisation")
    return found


def clamp_of(op: Op) -> Pair:
    """The clamp of an op's result, by default the range of int8."""
    return getattr(op.attributes, "clamp", (-128, 127))


def finished(net: Net, op: Op, scaled: np.ndarray) -> np.ndarray:
    """The scaled result with the output's zero point and the op's clamp applied."""
    return np.clip(scaled + quantization(net, op.output).zero_point, *clamp_of(op)).astype(np.int8)


def requantization(net: Net, op: Op) -> Requantization:
    """Multipliers and shifts of a convolution or dense op, per output channel."""
    channels = net.tensor(op.output).shape[-1]
    return _requantization(tuple(effective_scales(net, op)), channels, net.rounds_once)


@lru_cache(maxsize=256)
def _requantization(reals: tuple[float, ...], channels: int, rounds_once: bool) -> Requantization:
    """Cached, because planners need the result once per tile."""
    factors = [factor_of_products(real, rounds_once) for real in reals] * (channels if len(reals) == 1 else 1)
    pairs = [(factor.multiplier, factor.shift) for factor in factors]
    multipliers, shifts = np.array(pairs, np.int32).T.copy()
    for values in (multipliers, shifts):
        values.flags.writeable = False
    return Requantization(multipliers, shifts)


def effective_scales(net: Net, op: Op) -> list[float]:
    """The factors from accumulators to output integers: one for all channels, or one per channel."""
    input_scale, weights, output_scale = _scales(net, op)
    if op.kind == "dense" and len(weights) == 1:
        # In this case alone, TFLite Micro multiplies both scales in float32 before the division in double.
        return [_product(input_scale, weights[0]) / output_scale]
    return exact_scales(net, op)


def _product(first: float, second: float) -> float:
    """The product of two scales in float32."""
    with np.errstate(over="ignore"):
        return float(np.float32(first) * np.float32(second))


def exact_scales(net: Net, op: Op) -> list[float]:
    """The factors from accumulators to output integers, in double precision throughout."""
    input_scale, weights, output_scale = _scales(net, op)
    return [input_scale * scale / output_scale for scale in weights]


def _scales(net: Net, op: Op) -> tuple[float, tuple[float, ...], float]:
    return (
        quantization(net, op.inputs[0]).scale,
        quantization(net, op.inputs[1]).scales,
        quantization(net, op.output).scale,
    )


def output_channel_axis(op: Op) -> int:
    """The axis of output channels in an op's weights."""
    return 3 if op.kind == "depthwise_conv2d" else 0


def add_rescaling(net: Net, op: Op) -> AddRescaling:
    """The three factors of an addition."""
    first, second = (quantization(net, name).scale for name in op.inputs)
    twice_largest = 2 * max(first, second)
    output = twice_largest / ((1 << ADD_LEFT_SHIFT) * quantization(net, op.output).scale)
    return AddRescaling(
        multiplier_for(first / twice_largest), multiplier_for(second / twice_largest), multiplier_for(output)
    )


def subtract_rescaling(net: Net, op: Op) -> AddRescaling:
    """The three factors of a subtraction. TFLite Micro computes these in float32, unlike an addition's."""
    first, second = (np.float32(quantization(net, name).scale) for name in op.inputs)
    with np.errstate(all="ignore"):
        twice_largest = np.float32(2) * max(first, second)
        output = twice_largest / (np.float32(1 << ADD_LEFT_SHIFT) * np.float32(quantization(net, op.output).scale))
    reals = first / twice_largest, second / twice_largest, output
    return AddRescaling(*(multiplier_for(float(real)) for real in reals))


def sum_rescaling(net: Net, op: Op) -> AddRescaling:
    """The three factors of an addition or a subtraction."""
    return add_rescaling(net, op) if op.kind == "add" else subtract_rescaling(net, op)


def product_rescaling(net: Net, op: Op) -> Multiplier:
    """The factor of a multiplication, or of prelu's negative side."""
    first, second = (quantization(net, name).scale for name in op.inputs)
    return factor_of_products(first * second / quantization(net, op.output).scale, net.rounds_once)


def matmul_rescaling(net: Net, op: Op) -> Multiplier:
    """The factor of matmul. As in dense, both scales are multiplied in float32."""
    first, second = (quantization(net, name).scale for name in op.inputs)
    return factor_of_products(_product(first, second) / quantization(net, op.output).scale, net.rounds_once)


def mean_rescaling(net: Net, op: Op, count: int) -> Multiplier:
    """The factor of a sum of `count` elements: the ratio of scales, divided by the count, for two roundings in integer
    arithmetic."""
    if net.rounds_once:
        return factor_of_products(_ratio(net, op) / count, rounds_once=True)
    ratio = multiplier_for(_ratio(net, op), SATURATES * count)
    shift = min(count.bit_length() - 1, 32, 31 + ratio.shift)
    return Multiplier((ratio.multiplier << shift) // count, ratio.shift - shift)


def scale_ratio(net: Net, op: Op) -> Multiplier:
    """The factor of a requantize: input scale over output scale."""
    return multiplier_for(_ratio(net, op))


def _ratio(net: Net, op: Op) -> float:
    return quantization(net, op.inputs[0]).scale / quantization(net, op.output).scale


def softmax_scaling(scale: float, beta: float) -> SoftmaxScaling:
    fraction_bits = 31 - SOFTMAX_INTEGER_BITS
    multiplier, left_shift = quantize_multiplier(min(beta * scale * (1 << fraction_bits), (1 << 31) - 1.0))
    largest = ((1 << SOFTMAX_INTEGER_BITS) - 1) * (1 << fraction_bits) / ldexp(1.0, left_shift)
    return SoftmaxScaling(multiplier, left_shift, -floor(largest))


_LIMIT = 1 << 31
TOLERANCE = 1e-3
"""Relative error allowed for a factor computed in single precision, where the error could change a result."""
WAYS = ("look at its scales: an output's usually spans what the op makes of its inputs", "quantise the model again")


def reach(net: Net, name: str) -> int:
    """The largest magnitude of a tensor's integers minus their zero point."""
    limits, zero = np.iinfo(np.dtype(net.tensor(name).dtype)), quantization(net, name).zero_point
    return max(limits.max - zero, zero - limits.min)


def refuse_wrapping(largest: int, shift: int = 0) -> None:
    """Raise an error if sums up to `largest`, shifted left by the factor to the output, can leave 32 bits."""
    largest <<= max(shift, 0)
    if largest >= _LIMIT:
        raise NpukitError(
            f"its sums, scaled to its output, can reach {largest:,}, beyond the 32 bits they are computed in",
            tries=WAYS,
        )


def refuse_imprecise(used: float, exact: float, largest: int) -> None:
    """Refuse if TFLite's single-precision factor differs from the exact ratio of scales enough to change results."""
    if exact * largest >= TOLERANCE and exact < SATURATES and abs(used - exact) > TOLERANCE * exact:
        raise NpukitError("its scales are too small or too large for single precision", tries=WAYS)
