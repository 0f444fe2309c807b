"""Ops at the net's ends moved to the link: inputs are converted on arrival, outputs on departure.

The host's form of these tensors never occupies PE memory, and no frame waits for a conversion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from npukit.net.net import CORE, LINK, Net, Op
from npukit.net.ops import Dequantize, Lookup, Quantize, Requantize, Reshape, Transpose

AS_IT_ARRIVES = "as it arrives"
AS_IT_LEAVES = "as it leaves"


def with_ends_at_link(net: Net) -> Net:
    """The net with as many conversions as possible moved to the link."""
    reads = Counter(name for op in net.ops for name in op.inputs)
    found = {op.name: op.placed(LINK, AS_IT_ARRIVES) for name in net.inputs for op in _arriving(net, name, reads)}
    made = _made(op for op in net.ops if op.name not in found)
    leaving = (op for name in net.outputs for op in _leaving(net, name, reads, made))
    found |= {op.name: op.placed(LINK, AS_IT_LEAVES) for op in leaving}
    return net.with_ops(tuple(found.get(op.name, op) for op in net.ops))


def _made(ops: Iterable[Op]) -> set[str]:
    """The outputs of the ops, without reshapes of the net's inputs and states: the frame overwrites a state."""
    made: set[str] = set()
    for op in ops:
        if not isinstance(op.attributes, Reshape) or op.inputs[0] in made:
            made.add(op.output)
    return made


def without_link(net: Net) -> Net:
    """The net with all conversions on the core."""
    return net.with_ops(tuple(op.placed(CORE) if op.engine == LINK else op for op in net.ops))


def inside(net: Net) -> Net:
    """The net between the conversions at the link: the work of the PEs."""
    if all(op.engine != LINK for op in net.ops):
        return net
    inputs = tuple(held(net, name) for name in net.inputs)
    outputs = tuple(held(net, name) for name in net.outputs)
    return replace(net, inputs=inputs, outputs=outputs, ops=tuple(op for op in net.ops if op.engine != LINK))


def around(net: Net, whole: Net) -> Net:
    """The inside of `whole`, or a variant of the inside, with the conversions at the link of `whole`."""
    ends = [op for op in whole.ops if op.engine == LINK]
    if not ends or any(op.engine == LINK for op in net.ops):
        return net
    arriving = [op for name in whole.inputs for op in conversions_of(whole, name)]
    tensors = {name: whole.tensors[name] for op in ends for name in (*op.inputs, *op.outputs)} | dict(net.tensors)
    read = {name: whole.constants[name] for op in ends for name in op.inputs if name in whole.constants}
    ops, constants = (*arriving, *net.ops, *(op for op in ends if op not in arriving)), {**net.constants, **read}
    return replace(net, inputs=whole.inputs, outputs=whole.outputs, ops=ops, tensors=tensors, constants=constants)


def held(net: Net, name: str) -> str:
    """The tensor in memory behind an input or output of the net."""
    ops = conversions_of(net, name)
    return name if not ops else ops[-1].output if name in net.inputs else ops[0].inputs[0]


def conversions_of(net: Net, name: str) -> list[Op]:
    """The ops by which the link converts an input or an output, in execution order."""
    found: list[Op] = []
    at_link = [op for op in net.ops if op.engine == LINK]
    if name in net.inputs:
        while op := next((op for op in at_link if op.inputs[0] == name), None):
            found, name = [*found, op], op.output
    else:
        while op := next((op for op in at_link if op.output == name), None):
            found, name = [op, *found], op.inputs[0]
    return found


def swapped(net: Net, op: Op) -> tuple[int, int] | None:
    """The sizes, in elements, of the two runs of axes swapped by a transposition. None for any other transposition."""
    shape = net.tensor(op.inputs[0]).shape
    axes = [axis for axis in op.attributes.axes if shape[axis] > 1] if isinstance(op.attributes, Transpose) else []
    cut = sum(1 for axis in axes if axis < axes[0])
    if not cut or axes != [*sorted(axes)[cut:], *sorted(axes)[:cut]]:
        return None
    return prod(shape[axis] for axis in sorted(axes)[:cut]), prod(shape[axis] for axis in sorted(axes)[cut:])


def _arriving(net: Net, name: str, reads: Counter[str]) -> list[Op]:
    """The ops after an input that the link can run: at most one conversion of values and one transposition."""
    found: list[Op] = []
    while reads[name] == 1 and name not in net.outputs:
        op = next(op for op in net.ops if name in op.inputs)
        if op.output in net.ends or not _may_convert(net, op, found) or not _arrives(net, op):
            break
        found, name = [*found, op], op.output
    return found


def _leaving(net: Net, name: str, reads: Counter[str], made: set[str]) -> list[Op]:
    """The ops before an output that the link can run, in order. Others may read the first one's input."""
    found: list[Op] = []
    read, ends = 0, 1
    while name in made and (reads[name], net.ends.count(name)) == (read, ends):
        op = next(op for op in net.ops if op.output == name)
        if op.inputs[0] not in made or not _may_convert(net, op, found) or not _leaves(net, op):
            break
        found, name, read, ends = [op, *found], op.inputs[0], 1, 0
    return found


def _may_convert(net: Net, op: Op, others: Sequence[Op]) -> bool:
    """True for the first transposition, and for the first op of any other kind."""
    moves = isinstance(op.attributes, Transpose)
    return all(moves != isinstance(other.attributes, Transpose) for other in others) and not (
        moves and (swapped(net, op) is None or net.tensor(op.output).dtype not in ("int8", "uint8"))
    )


def _arrives(net: Net, op: Op) -> bool:
    if isinstance(op.attributes, Transpose):
        return True
    return (_is_quantisation(net, op) or _maps_bytes(net, op)) and net.tensor(op.output).dtype == "int8"


def _leaves(net: Net, op: Op) -> bool:
    dequantises = isinstance(op.attributes, Dequantize) and np.dtype(net.tensor(op.inputs[0]).dtype).itemsize == 1
    return isinstance(op.attributes, Transpose) or _maps_bytes(net, op) or dequantises


def _maps_bytes(net: Net, op: Op) -> bool:
    sizes = {np.dtype(net.tensor(name).dtype).itemsize for name in (op.inputs[0], op.output)}
    by_channel = isinstance(op.attributes, Lookup) and len(net.tensor(op.inputs[1]).shape) > 1
    return isinstance(op.attributes, Lookup | Requantize) and sizes == {1} and not by_channel


def _is_quantisation(net: Net, op: Op) -> bool:
    """True for float inputs with a single offset and step, or with several along one axis."""
    if not isinstance(op.attributes, Quantize) or net.tensor(op.inputs[0]).dtype != "float32":
        return False
    shape = np.broadcast_shapes(*(net.tensor(name).shape for name in op.inputs[1:]))
    return sum(size > 1 for size in shape) <= 1
