"""Functions of two numbers, by a table of integers for each."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Pointed, cast, let
from npukit.codegen.tir.ops.elementwise import each
from npukit.codegen.tir.ops.finish import finished, rescaled
from npukit.codegen.tir.ops.fixed_point import high_product
from npukit.net.ops.pairs import square_rescaling


def divide(tile: Tile, *arrays: Pointed) -> None:
    *given, first_table, second_table, output = arrays

    def element(first: Expr, second: Expr) -> Expr:
        dividend, reciprocal = _of(first_table, first), _of(second_table, second)
        return finished(tile, high_product(dividend >> 1, reciprocal))

    each(tile, (*given, output), element)


def squared_difference(tile: Tile, *arrays: Pointed) -> None:
    *given, first_table, second_table, output = arrays
    factor = square_rescaling(tile.net, tile.op)

    def element(first: Expr, second: Expr) -> Expr:
        distance = let("distance", _of(first_table, first) - _of(second_table, second))
        return finished(tile, rescaled(distance * distance, factor))

    each(tile, (*given, output), element)


def _of(table: Pointed, value: Expr) -> Expr:
    """The integer of a byte."""
    return table[cast("int32", cast("uint8", value))]


KERNELS = {"divide": divide, "squared_difference": squared_difference}
