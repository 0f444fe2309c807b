"""Images enlarged by integer factors, which some exporters write as concatenations with themselves, axis by axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npukit.net.net import Net, Op
from npukit.net.ops import Concat, Reshape, ResizeNearest
from npukit.net.passes.simplify import merge_moves
from npukit.net.tensor import Tensor

ROWS, COLUMNS = 2, 3
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
    return len(shape) == 5 and axis in (ROWS, COLUMNS) and shape[axis] == 1


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
