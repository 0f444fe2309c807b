"""Replaces float ops without an int8 form by ops with an int8 form: an axis by two, averages over padding, ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import IRModule

from npukit.net.importer.expressions import callee, dtype_of, resolve, shape_of
from npukit.quantize import norms
from npukit.quantize.function import constant, outputs, rewritten, substituted

operators: Any = relax.op
Spell = Callable[[relax.BlockBuilder, Any], Any]
"""Returns a replacement for a call, or None to leave the call."""


def respelled(module: IRModule) -> IRModule:
    """The same function in ops with an int8 form, where a replacement is known."""
    known: dict[Any, Any] = {}

    def emit(builder: relax.BlockBuilder, variable: Any, value: Any) -> None:
        if not isinstance(value, relax.Tuple):
            call = builder.normalize(substituted(value, known))
            spelled = SPELLINGS[callee(call)](builder, call) if callee(call) in SPELLINGS else None
            known[variable] = builder.emit(call if spelled is None else spelled, variable.name)

    return rewritten(module, emit, lambda _: [known.get(output, output) for output in outputs(module)])


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
        spelled = _average(builder, pooled) if name == "avg_pool2d" else None
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
    source = resolve(call.args[0], norms.Definitions(builder))
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


SPELLINGS: Mapping[str, Spell] = {
    "add": norms.shifted,
    "broadcast_to": _broadcast,
    "divide": _first(_by_constant, norms.normalized, norms.inverse_root),
    "max": _largest,
    "multiply": _first(norms.normalized, norms.scaled),
    "nn.avg_pool1d": _pool1d("avg_pool2d"),
    "nn.avg_pool2d": _average,
    "nn.conv1d": _conv1d,
    "nn.max_pool1d": _pool1d("max_pool2d"),
    "nn.softmax": _softmax,
    "take": _looked_up,
}
