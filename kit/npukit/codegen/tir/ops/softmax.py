"""Softmax over the last axis, in integers: the reciprocal of a sum of table entries."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, call, cast, let, loop, number, select
from npukit.codegen.tir.ops.fixed_point import clamp, high_product, reciprocal_of_one_plus, rounded_shift
from npukit.codegen.tir.ops.strided import Layout
from npukit.net.ops.softmax import ACCUMULATOR_INTEGER_BITS

OUTPUT_BITS = 8
WIDEST_SHIFT = 31


def softmax(tile: Tile, source: Pointed, exp: Pointed, *rest: Pointed) -> None:
    """`rest`: for partial rows the place of each row's first computed number, then the output."""
    *first, output = rest
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    with loop("n", 0, made.images) as n, loop("y", 0, made.rows) as y, loop("row", 0, made.pixels) as row:
        start, to = let("start", given.index(n, y, row)), made.index(n, y, row)
        largest = Local("largest", "int32", cast("int32", source[start]))
        with loop("i", 1, given.channels) as i:
            value = let("value", cast("int32", source[start + i]))
            largest.set(select(value > largest.value, value, largest.value))
        total = Local("sum", "int32", 0)
        with loop("i", 0, given.channels) as i:
            entry = exp[largest.value - cast("int32", source[start + i])]
            total.set(total.value + rounded_shift(entry, ACCUMULATOR_INTEGER_BITS))
        zeros = let("zeros", call("__builtin_clz", cast("uint32", total.value)))
        # The sum is (1 + fraction) times a power of two, the fraction in Q0.31.
        fraction = (cast("uint32", total.value) << cast("uint32", zeros)) - number("uint32", 1 << 31)
        scale = let("scale", reciprocal_of_one_plus(cast("int32", fraction)))
        shift = let("shift", ACCUMULATOR_INTEGER_BITS + 31 - OUTPUT_BITS - zeros)
        begin = let("begin", start + first[0][0]) if first else start
        with loop("i", 0, made.channels) as i:
            entry = exp[largest.value - cast("int32", source[begin + i])]
            share = _shifted(high_product(entry, scale), shift)
            output[to + i] = cast("int8", clamp(share - 128, -128, 127))


def _shifted(value: Expr, shift: Expr) -> Expr:
    """A rounded right shift. Rows of more than 512 can need a shift by 32 or more, which leaves 0."""
    return select(shift > WIDEST_SHIFT, 0, rounded_shift(value, select(shift > WIDEST_SHIFT, WIDEST_SHIFT, shift)))


KERNELS = {"softmax": softmax}
