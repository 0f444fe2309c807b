"""Convolution, depthwise convolution and dense layers."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir_ops.fixed_point import clamp, requantize
from npukit.codegen.tir_ops.layout import Layout
from npukit.codegen.tir_ops.pixels import each_pixel
from npukit.codegen.tir_ops.window import inside, sweeps_of
from npukit.codegen.tvm_door import Array, Expr, Local, cast, let, loop, quotient
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d, TransposeConv2d
from npukit.net.requantize import quantization


class Finish:
    """The last two or three constants of a filter kernel, and what it does with a sum."""

    def __init__(self, tile: Tile, constants: tuple[Array, ...]) -> None:
        attributes = tile.op.attributes
        assert isinstance(attributes, Conv2d | DepthwiseConv2d | Dense | TransposeConv2d)
        self._bias = constants[0] if len(constants) == 3 else None
        self._multipliers, self._shifts = constants[-2:]
        self._zero = quantization(tile.net, tile.op.output).zero_point
        self._clamp = attributes.clamp

    def start(self, channel: Expr) -> Local:
        return Local("sum", "int32", 0 if self._bias is None else self._bias[channel])

    def result(self, total: Local, channel: Expr) -> Expr:
        shift = cast("int32", self._shifts[channel])
        scaled = requantize(total.value, self._multipliers[channel], shift)
        return cast("int8", clamp(scaled + self._zero, self._clamp))


def conv2d(tile: Tile, source: Array, weights: Array, *rest: Array) -> None:
    *constants, output = rest
    finish, zero = Finish(tile, tuple(constants)), quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    _, height, width, depth = tile.net.tensor(tile.op.inputs[1]).shape
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        with loop("c", 0, made.channels) as c:
            total, first = finish.start(c), _first_channel(tile, c)
            with inside(rows, columns) as (ky, kx, row, column):
                pixel = let("pixel", given.index(n, row, column, first))
                tap = let("tap", ((c * height + ky) * width + kx) * depth)
                with loop("i", 0, depth) as i:
                    total.set(total.value + wide(source[pixel + i], zero) * wide(weights[tap + i]))
            output[made.index(n, y, x, c)] = finish.result(total, c)


def _first_channel(tile: Tile, channel: Expr) -> Expr:
    """Where the input channels of an output channel's group begin."""
    weights = tile.net.tensor(tile.op.inputs[1]).shape
    channels = tile.net.tensor(tile.op.inputs[0]).shape[3]
    groups = channels // weights[3]
    if groups == 1:
        return 0
    group = quotient(channel + tile.output.box.start[3], weights[0] // groups)
    return group * weights[3] - tile.inputs[0].box.start[3]


def depthwise_conv2d(tile: Tile, source: Array, weights: Array, *rest: Array) -> None:
    *constants, output = rest
    finish, zero = Finish(tile, tuple(constants)), quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    width = tile.net.tensor(tile.op.inputs[1]).shape[2]
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        with loop("c", 0, made.channels) as c:
            total, channel = finish.start(c), _source_channel(tile, c)
            with inside(rows, columns) as (ky, kx, row, column):
                value = source[given.index(n, row, column, channel)]
                weight = weights[(ky * width + kx) * made.channels + c]
                total.set(total.value + wide(value, zero) * wide(weight))
            output[made.index(n, y, x, c)] = finish.result(total, c)


def _source_channel(tile: Tile, channel: Expr) -> Expr:
    multiplier = tile.net.tensor(tile.op.output).shape[3] // tile.net.tensor(tile.op.inputs[0]).shape[3]
    absolute = channel + tile.output.box.start[3]
    return (absolute if multiplier == 1 else quotient(absolute, multiplier)) - tile.inputs[0].box.start[3]


def dense(tile: Tile, source: Array, weights: Array, *rest: Array) -> None:
    *constants, output = rest
    finish, zero = Finish(tile, tuple(constants)), quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    depth = tile.net.tensor(tile.op.inputs[1]).shape[1]
    with loop("row", 0, made.pixels) as row, loop("c", 0, made.channels) as c:
        total = finish.start(c)
        with loop("i", 0, depth) as i:
            value, weight = source[row * given.pixel_stride + i], weights[c * depth + i]
            total.set(total.value + wide(value, zero) * wide(weight))
        output[row * made.pixel_stride + c] = finish.result(total, c)


def wide(value: Expr, zero: int = 0) -> Expr:
    """An int8 as an int32 without its zero point."""
    return cast("int32", value) - zero
