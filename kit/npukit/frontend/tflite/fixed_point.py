"""TFLite's fixed-point arithmetic as tensor expressions: what its kernels of 16-bit integers are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax, tirx
from tvm import te as tensor_expressions

from npukit.net.requantize import quantize_multiplier

select: Any = tirx.Select
te: Any = tensor_expressions
"""TVM's annotations are narrower than what it takes."""

DROPPED_BITS = 16
"""Bits of a multiplier that TFLite leaves out where it multiplies sums of 64 bits."""


def multipliers(scales: Sequence[float]) -> tuple[relax.Expr, relax.Expr]:
    """The multiplier and the shift of each scale, as constants."""
    pairs = np.array([quantize_multiplier(scale) for scale in scales], np.int32)
    multiplier, shift = np.ascontiguousarray(pairs.T)
    return relax.const(multiplier), relax.const(shift)


def requantized(value: Any, multiplier: Any, shift: Any) -> Any:
    """value * multiplier * 2^(shift - 31) of 32 bits, rounded twice."""
    left, right = te.max(shift, 0), te.max(-shift, 0)
    product = (value << left).astype("int64") * multiplier.astype("int64")
    high = ((product + tirx.const(1 << 30, "int64")) >> tirx.const(31, "int64")).astype("int32")
    return rounded_shift(high, right)


def rounded_shift(value: Any, bits: Any) -> Any:
    """value / 2^bits, halves away from zero."""
    half = (tirx.const(1, "int32") << bits) >> 1
    return (value + half - select(tirx.all(bits > 0, value < 0), 1, 0)) >> bits


def requantized_long(value: Any, multiplier: Any, shift: Any) -> Any:
    """value * multiplier * 2^(shift - 31) of 64 bits, with the upper half of the multiplier, rounded once."""
    upper = select(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> DROPPED_BITS, 0x7FFF)
    bits = (15 - shift).astype("int64")
    one = tirx.const(1, "int64")
    return ((value * upper.astype("int64") + (one << (bits - one))) >> bits).astype("int32")


def clamped(value: Any, dtype: str, low: int | None = None, high: int | None = None) -> Any:
    """The value, or the end of the range that it is beyond, as `dtype`."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min) if low is None else low, int(limits.max) if high is None else high
    return te.max(te.min(value, high), low).astype(dtype)
