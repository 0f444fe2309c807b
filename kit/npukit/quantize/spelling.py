"""Replaces float ops without an int8 form by ops with one: an axis by two, norms spelt in small ops, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import IRModule

from npukit.net.importer.expressions import callee, dtype_of, resolve, shape_of
from npukit.quantize.function import changed, constant

operators: Any = relax.op
Spell = Callable[[relax.BlockBuilder, Any], Any]
"""Returns a replacement for a call, or None to leave the call."""


def respelled(module: IRModule) -> IRModule:
    """The same function in ops with an int8 form, where a replacement is known."""

    def change(builder: relax.BlockBuilder, variable: Any, value: Any) -> Any:
        del variable
        call = builder.normalize(value)
        spelled = SPELLINGS[callee(call)](builder, call) if callee(call) in SPELLINGS else None
        return call if spelled is None else spelled

    return changed(module, change)[0]


def _conv1d(builder: relax.BlockBuilder, call: Any) -> Any:
    """A one-dimensional convolution becomes a convolution of images with a single row."""
    attributes = call.attrs
    if (str(attributes.data_layout), str(attributes.kernel_layout)) != ("NCW", "OIW"):
        return None
    data, weights = (builder.emit(operators.expand_dims(operand, 2)) for operand in call.args)
    product = operators.nn.conv2d(
        data,
        weights,
        (1, *_numbers(attributes.strides)),
        _padding(attributes),
        (1, *_numbers(attributes.dilation)),
        int(attributes.groups),
        out_dtype=dtype_of(call),
    )
    return operators.squeeze(builder.emit(product), [2])


def _pool1d(name: str) -> Spell:
    def spell(builder: relax.BlockBuilder, call: Any) -> Any:
        attributes = call.attrs
        if str(attributes.layout) != "NCW":
            return None
        pooled = getattr(operators.nn, name)(
            builder.emit(operators.expand_dims(call.args[0], 2)),
            (1, *_numbers(attributes.pool_size)),
            (1, *_numbers(attributes.strides)),
            _padding(attributes),
            (1, *_numbers(attributes.dilation)),
            bool(attributes.ceil_mode),
            bool(attributes.count_include_pad),
        )
        pooled = builder.normalize(pooled)
        spelled = AVERAGE(builder, pooled) if name == "avg_pool2d" else None
        return operators.squeeze(builder.emit(pooled if spelled is None else spelled), [2])

    return spell


def _padding(attributes: Any) -> tuple[int, int, int, int]:
    before, after = _numbers(attributes.padding)
    return 0, before, 0, after


def _numbers(values: Any) -> list[int]:
    return [int(value) for value in values]


def _average(builder: relax.BlockBuilder, call: Any) -> Any:
    """An average that counts padding becomes an average over an explicitly padded image."""
    attributes = call.attrs
    counts = bool(attributes.count_include_pad) and any(_numbers(attributes.padding))
    if not counts or bool(attributes.ceil_mode) or str(attributes.layout) != "NCHW":
        return None
    top, left, bottom, right = _numbers(attributes.padding)
    data = builder.emit(operators.nn.pad(call.args[0], [0, 0, 0, 0, top, bottom, left, right]))
    sizes = (_numbers(field) for field in (attributes.pool_size, attributes.strides))
    return operators.nn.avg_pool2d(data, *sizes, (0, 0, 0, 0), _numbers(attributes.dilation))


def _average_of_all(builder: relax.BlockBuilder, call: Any) -> Any:
    """An average over whole images becomes a mean, which has a scale of its own."""
    del builder
    shape, layout = shape_of(call.args[0]), str(call.attrs.layout)
    axes = [layout.index(axis) for axis in "HW"]
    whole = [shape[axis] for axis in axes] == _numbers(call.attrs.pool_size) and not any(_numbers(call.attrs.padding))
    return operators.mean(call.args[0], axes, keepdims=True) if whole else None


def _largest(builder: relax.BlockBuilder, call: Any) -> Any:
    """A maximum over each channel becomes a pool over the whole image."""
    shape, axes = shape_of(call.args[0]), call.attrs.axis
    if len(shape) != 4 or axes is None or sorted(int(axis) % 4 for axis in axes) != [2, 3]:
        return None
    pooled = operators.nn.max_pool2d(call.args[0], shape[2:])
    return pooled if bool(call.attrs.keepdims) else operators.squeeze(builder.emit(pooled), [2, 3])


def _by_constant(builder: relax.BlockBuilder, call: Any) -> Any:
    """A division by constants becomes a product with reciprocals. A division by a single number is left to a table."""
    divisor = constant(call.args[1])
    if divisor is None or divisor.size == 1 or divisor.dtype != np.float32 or not np.all(divisor):
        return None
    return operators.multiply(call.args[0], relax.const(1 / divisor))


def _broadcast(builder: relax.BlockBuilder, call: Any) -> Any:
    """A broadcast to the operand's own shape is dropped."""
    return call.args[0] if shape_of(call) == shape_of(call.args[0]) else None


def _softmax(builder: relax.BlockBuilder, call: Any) -> Any:
    """A divisor before a softmax becomes a factor, which the softmax absorbs."""
    source = resolve(call.args[0], Definitions(builder))
    divisor = constant(source.args[1]) if callee(source) == "divide" else None
    if divisor is None or divisor.size != 1 or not divisor.all():
        return None
    factor = relax.const(1 / float(divisor.item()), "float32")
    return operators.nn.softmax(builder.emit(operators.multiply(source.args[0], factor)), int(call.attrs.axis))


def _looked_up(builder: relax.BlockBuilder, call: Any) -> Any:
    """Reads a table's row as a number of each column. Columns become contiguous, so that PEs can share them."""
    table, indices = constant(call.args[0]), call.args[1]
    if table is None or table.ndim != 2 or prod(shape_of(indices)) != 1 or int(call.attrs.axis) % 2:
        return None
    columns = relax.const(np.ascontiguousarray(table.T))
    row = builder.emit(operators.take(columns, indices, axis=1, mode=str(call.attrs.mode)))
    return operators.reshape(row, shape_of(call))


def _first(*spells: Spell) -> Spell:
    """Tries several replacements and returns the first result."""
    return lambda builder, call: next((found for each in spells if (found := each(builder, call)) is not None), None)


AVERAGE = _first(_average, _average_of_all)
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


SPELLINGS: Mapping[str, Spell] = {
    "add": shifted,
    "broadcast_to": _broadcast,
    "divide": _first(_by_constant, normalized, inverse_root),
    "max": _largest,
    "multiply": _first(normalized, scaled),
    "nn.avg_pool1d": _pool1d("avg_pool2d"),
    "nn.avg_pool2d": AVERAGE,
    "nn.conv1d": _conv1d,
    "nn.max_pool1d": _pool1d("max_pool2d"),
    "nn.softmax": _softmax,
    "take": _looked_up,
}
