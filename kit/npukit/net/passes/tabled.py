"""Elementwise ops of a single tensor of bytes as lookups, which have kernels: a byte has only 256 values.

Arithmetic with constants by channel becomes a lookup with a table for each channel. Consecutive lookups become one. An
identity table, left where a factor became part of the scale, is no work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from npukit.net.net import CORE, NO_WORK, Net, Op
from npukit.net.ops import Add, Divide, Lookup, Multiply, Prelu, Reshape, SquaredDifference, Subtract
from npukit.net.ops.table import SPECS
from npukit.net.passes.simplify import without_unread, without_unread_constants
from npukit.net.tensor import Tensor

_BYTES, _TABLE = ("int8", "uint8"), 256
_ARITHMETIC = Add | Subtract | Multiply | Divide | SquaredDifference | Prelu
MOST_TABLE_BYTES = 16 << 10
"""Limit of the tables of an op: an eighth of the SRAM of a PE of `pe-mesh`."""
LEAST_PIXELS = 32
"""Pixels from which on a table for each channel is worth its bytes."""


def with_tables(net: Net) -> Net:
    """The net in which the core looks up each function of one byte, or does nothing if no value changes."""
    tables = {op.name: results_of_bytes(net, op) for op in net.ops if op.engine == CORE and _has_table(net, op)}
    net = _with(net, {op.name: (op.inputs[_place(net, op)], tables[op.name]) for op in net.ops if op.name in tables})
    net = _joined(net)
    return without_unread_constants(net.with_ops(tuple(_unless_same(net, op) for op in net.ops)))


def _with(net: Net, tables: Mapping[str, tuple[str, np.ndarray]]) -> Net:
    """The net with the ops in `tables` as lookups, each with the name of its input and its table."""
    ops = tuple(
        replace(op, attributes=Lookup(), inputs=(tables[op.name][0], f"{op.name}_table")) if op.name in tables else op
        for op in net.ops
    )
    constants = {f"{name}_table": table for name, (_, table) in tables.items()}
    made = {name: Tensor(name, table.shape, "int8") for name, table in constants.items()}
    return replace(net, ops=ops, tensors={**net.tensors, **made}, constants={**net.constants, **constants})


def _joined(net: Net) -> Net:
    """The net with lookups joined to the lookup before, if the result between has a single reader."""
    reads = Counter([*net.ends, *(name for op in net.ops for name in op.inputs)])
    found: dict[str, tuple[str, np.ndarray]] = {}
    made = {op.output: op for op in net.ops if _looks_up(net, op)}
    for op in made.values():
        before = made.get(op.inputs[0])
        if before and reads[before.output] == 1 and net.tensor(before.output).dtype == "int8":
            source, first = found.get(before.name, (before.inputs[0], net.constants[before.inputs[1]]))
            found[op.name] = source, net.constants[op.inputs[1]][first.astype(np.int64) + 128]
    return without_unread(_with(net, found)) if found else net


def _looks_up(net: Net, op: Op) -> bool:
    return isinstance(op.attributes, Lookup) and op.engine == CORE and net.constants[op.inputs[1]].ndim == 1


def _unless_same(net: Net, op: Op) -> Op:
    """The op, or a reshape of its input for an identity table."""
    if not _looks_up(net, op) or net.tensor(op.inputs[0]).dtype != "int8":
        return op
    same = np.array_equal(net.constants[op.inputs[1]], np.arange(-128, 128))
    return replace(op, attributes=Reshape(), inputs=op.inputs[:1]).placed(CORE, NO_WORK) if same else op


def _has_table(net: Net, op: Op) -> bool:
    """True for an elementwise op of one tensor of bytes, perhaps read twice, and constants, with an int8 result."""
    if op.parts != (op,) or isinstance(op.attributes, Lookup) or not SPECS[op.kind].elementwise:
        return False
    read, made = {*net.activations(op)}, net.tensor(op.output)
    alike = [(made.shape, True)] == [(net.tensor(name).shape, net.tensor(name).dtype in _BYTES) for name in read]
    if made.dtype != "int8" or not alike:
        return False
    return _of_numbers(net, op) or (isinstance(op.attributes, _ARITHMETIC) and _of_channels(net, op))


def _of_numbers(net: Net, op: Op) -> bool:
    return all(net.tensor(name).elements == 1 for name in op.inputs if name in net.constants)


def _of_channels(net: Net, op: Op) -> bool:
    """True for constants of one pixel, whose tables are small, and small beside the tensor."""
    made = net.tensor(op.output)
    held = (net.tensor(name) for name in op.inputs if name in net.constants)
    size = made.shape[-1] * _TABLE if made.shape else 0
    small = 0 < size <= min(MOST_TABLE_BYTES, _TABLE // LEAST_PIXELS * made.elements)
    return small and all(each.elements in (1, prod(each.shape[-1:])) for each in held)


def _place(net: Net, op: Op) -> int:
    """The index of the op's activation."""
    return next(place for place, name in enumerate(op.inputs) if name not in net.constants)


def results_of_bytes(net: Net, op: Op) -> np.ndarray:
    """The results of all bytes of an elementwise op: [256], or [channels, 256] with constants by channel."""
    given = net.tensor(op.inputs[_place(net, op)])
    channels = 1 if _of_numbers(net, op) else given.shape[-1]
    limits = np.iinfo(given.dtype)
    values = np.arange(limits.min, limits.max + 1).astype(given.dtype)
    cases = np.repeat(values, channels).reshape(-1, *(1,) * (len(given.shape) - 1), channels)
    operands = [net.constants.get(name, cases) for name in op.inputs]
    found = SPECS[op.kind].reference(net, op, operands).reshape(len(values), channels)
    return np.ascontiguousarray(found.T.ravel() if channels == 1 else found.T)
