"""Layer norms that exporters spell in small ops, as the one op that they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from npukit.net.importer.expressions import callee, resolve, shape_of
from npukit.quantize.function import constant

operators: Any = relax.op
NORM = "nn.layer_norm"


class Definitions(dict[Any, Any]):
    """The expression that each variable of a builder is bound to, looked up when it is wanted."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        super().__init__()
        self._builder = builder

    def __contains__(self, variable: object) -> bool:
        return self._builder.lookup_binding(variable) is not None  # type: ignore[arg-type]

    def __getitem__(self, variable: Any) -> Any:
        return self._builder.lookup_binding(variable)


def normalized(builder: relax.BlockBuilder, call: Any) -> Any:
    """(x - mean) / sqrt(variance + epsilon), or its product with a reciprocal, as a layer norm of x."""
    known = Definitions(builder)
    first, second = (resolve(argument, known) for argument in call.args)
    if callee(call) == "multiply" and callee(first) == "rsqrt":
        first, second = second, first
    root = "sqrt" if callee(call) == "divide" else "rsqrt"
    found = _centred(first, known) if callee(second) == root else None
    epsilon = _variance(second.args[0], found, known) if found else None
    if found is None or epsilon is None:
        return None
    source, axes = found
    shape = shape_of(source)[axes[0] :]
    ends = (relax.const(np.full(shape, value, np.float32)) for value in (1, 0))
    return operators.nn.layer_norm(source, *ends, axes=axes, epsilon=epsilon)


Ends = tuple[np.ndarray, np.ndarray]
"""A norm's factors and what is added."""


def scaled(builder: relax.BlockBuilder, call: Any) -> Any:
    """A layer norm times constants."""
    return _with(builder, call, lambda ends, value: (ends[0] * value, ends[1] * value))


def shifted(builder: relax.BlockBuilder, call: Any) -> Any:
    """A layer norm plus constants."""
    return _with(builder, call, lambda ends, value: (ends[0], ends[1] + value))


def _with(builder: relax.BlockBuilder, call: Any, change: Callable[[Ends, np.ndarray], Ends]) -> Any:
    """The norm in a sum or product, with the constant operand in it."""
    for operand, other in (call.args, reversed(call.args)):
        norm = resolve(operand, Definitions(builder))
        factors, added = (constant(end) for end in norm.args[1:3]) if callee(norm) == NORM else (None, None)
        value = constant(other)
        if factors is None or added is None or value is None or shape_of(call) != shape_of(norm):
            continue
        if value.size == 1:
            return _norm(norm, change((factors, added), value.reshape(())))
        if value.size == factors.size and value.shape[-factors.ndim :] == factors.shape:
            return _norm(norm, change((factors, added), value.reshape(factors.shape)))
    return None


def _norm(given: Any, ends: Ends) -> Any:
    """The same norm with other constants."""
    axes, attributes = [int(axis) for axis in given.attrs.axes], given.attrs
    made = (relax.const(np.ascontiguousarray(end, np.float32)) for end in ends)
    return operators.nn.layer_norm(given.args[0], *made, axes=axes, epsilon=float(attributes.epsilon))


def _centred(expression: Any, known: Definitions) -> tuple[Any, list[int]] | None:
    """x and the last axes, of x - mean(x)."""
    if callee(expression) != "subtract":
        return None
    source, mean = expression.args[0], resolve(expression.args[1], known)
    axes = _averaged(mean)
    if axes is None or not _same(resolve(mean.args[0], known), resolve(source, known)):
        return None
    return source, axes


def _averaged(mean: Any) -> list[int] | None:
    """The axes that a mean is taken over, if these are the last ones and stay as ones."""
    if callee(mean) != "mean" or not bool(mean.attrs.keepdims) or mean.attrs.axis is None:
        return None
    rank = len(shape_of(mean.args[0]))
    axes = sorted(int(axis) % rank for axis in mean.attrs.axis)
    return axes if axes == list(range(rank - len(axes), rank)) else None


def _variance(expression: Any, found: tuple[Any, list[int]], known: Definitions) -> float | None:
    """Epsilon, of mean((x - mean(x)) ** 2) + epsilon."""
    total = resolve(expression, known)
    epsilon = constant(total.args[1]) if callee(total) == "add" else None
    if epsilon is None or epsilon.size != 1:
        return None
    mean = resolve(total.args[0], known)
    if _averaged(mean) != found[1]:
        return None
    inner = _squared(resolve(mean.args[0], known), known)
    centred = _centred(inner, known) if inner is not None else None
    same = centred is not None and _same(resolve(centred[0], known), resolve(found[0], known))
    return float(epsilon.item()) if same else None


def _squared(square: Any, known: Definitions) -> Any:
    """The operand that is squared, however that is spelled."""
    if callee(square) == "square":
        return resolve(square.args[0], known)
    if callee(square) not in ("multiply", "power"):
        return None
    first, second = square.args
    power = constant(second)
    if callee(square) == "power":
        return resolve(first, known) if power is not None and power.size == 1 and power.item() == 2 else None
    return resolve(first, known) if _same(resolve(first, known), resolve(second, known)) else None


def _same(first: Any, second: Any) -> bool:
    return first is second or bool(first.same_as(second))
