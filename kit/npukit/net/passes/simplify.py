"""Removal of needless ops left by importers: moves, paddings, repetitions, ops on constants alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import ge

from npukit.net.net import Net, Op
from npukit.net.ops import (
    Concat,
    Conv2d,
    DepthwiseConv2d,
    Matmul,
    MaxPool,
    Pad,
    Padding,
    Reshape,
    ResizeNearest,
    Transpose,
)
from npukit.net.reference import run_reference
from npukit.net.tensor import Tensor, transposed


def fold_padding(net: Net) -> Net:
    """The net with the borders of images folded into the padding of the convolutions and maximum pools after them."""
    pads = {op.output: op for op in net.ops if isinstance(op.attributes, Pad)}
    folded = (_with_padding(net, op, pads.get(op.inputs[0])) or op for op in net.ops)
    return without_unread(replace(net, ops=tuple(folded)))


def _with_padding(net: Net, op: Op, pad: Op | None) -> Op | None:
    """The op with a border as padding; None if it needs other values around an image than the border has."""
    attributes, around = op.attributes, pad.attributes if pad else None
    if not isinstance(attributes, Conv2d | DepthwiseConv2d | MaxPool) or pad is None or not isinstance(around, Pad):
        return None
    quantization = net.tensor(pad.inputs[0]).quantization
    sides = (around.before, around.after)
    if quantization is None or len(around.before) != 4 or any(side[axis] for side in sides for axis in (0, 3)):
        return None
    if around.value != (-128 if isinstance(attributes, MaxPool) else quantization.zero_point):
        return None
    added = (*around.before[1:3], *around.after[1:3])
    top, left, bottom, right = (own + more for own, more in zip(attributes.padding, added, strict=True))
    padding: Padding = (top, left, bottom, right)
    if isinstance(attributes, MaxPool) and any(map(ge, padding, attributes.window * 2)):
        return None
    return replace(op, attributes=replace(attributes, padding=padding), inputs=(pad.inputs[0], *op.inputs[1:]))


def merge_moves(net: Net) -> Net:
    """The net with consecutive transpositions, reshapes and nearest resizes merged, and identities removed."""
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
            read |= {name for part in op.parts for name in (*part.inputs, *part.outputs)}
    tensors = {name: tensor for name, tensor in net.tensors.items() if name in read}
    constants = {name: value for name, value in net.constants.items() if name in read}
    return replace(net, ops=tuple(reversed(ops)), tensors=tensors, constants=constants)


def without_unread_constants(net: Net) -> Net:
    """The net without constants that no op reads, not even a part of a fused op."""
    unread = net.constants.keys() - {name for op in net.ops for part in op.parts for name in part.inputs}
    tensors, constants = ({n: v for n, v in held.items() if n not in unread} for held in (net.tensors, net.constants))
    return replace(net, tensors=tensors, constants=constants)


def fold_constants(net: Net) -> Net:
    """The net with ops on constants alone replaced by their results. Outputs of the net stay computed."""
    kept: list[Op] = []
    for op in net.ops:
        if all(name in net.constants for name in op.inputs) and op.output not in net.ends:
            first, others = op.inputs[0], {name: net.constants[name] for name in op.inputs[1:] if name != op.inputs[0]}
            alone = replace(net.alone(op), inputs=(first,), constants=others)
            net = replace(net, constants={**net.constants, op.output: run_reference(alone, [net.constants[first]])[0]})
        else:
            kept.append(op)
    return net.with_ops(tuple(kept))


def with_transposing_products(net: Net) -> Net:
    """The net without the transpositions that a product of two activations can perform."""
    made = {op.output: op for op in net.ops if isinstance(op.attributes, Transpose)}
    net = without_unread(net.with_ops(tuple(_reading(op, made) for op in net.ops)))
    for op in net.ops:
        behind = [each for each in net.ops if op.output in each.inputs]
        if isinstance(op.attributes, Matmul) and len(behind) == 1 and op.output not in net.ends:
            net = _writing(net, op, behind[0])
    return net


def _reading(op: Op, made: dict[str, Op]) -> Op:
    """The product on its operands before their transposition."""
    if not isinstance(op.attributes, Matmul):
        return op
    inputs, orders = list(op.inputs), [op.attributes.first, op.attributes.second]
    for place, ends in enumerate(((-1,), (-1, -2))):
        before = made.get(inputs[place])
        axes = _combined(before, orders[place])
        if before and axes and axes.index(len(axes) - 1) - len(axes) in ends:
            inputs[place], orders[place] = before.inputs[0], axes
    return replace(op, inputs=tuple(inputs), attributes=replace(op.attributes, first=orders[0], second=orders[1]))


def _combined(before: Op | None, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of two consecutive transpositions combined."""
    if before is None or not isinstance(before.attributes, Transpose):
        return ()
    return transposed(before.attributes.axes, axes)


