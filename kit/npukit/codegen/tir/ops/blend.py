"""Ops that mix whole axes or neighbours: mean, resizing."""

from __future__ import annotations

from math import prod

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Array, Expr, Local, cast, let, quotient, select
from npukit.codegen.tir.ops.fixed_point import clamp, requantize
from npukit.codegen.tir.ops.strided import Strided, each_position
from npukit.net.ops import Mean
from npukit.net.reference.blend import ONE
from npukit.net.requantize import mean_rescaling, quantization


def mean(tile: Tile, source: Array, output: Array) -> None:
    attributes, given, made = tile.op.attributes, Strided.of(tile.inputs[0]), Strided.of(tile.output)
    assert isinstance(attributes, Mean)
    reduced = tuple(size if axis in attributes.axes else 1 for axis, size in enumerate(given.shape))
    count = prod(reduced)
    factor = mean_rescaling(tile.net, tile.op, count)
    zero_in, zero_out = (quantization(tile.net, name).zero_point for name in (tile.op.inputs[0], tile.op.output))
    with each_position(made.shape) as position:
        total = Local("sum", "int32", -zero_in * count)
        with each_position(reduced, "k") as inner:
            taken = [
                b if axis in attributes.axes else a for axis, (a, b) in enumerate(zip(position, inner, strict=True))
            ]
            total.set(total.value + cast("int32", source[given.index(taken)]))
        scaled = requantize(total.value, factor.multiplier, factor.shift)
        output[made.index(position)] = cast("int8", clamp(scaled + zero_out, (-128, 127)))


def resize_nearest(tile: Tile, source: Array, rows: Array, columns: Array, output: Array) -> None:
    given, made = Strided.of(tile.inputs[0]), Strided.of(tile.output)
    with each_position(made.shape) as (n, y, x, c):
        row, column = cast("int32", rows[y]), cast("int32", columns[x])
        output[made.index((n, y, x, c))] = source[_index(given, n, row, column, c)]


def resize_bilinear(tile: Tile, source: Array, rows: Array, columns: Array, output: Array) -> None:
    given, made = Strided.of(tile.inputs[0]), Strided.of(tile.output)
    with each_position(made.shape) as (n, y, x, c):
        top, bottom, down = (
            let(name, cast("int32", rows[y * 3 + i])) for i, name in enumerate(("top", "bottom", "down"))
        )
        left, right, across = (
            let(name, cast("int32", columns[x * 3 + i])) for i, name in enumerate(("left", "right", "across"))
        )

        def blended(row: Expr, left: Expr = left, right: Expr = right, across: Expr = across) -> Expr:
            first, second = (cast("int32", source[_index(given, n, row, column, c)]) for column in (left, right))
            return first * (ONE - across) + second * across

        total = let("total", blended(top) * (ONE - down) + blended(bottom) * down)
        half = ONE * ONE // 2
        rounded = select(total > 0, total + half, total - half)
        output[made.index((n, y, x, c))] = cast("int8", quotient(rounded, ONE * ONE))


def _index(layout: Strided, n: Expr, row: Expr, column: Expr, c: Expr) -> Expr:
    image, down, across, one = layout.strides
    return n * image + row * down + column * across + c * one
