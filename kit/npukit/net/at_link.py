"""Ops at a network's ends that the link does: inputs are converted as they arrive, outputs as they leave.

Such tensors never lie in memory as the host has them, and no frame waits for their conversion.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from npukit.net.net import CORE, LINK, Net, Op
from npukit.net.ops import Dequantize, Lookup, Quantize, Requantize

_AS_IT_ARRIVES = "as it arrives"
_AS_IT_LEAVES = "as it leaves"


def with_ends_at_link(net: Net) -> Net:
    """The net in which the link converts what it can."""
    reads = Counter(name for op in net.ops for name in op.inputs)
    found = {op.name: op.placed(LINK, _AS_IT_ARRIVES) for op in net.ops if _may_arrive(net, op, reads)}
    made = {op.output for op in net.ops if op.name not in found}
    found |= {op.name: op.placed(LINK, _AS_IT_LEAVES) for op in net.ops if _may_leave(net, op, reads, made)}
    return net.with_ops(tuple(found.get(op.name, op) for op in net.ops))


def without_link(net: Net) -> Net:
    """The net in which the core converts all."""
    return net.with_ops(tuple(op.placed(CORE) if op.engine == LINK else op for op in net.ops))


def inside(net: Net) -> Net:
    """The net between what the link converts: what PEs compute."""
    if all(op.engine != LINK for op in net.ops):
        return net
    inputs = tuple(held(net, name) for name in net.inputs)
    outputs = tuple(held(net, name) for name in net.outputs)
    return replace(net, inputs=inputs, outputs=outputs, ops=tuple(op for op in net.ops if op.engine != LINK))


def held(net: Net, name: str) -> str:
    """The tensor that lies in memory in place of an input or an output."""
    op = conversion_of(net, name)
    return name if op is None else op.output if op.reason == _AS_IT_ARRIVES else op.inputs[0]


def conversion_of(net: Net, name: str) -> Op | None:
    """The op by which the link converts an input or an output, if it does."""
    return next((op for op in net.ops if op.engine == LINK and name in (op.inputs[0], op.output)), None)


def _may_arrive(net: Net, op: Op, reads: Counter[str]) -> bool:
    source = op.inputs[0]
    alone = source in net.inputs and reads[source] == 1 and not {source, op.output} & {*net.ends}
    return alone and (_is_quantisation(net, op) or _maps_bytes(net, op)) and net.tensor(op.output).dtype == "int8"


def _may_leave(net: Net, op: Op, reads: Counter[str], made: set[str]) -> bool:
    """True also if others read what it converts, but nothing reads what it makes."""
    alone = [*net.ends].count(op.output) == 1 and op.output in net.outputs and not reads[op.output]
    return alone and op.inputs[0] in made and (_maps_bytes(net, op) or _is_dequantisation(net, op))


def _maps_bytes(net: Net, op: Op) -> bool:
    sizes = {np.dtype(net.tensor(name).dtype).itemsize for name in (op.inputs[0], op.output)}
    return isinstance(op.attributes, Lookup | Requantize) and sizes == {1}


def _is_quantisation(net: Net, op: Op) -> bool:
    """True for floats with one offset and step, or with some along one axis."""
    if not isinstance(op.attributes, Quantize) or net.tensor(op.inputs[0]).dtype != "float32":
        return False
    shape = np.broadcast_shapes(*(net.tensor(name).shape for name in op.inputs[1:]))
    return sum(size > 1 for size in shape) <= 1


def _is_dequantisation(net: Net, op: Op) -> bool:
    return isinstance(op.attributes, Dequantize) and np.dtype(net.tensor(op.inputs[0]).dtype).itemsize == 1