def _writing(net: Net, op: Op, behind: Op) -> Net:
    """The net with a product merged with a transposition, its only reader."""
    if not isinstance(behind.attributes, Transpose) or behind.attributes.axes[-1] != len(behind.attributes.axes) - 1:
        return net
    axes = behind.attributes.axes
    result = transposed(op.of(Matmul).result or tuple(range(len(axes))), axes)
    product = replace(op, attributes=replace(op.attributes, result=result), outputs=behind.outputs)
    ops = tuple(product if each is op else each for each in net.ops if each is not behind)
    return without_unread(net.with_ops(ops))


ROWS, _COLUMNS = 2, 3
"""The axes of size 1 along which concatenation repeats rows, [n, rows, 1, columns, channels], or columns, [n, rows,
columns, 1, channels]."""


def with_repeats_as_resizing(net: Net) -> Net:
    """The net with each concatenation of an image with itself replaced by a nearest-neighbour resize."""
    found = {op.name: _resized(net, op) for op in net.ops if _repeats(net, op)}
    if not found:
        return net
    made = {tensor.name: tensor for tensors, _ in found.values() for tensor in tensors}
    ops = tuple(each for op in net.ops for each in (found[op.name][1] if op.name in found else [op]))
    return merge_moves(replace(net, ops=ops, tensors={**net.tensors, **made}))


def _repeats(net: Net, op: Op) -> bool:
    if not isinstance(op.attributes, Concat) or len(set(op.inputs)) > 1 or op.inputs[0] in net.constants:
        return False
    shape, axis = net.tensor(op.inputs[0]).shape, op.attributes.axis
    return len(shape) == 5 and axis in (ROWS, _COLUMNS) and shape[axis] == 1


def _resized(net: Net, op: Op) -> tuple[list[Tensor], list[Op]]:
    """The tensors and ops of the replacement: reshape, resize, reshape."""
    axis, times, given = op.of(Concat).axis, len(op.inputs), net.tensor(op.inputs[0])
    image = (*given.shape[:axis], *given.shape[axis + 1 :])
    places = [list(range(size)) for size in image[1:3]]
    places[axis - ROWS] = [place for place in places[axis - ROWS] for _ in range(times)]
    rows, columns = map(tuple, places)
    before, after = f"{op.output}_image", f"{op.output}_resized"
    shapes = {before: image, after: (image[0], len(rows), len(columns), image[3])}
    tensors = [replace(given, name=name, shape=shape) for name, shape in shapes.items()]
    return tensors, list(_ops(op, ResizeNearest(rows, columns), before, after))


def _ops(op: Op, resize: ResizeNearest, before: str, after: str) -> Iterator[Op]:
    yield Op(f"{op.name}_image", Reshape(), op.inputs[:1], (before,))
    yield Op(op.name, resize, (before,), (after,))
    yield Op(f"{op.name}_joined", Reshape(), (after,), op.outputs)
