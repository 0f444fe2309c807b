"""Removal of needless ops left by importers."""

from __future__ import annotations

from dataclasses import replace

from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, DepthwiseConv2d, Pad, Padding, Reshape, ResizeNearest, Transpose


def fold_padding(net: Net) -> Net:
    """The net with zeros around an image folded into the padding of the convolutions after it."""
    pads = {op.output: op for op in net.ops if _surrounds_with_zeros(net, op)}
    ops = tuple(_with_padding(op, pads[op.inputs[0]]) if _takes(op, pads) else op for op in net.ops)
    return without_unread(replace(net, ops=ops))


def _takes(op: Op, pads: dict[str, Op]) -> bool:
    return isinstance(op.attributes, Conv2d | DepthwiseConv2d) and op.inputs[0] in pads


def _surrounds_with_zeros(net: Net, op: Op) -> bool:
    attributes, quantization = op.attributes, net.tensor(op.inputs[0]).quantization
    if not isinstance(attributes, Pad) or quantization is None or len(attributes.before) != 4:
        return False
    sides = (attributes.before, attributes.after)
    return attributes.value == quantization.zero_point and not any(side[axis] for side in sides for axis in (0, 3))


def _with_padding(op: Op, pad: Op) -> Op:
    attributes, around = op.of(Conv2d, DepthwiseConv2d), pad.attributes
    assert isinstance(around, Pad)
    added = (*around.before[1:3], *around.after[1:3])
    top, left, bottom, right = (own + more for own, more in zip(attributes.padding, added, strict=True))
    padding: Padding = (top, left, bottom, right)
    return replace(op, attributes=replace(attributes, padding=padding), inputs=(pad.inputs[0], *op.inputs[1:]))


def merge_moves(net: Net) -> Net:
    """The net with consecutive transpositions, reshapes and nearest resizes merged, and removed if the result is the
    identity."""
    made: dict[str, Op] = {}
    same: dict[str, str] = {}
    for op in net.ops:
        merged = replace(op, inputs=tuple(same.get(name, name) for name in op.inputs))
        merged = _after(made.get(merged.inputs[0]), merged)
        if _does_nothing(net, merged) and op.output not in net.ends:
            same[op.output] = merged.inputs[0]
        else:
            made[op.output] = merged
    return without_unread(net.with_ops(tuple(made.values())))


def _after(before: Op | None, op: Op) -> Op:
    """Two consecutive moves as one."""
    if before is None or before.kind != op.kind or not isinstance(op.attributes, Reshape | Transpose | ResizeNearest):
        return op
    if isinstance(op.attributes, Transpose) and isinstance(before.attributes, Transpose):
        axes = tuple(before.attributes.axes[axis] for axis in op.attributes.axes)
        return replace(op, attributes=Transpose(axes), inputs=before.inputs)
    if isinstance(op.attributes, ResizeNearest) and isinstance(before.attributes, ResizeNearest):
        rows = tuple(before.attributes.rows[row] for row in op.attributes.rows)
        columns = tuple(before.attributes.columns[column] for column in op.attributes.columns)
        return replace(op, attributes=ResizeNearest(rows, columns), inputs=before.inputs)
    return replace(op, inputs=before.inputs)


def _does_nothing(net: Net, op: Op) -> bool:
    if isinstance(op.attributes, Transpose):
        return op.attributes.axes == tuple(range(len(op.attributes.axes)))
    source = net.tensor(op.inputs[0])
    return isinstance(op.attributes, Reshape) and replace(source, name=op.output) == net.tensor(op.output)


def moves_nothing(axes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """True if a transposition moves only axes of size 1."""
    kept = [axis for axis in axes if shape[axis] != 1]
    return kept == sorted(kept)


def without_unread(net: Net) -> Net:
    """The net without ops, tensors and constants that no output or state depends on. Inputs stay."""
    read, ops = {*net.ends, *net.begins}, []
    for op in reversed(net.ops):
        if read & set(op.outputs):
            ops.append(op)
            read |= {*op.inputs, *op.outputs}
    tensors = {name: tensor for name, tensor in net.tensors.items() if name in read}
    constants = {name: value for name, value in net.constants.items() if name in read}
    return replace(net, ops=tuple(reversed(ops)), tensors=tensors, constants=constants)
