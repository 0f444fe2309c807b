"""Layer norms and RMS norms that exporters spell in small ops, as single ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from npukit.net.importer.expressions import callee, resolve, shape_of
from npukit.quantize.function import constant

operators: Any = relax.op
NORM, RMS_NORM = "nn.layer_norm", "nn.rms_norm"


class Definitions(dict[Any, Any]):
    """The expression bound to each variable of a builder, looked up on access."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        super().__init__()
        self._builder = builder

    def __contains__(self, variable: object) -> bool:
        return self._builder.lookup_binding(variable) is not None  # type: ignore[arg-type]

    def __getitem__(self, variable: Any) -> Any:
        return self._builder.lookup_binding(variable)


def normalized(builder: relax.BlockBuilder, call: Any) -> Any:
    """The norm x / sqrt(mean square + epsilon), or x times the reciprocal root; None for other calls. A layer norm
    subtracts the mean of x before; an RMS norm does not."""
    known = Definitions(builder)
    value, divisor = call.args
    if callee(call) == "multiply" and callee(resolve(value, known)) == "rsqrt":
        value, divisor = divisor, value
    first, second = resolve(value, known), resolve(divisor, known)
    root = "sqrt" if callee(call) == "divide" else "rsqrt"
    spread = _mean_square(second.args[0], known) if callee(second) == root else None
    if spread is None:
        return None
    source, axes, epsilon = spread
    ones, zeros = (relax.const(fill(shape_of(first)[axes[0] :], np.float32)) for fill in (np.ones, np.zeros))
    found, inner = (_centred(each, known) for each in (first, source))
    if found and inner and found[1] == inner[1] == axes and _same_value(found[0], inner[0], known):
        return operators.nn.layer_norm(found[0], ones, zeros, axes=axes, epsilon=epsilon)
    return operators.nn.rms_norm(value, ones, axes=axes, epsilon=epsilon) if _same(first, source) else None


def inverse_root(builder: relax.BlockBuilder, call: Any) -> Any:
    """1 / sqrt(x) as a single operator."""
    numerator, root = constant(call.args[0]), resolve(call.args[1], Definitions(builder))
    one = numerator is not None and numerator.size == 1 and numerator.item() == 1
    return operators.rsqrt(root.args[0]) if one and callee(root) == "sqrt" else None


Ends = tuple[np.ndarray, np.ndarray]
"""A norm's factors and offsets."""


def scaled(builder: relax.BlockBuilder, call: Any) -> Any:
    """A norm times constants."""
    return _with(builder, call, lambda ends, value: (ends[0] * value, ends[1] * value))


def shifted(builder: relax.BlockBuilder, call: Any) -> Any:
    """A norm plus constants."""
    return _with(builder, call, lambda ends, value: (ends[0], ends[1] + value))


def _with(builder: relax.BlockBuilder, call: Any, change: Callable[[Ends, np.ndarray], Ends]) -> Any:
    """The norm in a sum or product, with the constant operand merged in."""
    for operand, other in (call.args, reversed(call.args)):
        norm = resolve(operand, Definitions(builder))
        ends, value = _ends(norm), constant(other)
        if ends is None or value is None or shape_of(call) != shape_of(norm):
            continue
        if value.size == 1:
            return _norm(norm, change(ends, value.reshape(())))
        if value.size == ends[0].size and value.shape[-ends[0].ndim :] == ends[0].shape:
            return _norm(norm, change(ends, value.reshape(ends[0].shape)))
    return None


def _ends(norm: Any) -> Ends | None:
    """A norm's constants. An RMS norm has no offsets."""
    if callee(norm) not in (NORM, RMS_NORM):
        return None
    factors = constant(norm.args[1])
    added = constant(norm.args[2]) if callee(norm) == NORM else np.zeros((), np.float32)
    return None if factors is None or added is None else (factors, added)


def _norm(given: Any, ends: Ends) -> Any:
    """The same norm with other constants."""
    axes, epsilon = [int(axis) for axis in given.attrs.axes], float(given.attrs.epsilon)
    factors, added = (relax.const(np.ascontiguousarray(end, np.float32)) for end in ends)
    if callee(given) == NORM:
        return operators.nn.layer_norm(given.args[0], factors, added, axes=axes, epsilon=epsilon)
    return None if np.any(ends[1]) else operators.nn.rms_norm(given.args[0], factors, axes=axes, epsilon=epsilon)


def _centred(expression: Any, known: Definitions) -> tuple[Any, list[int]] | None:
    """x and the last axes, for an expression x - mean(x)."""
    if callee(expression) != "subtract":
        return None
    source, mean = expression.args[0], resolve(expression.args[1], known)
    axes = _averaged(mean)
    if axes is None or not _same_value(mean.args[0], source, known):
        return None
    return source, axes


def _averaged(mean: Any) -> list[int] | None:
    """The axes of a mean over the last axes, kept as axes of size 1; None for other means."""
    if callee(mean) != "mean" or not bool(mean.attrs.keepdims) or mean.attrs.axis is None:
        return None
    rank = len(shape_of(mean.args[0]))
    axes = sorted(int(axis) % rank for axis in mean.attrs.axis)
    return axes if axes == list(range(rank - len(axes), rank)) else None


def _mean_square(expression: Any, known: Definitions) -> tuple[Any, list[int], float] | None:
    """x, the last axes and epsilon, for an expression mean(x ** 2) + epsilon."""
    total = resolve(expression, known)
    epsilon = constant(total.args[1]) if callee(total) == "add" else None
    if epsilon is None or epsilon.size != 1:
        return None
    mean = resolve(total.args[0], known)
    axes = _averaged(mean)
    source = _squared(resolve(mean.args[0], known), known) if axes else None
    return (source, axes, float(epsilon.item())) if axes and source is not None else None


def _squared(square: Any, known: Definitions) -> Any:
    """The operand of a square, in any spelling; None for other expressions."""
    match callee(square):
        case "square":
            is_square = True
        case "multiply":
            is_square = _same_value(square.args[0], square.args[1], known)
        case "power":
            power = constant(square.args[1])
            is_square = power is not None and power.size == 1 and power.item() == 2
        case _:
            is_square = False
    return resolve(square.args[0], known) if is_square else None


def _same_value(first: Any, second: Any, known: Definitions) -> bool:
    return _same(resolve(first, known), resolve(second, known))


def _same(first: Any, second: Any) -> bool:
    return first is second or bool(first.same_as(second))
