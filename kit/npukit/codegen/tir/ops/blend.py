"""Ops that mix whole axes or neighbours: mean, resizing."""

from __future__ import annotations

from math import prod

import numpy as np

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, cast, let, loop
from npukit.codegen.tir.ops.finish import finished, rescaled
from npukit.codegen.tir.ops.strided import Strided, each_position
from npukit.net.ops import Mean, ResizeBilinear
from npukit.net.places import PLACE_UNIT
from npukit.net.requantize import mean_rescaling, quantization

SHIFT = 2 * (PLACE_UNIT.bit_length() - 1)
"""Fraction bits of a sum of products with two shares."""
WORD_BITS = 32


def mean(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(Mean), Strided.of(tile.inputs[0]), Strided.of(tile.output)
    reduced = tuple(size if axis in attributes.axes else 1 for axis, size in enumerate(given.shape))
    count = prod(reduced)
    factor = mean_rescaling(tile.net, tile.op, count)
    zero = quantization(tile.net, tile.op.inputs[0]).zero_point
    with each_position(made.shape) as position:
        total = Local("sum", "int32", -zero * count)
        with each_position(reduced, "k") as inner:
            taken = [
                b if axis in attributes.axes else a for axis, (a, b) in enumerate(zip(position, inner, strict=True))
            ]
            total.set(total.value + cast("int32", source[given.index(taken)]))
        output[made.index(position)] = finished(tile, rescaled(total.value, factor))


def resize_nearest(tile: Tile, source: Pointed, rows: Pointed, columns: Pointed, output: Pointed) -> None:
    given, made = Strided.of(tile.inputs[0]), Strided.of(tile.output)
    with each_position(made.shape) as (n, y, x, c):
        row, column = cast("int32", rows[y]), cast("int32", columns[x])
        output[made.index((n, y, x, c))] = source[_index(given, n, row, column, c)]


def resize_bilinear(tile: Tile, source: Pointed, rows: Pointed, columns: Pointed, output: Pointed) -> None:
    """The four pixels and their shares are common to all channels. Halves are rounded away from zero."""
    given, made = Strided.of(tile.inputs[0]), Strided.of(tile.output)
    dtype, dropped = tile.net.tensor(tile.op.output).dtype, _dropped_bits(tile)
    shift = SHIFT - dropped
    wide = "int32" if np.iinfo(dtype).bits + shift < WORD_BITS else "int64"
    with each_position(made.shape[:3]) as (n, y, x):
        top, bottom, down = _entries(rows, y, "top", "bottom", "down")
        left, right, across = _entries(columns, x, "left", "right", "across")
        near = [(row, column) for row in (top, bottom) for column in (left, right)]
        shares = [
            (PLACE_UNIT - down) * (PLACE_UNIT - across),
            (PLACE_UNIT - down) * across,
            down * (PLACE_UNIT - across),
            down * across,
        ]
        shares = [let(f"share_{place}", share >> dropped if dropped else share) for place, share in enumerate(shares)]
        begins = [let(f"from_{place}", _index(given, n, row, column, 0)) for place, (row, column) in enumerate(near)]
        to = let("to", made.index((n, y, x, 0)))
        with loop("c", 0, made.shape[3]) as c:
            values = (cast(wide, source[begin + c * given.strides[3]]) for begin in begins)
            total = let("total", sum(v * cast(wide, share) for v, share in zip(values, shares, strict=True)))
            rounded = (total + (1 << (shift - 1)) + (total >> (31 if wide == "int32" else 63))) >> shift
            output[to + c * made.strides[3]] = cast(dtype, rounded)


def _entries(table: Pointed, place: Expr, *names: str) -> list[Expr]:
    """A row of a table, each number under a name."""
    return [let(name, cast("int32", table[place * len(names) + i])) for i, name in enumerate(names)]


def _dropped_bits(tile: Tile) -> int:
    """The number of low bits equal to zero in every product of two shares."""
    attributes = tile.op.of(ResizeBilinear)
    down, across = (
        int(np.gcd.reduce([PLACE_UNIT, *(step for *_, step in places)]))
        for places in (attributes.rows, attributes.columns)
    )
    return (down * across).bit_length() - 1


def _index(layout: Strided, n: Expr, row: Expr, column: Expr, c: Expr) -> Expr:
    image, down, across, one = layout.strides
    return n * image + row * down + column * across + c * one


KERNELS = {"mean": mean, "resize_bilinear": resize_bilinear, "resize_nearest": resize_nearest}
