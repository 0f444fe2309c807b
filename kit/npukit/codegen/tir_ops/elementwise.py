"""Ops that treat every element alike."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir_ops.fixed_point import clamp, requantize
from npukit.codegen.tir_ops.layout import Layout
from npukit.codegen.tir_ops.pixels import each_element
from npukit.codegen.tvm_door import Array, Expr, cast, let
from npukit.net.ops import Add
from npukit.net.requantize import ADD_LEFT_SHIFT, Multiplier, add_rescaling, quantization


def add(tile: Tile, first: Array, second: Array, output: Array) -> None:
    attributes, factors = tile.op.attributes, add_rescaling(tile.net, tile.op)
    assert isinstance(attributes, Add)
    zeros = [quantization(tile.net, name).zero_point for name in (*tile.op.inputs, tile.op.output)]
    with each_element([Layout.of(operand) for operand in (*tile.inputs, tile.output)]) as (a, b, o):
        one = let("a", _rescaled(first[a], zeros[0], factors.first))
        two = let("b", _rescaled(second[b], zeros[1], factors.second))
        total = requantize(one + two, factors.output.multiplier, factors.output.shift)
        output[o] = cast("int8", clamp(total + zeros[2], attributes.clamp))


def _rescaled(value: Expr, zero: int, factor: Multiplier) -> Expr:
    return requantize((cast("int32", value) - zero) * (1 << ADD_LEFT_SHIFT), factor.multiplier, factor.shift)
