"""Requantisation of bytes by table. A byte has only 256 values, and lookup tables have kernels.

An identity table, left where a factor became part of the scale, is no work.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npukit.net.net import CORE, NO_WORK, Net, Op
from npukit.net.ops import Lookup, Requantize, Reshape
from npukit.net.passes.simplify import without_unread_constants
from npukit.net.requantize import quantization, rescale, scale_ratio
from npukit.net.tensor import Tensor


def with_requantising_tables(net: Net) -> Net:
    """The net in which the core requantises bytes by table instead of arithmetic, or not at all if no value changes."""
    tables = {op.name: _table(net, op) for op in net.ops if _maps_bytes_to_int8(net, op)}
    ops = tuple(
        replace(op, attributes=Lookup(), inputs=(*op.inputs, _named(op.name))) if op.name in tables else op
        for op in net.ops
    )
    constants = {_named(name): table for name, table in tables.items()}
    made = {name: Tensor(name, table.shape, "int8") for name, table in constants.items()}
    whole = replace(net, ops=ops, tensors={**net.tensors, **made}, constants={**net.constants, **constants})
    return without_unread_constants(whole.with_ops(tuple(_unless_same(whole, op) for op in ops)))


def _unless_same(net: Net, op: Op) -> Op:
    """The op, or a reshape of its input for an identity table."""
    if not isinstance(op.attributes, Lookup) or op.engine != CORE or net.tensor(op.inputs[0]).dtype != "int8":
        return op
    same = np.array_equal(net.constants[op.inputs[1]], np.arange(-128, 128))
    return replace(op, attributes=Reshape(), inputs=op.inputs[:1]).placed(CORE, NO_WORK) if same else op


def _maps_bytes_to_int8(net: Net, op: Op) -> bool:
    if not isinstance(op.attributes, Requantize) or op.engine != CORE:
        return False
    return net.tensor(op.inputs[0]).dtype in ("int8", "uint8") and net.tensor(op.output).dtype == "int8"


def _table(net: Net, op: Op) -> np.ndarray:
    limits = np.iinfo(net.tensor(op.inputs[0]).dtype)
    centred = np.arange(limits.min, limits.max + 1, dtype=np.int64) - quantization(net, op.inputs[0]).zero_point
    moved = rescale(centred, scale_ratio(net, op)) + quantization(net, op.output).zero_point
    return np.clip(moved, -128, 127).astype(np.int8)


def _named(name: str) -> str:
    return f"{name}_table"
