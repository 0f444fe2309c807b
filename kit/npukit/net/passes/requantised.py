"""Requantisation of bytes by table: of 256 numbers each has one result, and tables have kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Lookup, Requantize
from npukit.net.requantize import quantization, rescale, scale_ratio
from npukit.net.tensor import Tensor


def with_requantising_tables(net: Net) -> Net:
    """The net in which the core looks up what bytes become under another scale, instead of computing it for each."""
    tables = {op.name: _table(net, op) for op in net.ops if _maps_bytes_to_int8(net, op)}
    ops = tuple(_by_table(op) if op.name in tables else op for op in net.ops)
    constants = {_named(name): table for name, table in tables.items()}
    made = {name: Tensor(name, table.shape, "int8") for name, table in constants.items()}
    return replace(net, ops=ops, tensors={**net.tensors, **made}, constants={**net.constants, **constants})


def _maps_bytes_to_int8(net: Net, op: Op) -> bool:
    if not isinstance(op.attributes, Requantize) or op.engine != CORE:
        return False
    return net.tensor(op.inputs[0]).dtype in ("int8", "uint8") and net.tensor(op.output).dtype == "int8"


def _table(net: Net, op: Op) -> np.ndarray:
    limits = np.iinfo(net.tensor(op.inputs[0]).dtype)
    centred = np.arange(limits.min, limits.max + 1, dtype=np.int64) - quantization(net, op.inputs[0]).zero_point
    moved = rescale(centred, scale_ratio(net, op)) + quantization(net, op.output).zero_point
    return np.clip(moved, -128, 127).astype(np.int8)


def _by_table(op: Op) -> Op:
    return replace(op, attributes=Lookup(), inputs=(*op.inputs, _named(op.name)))


def _named(name: str) -> str:
    return f"{name}_table"
