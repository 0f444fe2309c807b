"""Layer norm and RMS norm over the last axis, in integers."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, call, cast, let, loop, number, select
from npukit.codegen.tir.ops.fixed_point import clamp, inverse_root
from npukit.codegen.tir.ops.layout import Layout
from npukit.net.norms import FRACTION_BITS, headroom
from npukit.net.ops import Norm
from npukit.net.requantize import quantization


def norm(tile: Tile, source: Pointed, multipliers: Pointed, offsets: Pointed, *rest: Pointed) -> None:
    """`rest`: the place of the first number of each row that is made, unless all are, and the output."""
    given, made, attributes = Layout.of(tile.inputs[0]), Layout.of(tile.output), tile.op.attributes
    assert isinstance(attributes, Norm)
    *first, output = rest
    length, zero = given.channels, quantization(tile.net, tile.op.inputs[0]).zero_point
    with loop("n", 0, made.images) as n, loop("y", 0, made.rows) as y, loop("row", 0, made.pixels) as row:
        start, to = let("start", given.index(n, y, row)), made.index(n, y, row)
        total, squares = Local("sum", "int32", 0), Local("squares", "int32", 0)
        with loop("i", 0, length) as i:
            value = let("value", cast("int32", source[start + i]) - (0 if attributes.centred else zero))
            total.set(total.value + value)
            squares.set(squares.value + value * value)
        middle = let("middle", total.value if attributes.centred else number("int32", 0))
        wide = cast("int64", middle)
        square = cast("int64", squares.value) * length - wide * wide
        spread = let("spread", (square << number("int64", 2 * FRACTION_BITS)) + number("int64", attributes.epsilon))
        half = let("half", _zeros(spread) >> 1)
        top = cast("uint64", spread) << cast("uint64", half * 2) >> number("uint64", 32)
        most = let("most", half + FRACTION_BITS - 1 - headroom(length))
        left = let("left", select(most > 31, 31, most))
        inverse = let("inverse", inverse_root(cast("int32", top)) >> select(left < 0, 0 - left, 0))
        up = let("up", cast("uint32", select(left < 0, 0, left)))
        begin = let("begin", start + first[0][0]) if first else start
        with loop("i", 0, made.channels) as i:
            value = cast("int32", source[begin + i]) - (0 if attributes.centred else zero)
            distance = let("distance", cast("int32", cast("uint32", value * length - middle) << up))
            normal = let("normal", _high(distance, inverse, 1 << 31))
            result = _high(normal, multipliers[i], 0) + offsets[i]
            output[to + i] = cast("int8", clamp(result >> attributes.shift, attributes.clamp))


def _high(a: Expr, b: Expr, added: int) -> Expr:
    """The high half of a product and what is added to it."""
    return cast("int32", (cast("int64", a) * cast("int64", b) + number("int64", added)) >> number("int64", 32))


def _zeros(value: Expr) -> Expr:
    """The zeros that lead 64 bits."""
    low, high = (let(name, cast("uint32", value >> number("int64", bits))) for name, bits in (("low", 0), ("high", 32)))
    return select(high > 0, call("__builtin_clz", high), call("__builtin_clz", low) + 32)
