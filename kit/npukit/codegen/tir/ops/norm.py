"""Layer norm and RMS norm over the last axis, in integers."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, call, cast, let, loop, number, select
from npukit.codegen.tir.ops.fixed_point import clamp, inverse_root
from npukit.codegen.tir.ops.strided import Layout, Strided, each_position
from npukit.net.ops import Norm, NormBySquares, Squares
from npukit.net.ops.norm import FRACTION_BITS, headroom
from npukit.net.requantize import quantization


def norm(tile: Tile, source: Pointed, multipliers: Pointed, offsets: Pointed, *rest: Pointed) -> None:
    """`rest`: for partial rows the place of each row's first computed number, then the output."""
    given, made, attributes = Layout.of(tile.inputs[0]), Layout.of(tile.output), tile.op.attributes
    assert isinstance(attributes, Norm)
    *first, output = rest
    length, zero = given.channels, quantization(tile.net, tile.op.inputs[0]).zero_point
    with loop("n", 0, made.images) as n, loop("y", 0, made.rows) as y, loop("row", 0, made.pixels) as row:
        start, to = let("start", given.index(n, y, row)), made.index(n, y, row)
        total, squares = Local("sum", "int32", 0) if attributes.centred else None, Local("squares", "int32", 0)
        with loop("i", 0, length) as i:
            value = let("value", cast("int32", source[start + i]) - (0 if attributes.centred else zero))
            if total:
                total.set(total.value + value)
            squares.set(squares.value + value * value)
        middle = let("middle", total.value if total else number("int32", 0))
        wide = cast("int64", middle)
        square = cast("int64", squares.value) * length - wide * wide
        begin = let("begin", start + first[0][0]) if first else start
        runs = (row % tile.output.box.shape[-2], attributes.run) if attributes.run else None
        whole = _Row(attributes, length, middle, 0 if attributes.centred else zero, runs)
        whole.make(square, begin, to, made.channels, (source, multipliers, offsets, output))


def squares(tile: Tile, source: Pointed, output: Pointed) -> None:
    given, made, piece = Strided.of(tile.inputs[0]), Strided.of(tile.output), tile.op.of(Squares).piece
    zero = quantization(tile.net, tile.op.inputs[0]).zero_point
    with each_position(made.shape[:-1]) as (*rows, place):
        total = Local("squares", "int32", 0)
        with loop("i", 0, piece) as i:
            value = let("value", cast("int32", source[given.index([*rows, place * piece + i])]) - zero)
            total.set(total.value + value * value)
        output[made.index([*rows, place, 0])] = total.value


def norm_by_squares(
    tile: Tile, source: Pointed, squared: Pointed, multipliers: Pointed, offsets: Pointed, output: Pointed
) -> None:
    """Compute the tile's part of a single row."""
    attributes, given = tile.op.of(NormBySquares), Strided.of(tile.inputs[1])
    total = Local("squares", "int32", 0)
    with loop("p", 0, given.shape[-2]) as place:
        total.set(total.value + squared[place * given.strides[-2]])
    length, zero = tile.net.tensor(tile.op.output).shape[-1], quantization(tile.net, tile.op.inputs[0]).zero_point
    row = _Row(attributes, length, number("int32", 0), zero)
    square = cast("int64", total.value) * length
    row.make(square, 0, 0, tile.output.box.shape[-1], (source, multipliers, offsets, output))


@dataclass(frozen=True)
class _Row:
    """A row of `length` numbers. The distance of a number is (number - `zero`) * `length` - `middle`."""

    attributes: Norm | NormBySquares
    length: int
    middle: Expr
    zero: int
    runs: tuple[Expr, int] | None = None
    """The index of the row, and the neighbours that share constants, of rows with their own."""

    def _constant(self, i: Expr) -> Expr:
        """The place of the constants of a number."""
        if self.runs is None:
            return i
        row, run = self.runs
        return row * (self.length // run) + i // run

    def make(self, square: Expr, begin: Expr, to: Expr, count: int, arrays: tuple[Pointed, ...]) -> None:
        """Compute `count` numbers of a row. `square`: the sum of the squared distances, divided by `length`."""
        attributes, (source, multipliers, offsets, output) = self.attributes, arrays
        spread = let("spread", (square << number("int64", 2 * FRACTION_BITS)) + number("int64", attributes.epsilon))
        low, high = (
            let(name, cast("uint32", spread >> number("int64", bits))) for name, bits in (("low", 0), ("high", 32))
        )
        half = let("half", select(high > 0, call("__builtin_clz", high), call("__builtin_clz", low) + 32) >> 1)
        top = cast("uint64", spread) << cast("uint64", half * 2) >> number("uint64", 32)
        most = let("most", half + FRACTION_BITS - 1 - headroom(self.length))
        left = let("left", select(most > 31, 31, most))
        inverse = let("inverse", inverse_root(cast("int32", top)) >> select(left < 0, 0 - left, 0))
        up = let("up", cast("uint32", select(left < 0, 0, left)))
        with loop("i", 0, count) as i:
            value = cast("int32", source[begin + i]) - self.zero
            distance = let("distance", cast("int32", cast("uint32", value * self.length - self.middle) << up))
            normal = let("normal", _high(distance, inverse, 1 << 31))
            place = self._constant(i)
            result = _high(normal, multipliers[place], 0) + offsets[place]
            output[to + i] = cast("int8", clamp(result >> attributes.shift, *attributes.clamp))


def _high(a: Expr, b: Expr, added: int) -> Expr:
    """The high half of a product plus `added`."""
    return cast("int32", (cast("int64", a) * cast("int64", b) + number("int64", added)) >> number("int64", 32))


KERNELS = {"norm": norm, "norm_by_squares": norm_by_squares, "squares": squares}
