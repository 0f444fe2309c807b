"""The fixed-point arithmetic of TensorFlow Lite as functions shared by all kernels.

`net/requantize.py` and `net/fixed_point.py` define the same in numpy.
"""

from __future__ import annotations

from collections.abc import Callable

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


def clamp(value: Expr, bounds: tuple[int, int]) -> Expr:
    return call("clamp", value, *bounds)


def requantize(value: Expr, multiplier: Expr, shift: Expr) -> Expr:
    return call("requantize", value, multiplier, shift)


def scale_down(value: Expr, multiplier: Expr, bits: Expr) -> Expr:
    return call("scale_down", value, multiplier, bits)


def high_product(a: Expr, b: Expr) -> Expr:
    return call("high_product", a, b)


def high_half(a: Expr, b: Expr) -> Expr:
    return call("high_half", a, b)


def rounded_shift(value: Expr, bits: Expr) -> Expr:
    return call("rounded_shift", value, bits)


def reciprocal(value: Expr) -> Expr:
    return call("reciprocal_of_one_plus", value)


def inverse_root(value: Expr) -> Expr:
    return call("inverse_root", value)


def helper_functions() -> list[tuple[str, TirFunction]]:
    """The functions with their comments, callees first."""
    return [(comment, _function(name, parameters, body)) for name, parameters, body, comment in _HELPERS]


def _function(name: str, parameters: tuple[str, ...], body: Callable[..., None]) -> TirFunction:
    return define(name, [TirParameter(p, "int32", "value") for p in parameters], body, result="int32")


def _clamp(value: Expr, low: Expr, high: Expr) -> None:
    give(select(value < low, low, select(value > high, high, value)))


def _high_product(a: Expr, b: Expr) -> None:
    product = let("product", cast("int64", a) * cast("int64", b))
    give(cast("int32", (product + number("int64", 1 << 30)) >> number("int64", 31)))


def _high_half(a: Expr, b: Expr) -> None:
    give(cast("int32", (cast("int64", a) * cast("int64", b)) >> number("int64", 32)))


def _rounded_shift(value: Expr, bits: Expr) -> None:
    one = number("uint32", 1)
    mask = let("mask", cast("int32", (one << cast("uint32", bits)) - one))
    threshold = let("threshold", (mask >> 1) + select(value < 0, 1, 0))
    give((value >> bits) + select((value & mask) > threshold, 1, 0))


def _scale_down(value: Expr, multiplier: Expr, bits: Expr) -> None:
    give(rounded_shift(high_product(value, multiplier), bits))


def _requantize(value: Expr, multiplier: Expr, shift: Expr) -> None:
    left = let("left", select(shift > 0, shift, 0))
    right = let("right", select(shift > 0, 0, 0 - shift))
    shifted = let("shifted", cast("int32", cast("uint32", value) << cast("uint32", left)))
    give(scale_down(shifted, multiplier, right))


def _saturating_shift(value: Expr, bits: Expr) -> None:
    wide = let("wide", cast("int64", value) * (number("int64", 1) << cast("int64", bits)))
    low, high = number("int64", -(1 << 31)), number("int64", (1 << 31) - 1)
    give(cast("int32", select(wide < low, low, select(wide > high, high, wide))))


def _reciprocal(value: Expr) -> None:
    denominator = let(
        "denominator", cast("int32", (cast("int64", value) + number("int64", 1 << 31)) >> number("int64", 1))
    )
    x = Local("x", "int32", 1515870810 + high_product(denominator, -1010580540))
    with loop("step", 0, 3):
        error = let("error", (1 << 29) - high_product(denominator, x.value))
        x.set(x.value + call("saturating_shift", high_product(x.value, error), 2))
    give(call("saturating_shift", x.value, 1))


def _inverse_root(value: Expr) -> None:
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


_HELPERS: tuple[tuple[str, tuple[str, ...], Callable[..., None], str], ...] = (
    ("clamp", ("value", "low", "high"), _clamp, "value, or the bound it is beyond"),
    ("high_half", ("a", "b"), _high_half, "The high half of a b"),
    ("high_product", ("a", "b"), _high_product, "The high half of 2 a b, rounded; not both may be INT32_MIN"),
    ("rounded_shift", ("value", "bits"), _rounded_shift, "value / 2^bits, halves away from zero; 0 <= bits <= 31"),
    (
        "scale_down",
        ("value", "multiplier", "bits"),
        _scale_down,
        "value * multiplier * 2^(-31 - bits), rounded twice as TensorFlow Lite does",
    ),
    (
        "requantize",
        ("value", "multiplier", "shift"),
        _requantize,
        "value * multiplier * 2^(shift - 31), rounded the same way; shifts to the left wrap",
    ),
    ("saturating_shift", ("value", "bits"), _saturating_shift, "value * 2^bits, or the end of the range it is beyond"),
    (
        "reciprocal_of_one_plus",
        ("value",),
        _reciprocal,
        "1 / (1 + value) for 0 <= value < 1, all in Q0.31: three Newton steps in Q2.29",
    ),
    (
        "inverse_root",
        ("value",),
        _inverse_root,
        "2^46 / sqrt(value) of a value in 32 bits without sign, the first two of which are not 0",
    ),
)
"""Name, parameters, statements, comment."""
