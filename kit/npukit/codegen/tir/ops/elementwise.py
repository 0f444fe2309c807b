"""Ops that compute each element from the elements at the same position, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Pointed, cast, let, select
from npukit.codegen.tir.ops.finish import finished, rescaled
from npukit.codegen.tir.ops.strided import Strided, each_element, each_position, in_order
from npukit.net.ops import Quantize
from npukit.net.requantize import (
    ADD_LEFT_SHIFT,
    ONE_HALF,
    AddRescaling,
    Multiplier,
    add_rescaling,
    product_rescaling,
    quantization,
    scale_ratio,
    subtract_rescaling,
)


def add(tile: Tile, *arrays: Pointed) -> None:
    _sum(tile, arrays, add_rescaling(tile.net, tile.op), lambda a, b: a + b)


def subtract(tile: Tile, *arrays: Pointed) -> None:
    _sum(tile, arrays, subtract_rescaling(tile.net, tile.op), lambda a, b: a - b)


def _sum(tile: Tile, arrays: tuple[Pointed, ...], factors: AddRescaling, combine: Callable[[Expr, Expr], Expr]) -> None:
    def element(first: Expr, second: Expr) -> Expr:
        a = let("a", _share(_centred(tile, 0, first), factors.first))
        b = let("b", _share(_centred(tile, 1, second), factors.second))
        return finished(tile, rescaled(combine(a, b), factors.output))

    each(tile, arrays, element)


def _share(centred: Expr, factor: Multiplier) -> Expr:
    """An operand's part of a sum. A factor of one half is one bit less of the shift."""
    if factor == ONE_HALF:
        return centred * (1 << (ADD_LEFT_SHIFT - 1))
    return rescaled(centred * (1 << ADD_LEFT_SHIFT), factor)


def multiply(tile: Tile, *arrays: Pointed) -> None:
    factor = product_rescaling(tile.net, tile.op)

    def element(first: Expr, second: Expr) -> Expr:
        return finished(tile, rescaled(_centred(tile, 0, first) * _centred(tile, 1, second), factor))

    each(tile, arrays, element)


def minimum(tile: Tile, *arrays: Pointed) -> None:
    each(tile, arrays, lambda first, second: select(first < second, first, second))


def maximum(tile: Tile, *arrays: Pointed) -> None:
    each(tile, arrays, lambda first, second: select(first > second, first, second))


def select_op(tile: Tile, *arrays: Pointed) -> None:
    """Select elements. In place, the last operand is the output's own memory."""
    *given, output = arrays
    is_bool = tile.inputs[0].tensor.dtype == "bool"

    def element(condition: Expr, yes: Expr, no: Expr) -> Expr:
        return select(condition if is_bool else condition != 0, yes, no)

    each(tile, (*given, *([output] if len(given) < len(tile.op.inputs) else []), output), element)


def prelu(tile: Tile, *arrays: Pointed) -> None:
    same, scaled = scale_ratio(tile.net, tile.op), product_rescaling(tile.net, tile.op)

    def element(value: Expr, slope: Expr) -> Expr:
        data = let("data", _centred(tile, 0, value))
        negative = rescaled(data * _centred(tile, 1, slope), scaled)
        return finished(tile, select(data >= 0, rescaled(data, same), negative))

    each(tile, arrays, element)


def lookup(tile: Tile, source: Pointed, table: Pointed, output: Pointed) -> None:
    layouts, least = [Strided.of(tile.inputs[0]), Strided.of(tile.output)], np.iinfo(tile.inputs[0].tensor.dtype).min
    if len(tile.net.tensor(tile.op.inputs[1]).shape) > 1:
        with each_position(layouts[0].shape) as position:
            i, o = (layout.index(position) for layout in layouts)
            output[o] = table[position[-1] * 256 + (cast("int32", source[i]) - least)]
        return
    with each_element(layouts) as (i, o):
        output[o] = table[cast("int32", source[i]) - least]


def quantize(tile: Tile, *arrays: Pointed) -> None:
    zero_point = quantization(tile.net, tile.op.output).zero_point
    rounded = _halves_away if tile.op.of(Quantize).away else _halves_to_even
    low, high = (cast("float32", limit - zero_point) for limit in (-128, 127))

    def element(value: Expr, offset: Expr, step: Expr) -> Expr:
        steps = let("steps", (cast("float32", value) - offset) / step)
        within = let("within", select(steps > low, select(steps < high, steps, high), low))
        return cast("int8", rounded(within) + zero_point)

    each(tile, arrays, element)


def _halves_to_even(steps: Expr) -> Expr:
    """Round halves to even: after adding 1.5 * 2^23 a float32 has no fraction bits left, so the processor rounds."""
    magic = cast("float32", 3 << 22)
    return cast("int32", (steps + magic) - magic)


def _halves_away(steps: Expr) -> Expr:
    """Round halves away from zero: twice the fraction, which is exact, is below 1 for fractions below a half."""
    whole = let("whole", cast("int32", steps))
    fraction = let("fraction", steps - cast("float32", whole))
    return whole + cast("int32", fraction + fraction)


def dequantize(tile: Tile, source: Pointed, scale: Pointed, output: Pointed) -> None:
    with each_element([Strided.of(tile.inputs[0]), Strided.of(tile.output)]) as (i, o):
        output[o] = cast("float32", _centred(tile, 0, source[i])) * scale[0]


def requantize_op(tile: Tile, *arrays: Pointed) -> None:
    factor = scale_ratio(tile.net, tile.op)
    each(tile, arrays, lambda value: finished(tile, rescaled(_centred(tile, 0, value), factor)))


def each(tile: Tile, arrays: tuple[Pointed, ...], element: Callable[..., Expr]) -> None:
    """Compute the output's elements from the inputs' elements."""
    sources, output = in_order(tile, arrays[:-1]), arrays[-1]
    shape = tile.output.box.shape
    layouts = [*(layout.broadcast(shape) for _, layout in sources), Strided.of(tile.output)]
    with each_element(layouts) as (*places, place):
        values = [array[index] for (array, _), index in zip(sources, places, strict=True)]
        output[place] = element(*values)


def _centred(tile: Tile, index: int, value: Expr) -> Expr:
    """An operand's element minus the zero point."""
    return cast("int32", value) - quantization(tile.net, tile.op.inputs[index]).zero_point


_NAMED = (add, dequantize, lookup, maximum, minimum, multiply, prelu, quantize, subtract)
KERNELS = {body.__name__: body for body in _NAMED} | {"requantize": requantize_op, "select": select_op}
