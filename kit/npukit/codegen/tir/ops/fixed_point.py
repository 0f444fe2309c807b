"""The fixed-point arithmetic of TensorFlow Lite as functions shared by all kernels.

`net/requantize.py` and `net/fixed_point.py` define the same in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc, signature
from typing import ParamSpec

from npukit.codegen.tir.door import (
    Expr,
    Local,
    TirFunction,
    TirParameter,
    call,
    cast,
    define,
    give,
    let,
    loop,
    number,
    quotient,
    select,
)

Parameters = ParamSpec("Parameters")
HALFWORD = 16

_HELPERS: dict[str, Callable[..., None]] = {}
"""The writer of each function's statements, by the function's name, callees first."""
_OF_HALVES: dict[str, Callable[..., None]] = {}
"""Other statements of some functions, for cores whose products have 32 bits."""


@dataclass(frozen=True)
class HelperFunction:
    """A function with its comment. `of_halves`: the same function for cores whose products have 32 bits."""

    comment: str
    function: TirFunction
    of_halves: TirFunction | None = None


def _helper(body: Callable[Parameters, None]) -> Callable[Parameters, Expr]:
    """Register the writer of a C function's statements. The result writes a call of the function."""
    _HELPERS[body.__name__] = body
    return lambda *arguments, **_: call(body.__name__, *arguments)


def helper_functions() -> list[HelperFunction]:
    """The functions, callees first."""
    return [_described(name, body, _OF_HALVES.get(name)) for name, body in _HELPERS.items()]


def _described(name: str, body: Callable[..., None], of_halves: Callable[..., None] | None) -> HelperFunction:
    other = _defined(f"{name}_of_halves", of_halves) if of_halves else None
    return HelperFunction((getdoc(body) or "").rstrip("."), _defined(name, body), other)


def _defined(name: str, body: Callable[..., None]) -> TirFunction:
    parameters = [TirParameter(each, "int32", "value") for each in signature(body).parameters]
    return define(name, parameters, body, result="int32")


@_helper
def clamp(value: Expr, low: Expr, high: Expr) -> None:
    """value, or the bound it is beyond."""
    give(select(value < low, low, select(value > high, high, value)))


@_helper
def high_half(a: Expr, b: Expr) -> None:
    """The high half of a b."""
    give(cast("int32", (cast("int64", a) * cast("int64", b)) >> number("int64", 32)))


@_helper
def high_product(a: Expr, b: Expr) -> None:
    """The high half of 2 a b, rounded; not both may be INT32_MIN."""
    product = let("product", cast("int64", a) * cast("int64", b))
    give(cast("int32", (product + number("int64", 1 << 30)) >> number("int64", 31)))


def _halves(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The product of two words by products of halfwords: the part from bit 32 on without carries, and the bits from 16
    on behind, with carries."""
    half, mask = number("uint32", HALFWORD), number("uint32", (1 << HALFWORD) - 1)
    low_a, low_b = let("low_a", cast("uint32", a) & mask), let("low_b", cast("uint32", b) & mask)
    high_a, high_b = let("high_a", a >> HALFWORD), let("high_b", b >> HALFWORD)
    first = let("first", high_a * cast("int32", low_b))
    second = let("second", cast("int32", low_a) * high_b)
    low = (low_a * low_b) >> half
    middle = let("middle", low + (cast("uint32", first) & mask) + (cast("uint32", second) & mask))
    return high_a * high_b + (first >> HALFWORD) + (second >> HALFWORD), middle


def _high_half_of_halves(a: Expr, b: Expr) -> None:
    high, middle = _halves(a, b)
    give(high + cast("int32", middle >> number("uint32", HALFWORD)))


def _high_product_of_halves(a: Expr, b: Expr) -> None:
    high, middle = _halves(a, b)
    one = number("uint32", 1)
    rounded = ((middle >> number("uint32", HALFWORD - 2)) + one) >> one
    give(cast("int32", (cast("uint32", high) << one) + rounded))


_OF_HALVES |= {"high_half": _high_half_of_halves, "high_product": _high_product_of_halves}


@_helper
def rounded_shift(value: Expr, bits: Expr) -> None:
    """value / 2^bits, halves away from zero; 0 <= bits <= 31."""
    mask = let("mask", cast("int32", (number("uint32", 1) << cast("uint32", bits)) - number("uint32", 1)))
    threshold = let("threshold", (mask >> 1) + select(value < 0, 1, 0))
    give((value >> bits) + select((value & mask) > threshold, 1, 0))


@_helper
def scale_down(value: Expr, multiplier: Expr, bits: Expr) -> None:
    """value * multiplier * 2^(-31 - bits), rounded twice as TensorFlow Lite does."""
    give(rounded_shift(high_product(value, multiplier), bits))


@_helper
def requantize(value: Expr, multiplier: Expr, shift: Expr) -> None:
    """value * multiplier * 2^(shift - 31), rounded the same way; shifts to the left wrap."""
    left, right = let("left", select(shift > 0, shift, 0)), let("right", select(shift > 0, 0, 0 - shift))
    shifted = let("shifted", cast("int32", cast("uint32", value) << cast("uint32", left)))
    give(scale_down(shifted, multiplier, right))


@_helper
def saturating_shift(value: Expr, bits: Expr) -> None:
    """value * 2^bits, or the end of the range it is beyond."""
    wide = let("wide", cast("int64", value) * (number("int64", 1) << cast("int64", bits)))
    low, high = number("int64", -(1 << 31)), number("int64", (1 << 31) - 1)
    give(cast("int32", select(wide < low, low, select(wide > high, high, wide))))


@_helper
def reciprocal_of_one_plus(value: Expr) -> None:
    """1 / (1 + value) for 0 <= value < 1, all in Q0.31: three Newton steps in Q2.29."""
    half = (cast("int64", value) + number("int64", 1 << 31)) >> number("int64", 1)
    denominator = let("denominator", cast("int32", half))
    x = Local("x", "int32", 1515870810 + high_product(denominator, -1010580540))
    with loop("step", 0, 3):
        error = let("error", (1 << 29) - high_product(denominator, x.value))
        x.set(x.value + saturating_shift(high_product(x.value, error), 2))
    give(saturating_shift(x.value, 1))


@_helper
def inverse_root(value: Expr) -> None:
    """2^46 / sqrt(value) of a value in 32 bits without sign, the first two of which are not 0."""
    whole = let("whole", cast("uint32", value))
    root = Local("root", "uint32", 0)
    with loop("step", 0, 16) as step:
        tried = let("tried", root.value + (number("uint32", 1 << 15) >> cast("uint32", step)))
        root.set(select(tried * tried <= whole, tried, root.value))
    rest = (whole - root.value * root.value) << number("uint32", 14)
    precise = let("precise", (root.value << number("uint32", 15)) + quotient(rest, root.value))
    first = let("first", quotient(number("uint32", 1 << 31), root.value) << number("uint32", 15))
    error = let("error", number("int64", 1 << 61) - cast("int64", precise) * cast("int64", first))
    step = ((error >> number("int64", 30)) * cast("int64", first)) >> number("int64", 31)
    result, most = let("result", cast("int64", first) + step), number("int64", (1 << 31) - 1)
    give(cast("int32", select(result > most, most, result)))
