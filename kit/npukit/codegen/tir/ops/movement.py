"""Ops that move unchanged values."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, cast, let, loop, when
from npukit.codegen.tir.ops.strided import Strided, each_element, each_position, in_order
from npukit.net.box import Box
from npukit.net.ops import ArgMax, Concat, Pad, Slice, TopK, Transpose

KEY_BITS = 16
KEY = 1 << KEY_BITS
_LIMIT = 1 << 30
"""A key for sorting is value * KEY - place. No key is beyond _LIMIT."""


def transpose(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(Transpose), Strided.of(tile.inputs[0]), Strided.of(tile.output)
    turned = Strided(made.shape, tuple(given.strides[axis] for axis in attributes.axes))
    with each_position(made.shape) as position:
        output[made.index(position)] = source[turned.index(position)]


def pad(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(Pad), Strided.of(tile.inputs[0]), Strided.of(tile.output)
    with each_element([made]) as (place,):
        output[place] = cast(tile.output.tensor.dtype, attributes.value)
    start = tuple(map(sum, zip(tile.inputs[0].box.start, attributes.before, strict=True)))
    stop = tuple(map(sum, zip(tile.inputs[0].box.stop, attributes.before, strict=True)))
    inside = Box(start, stop).intersection(tile.output.box)
    if not inside.empty:
        taken, put = given.part(inside, Box(start, stop)), made.part(inside, tile.output.box)
        with each_position(inside.shape) as position:
            output[put.index(position)] = source[taken.index(position)]


def concat(tile: Tile, *arrays: Pointed) -> None:
    attributes, made, output = tile.op.of(Concat), Strided.of(tile.output), arrays[-1]
    begin = 0
    for source, given in in_order(tile, arrays[:-1]):
        with each_position(given.shape) as position:
            moved = [place + begin if axis == attributes.axis else place for axis, place in enumerate(position)]
            output[made.index(moved)] = source[given.index(position)]
        begin += given.shape[attributes.axis]


def slice_(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(Slice), Strided.of(tile.inputs[0]), Strided.of(tile.output)
    corners = zip(attributes.begin, tile.output.box.start, attributes.strides, tile.inputs[0].box.start, strict=True)
    begins = [begin + start * stride - held for begin, start, stride, held in corners]
    with each_position(made.shape) as position:
        taken = [
            begin + place * stride for place, begin, stride in zip(position, begins, attributes.strides, strict=True)
        ]
        output[made.index(position)] = source[given.index(taken)]


def argmax(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(ArgMax), Strided.of(tile.inputs[0]), Strided.of(tile.output)
    with each_position(made.shape) as position:

        def at(place: Expr, position: list[Expr] = position) -> Expr:
            return source[given.index([*position[: attributes.axis], place, *position[attributes.axis :]])]

        best = Local("best", "int32", 0)
        with loop("i", 1, given.shape[attributes.axis]) as i, when(at(i) > at(best.value)):
            best.set(i)
        output[made.index(position)] = cast(tile.output.tensor.dtype, best.value)


def top_k(tile: Tile, source: Pointed, output: Pointed) -> None:
    """Each turn finds the largest key below the previous key. Keys order elements by value, then by place."""
    attributes, given, made = tile.op.of(TopK), Strided.of(tile.inputs[0]), Strided.of(tile.output)
    with each_position(given.shape[:-1], "row_") as row:
        last = Local("last", "int32", _LIMIT)
        with loop("rank", 0, attributes.count) as rank:
            best = Local("best", "int32", -_LIMIT)
            with loop("i", 0, given.shape[-1]) as i:
                key = let("key", cast("int32", source[given.index([*row, i])]) * KEY - i)
                with when(key < last.value), when(key > best.value):
                    best.set(key)
            value = let("value", (best.value + (KEY - 1)) >> KEY_BITS)
            chosen = value if attributes.values else value * KEY - best.value
            output[made.index([*row, rank])] = cast(tile.output.tensor.dtype, chosen)
            last.set(best.value)


KERNELS = {"argmax": argmax, "concat": concat, "pad": pad, "slice": slice_, "top_k": top_k, "transpose": transpose}
