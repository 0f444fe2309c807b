"""Convolution, depthwise convolution and dense layers: a few output channels at a time share each input they load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Array, Expr, Local, cast, let, loop, quotient
from npukit.codegen.tir.ops.finish import Finish, Kept, Sink, wide
from npukit.codegen.tir.ops.fixed_point import clamp, requantize, scale_down
from npukit.codegen.tir.ops.layout import Layout
from npukit.codegen.tir.ops.pixels import each_pixel
from npukit.codegen.tir.ops.window import inside, sweeps_of
from npukit.net.ops import Sums, Total
from npukit.net.requantize import quantization

LANES = 4
"""Output channels at a time: as many sums, pointers and loaded values as the core's registers hold."""

Block = Callable[[list[Expr]], None]


def conv2d(tile: Tile, source: Array, weights: Array, *rest: Array) -> None:
    *constants, output = rest
    _convolution(tile, source, weights, output, Finish(tile, tuple(constants)))


def dense(tile: Tile, source: Array, weights: Array, *rest: Array) -> None:
    *constants, output = rest
    _products(tile, source, weights, output, Finish(tile, tuple(constants)))


def sums(tile: Tile, source: Array, weights: Array, output: Array) -> None:
    """Sums of the channels that the tile's input has."""
    windows = len(tile.net.tensor(tile.op.inputs[1]).shape) == 4
    (_convolution if windows else _products)(tile, source, weights, output, Kept())


def total(tile: Tile, *arrays: Array) -> None:
    *parts, bias, multipliers, shifts, output = arrays
    attributes, zero = tile.op.attributes, quantization(tile.net, tile.op.output).zero_point
    assert isinstance(attributes, Total)
    given, made = [Layout.of(operand) for operand in tile.inputs], Layout.of(tile.output)
    only_right = bool((tile.net.constants[tile.op.inputs[-1]] <= 0).all())
    scale = (lambda value, factor, shift: scale_down(value, factor, 0 - shift)) if only_right else requantize
    with each_pixel(made) as place, loop("c", 0, made.channels) as c:
        whole = let("whole", bias[c])
        for part, layout in zip(parts, given, strict=True):
            whole = let("whole", whole + part[layout.index(*place, c)])
        scaled = scale(whole, multipliers[c], shifts[c]) + zero
        output[made.index(*place, c)] = cast("int8", clamp(scaled, attributes.clamp))


def _convolution(tile: Tile, source: Array, weights: Array, output: Array, finish: Sink) -> None:
    zero = quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    _, height, width, depth = tile.net.tensor(tile.op.inputs[1]).shape
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        for channels in _blocks(made.channels, _lanes(tile)):
            sums = finish.start(channels)
            with inside(rows, columns) as (ky, kx, row, column):
                pixel = let("pixel", given.index(n, row, column, _first_channel(tile, channels[0])))
                taps = [let("tap", ((c * height + ky) * width + kx) * depth) for c in channels]
                with loop("i", 0, depth) as i:
                    value = let("value", wide(source[pixel + i], zero))
                    _accumulate(sums, [value * wide(weights[tap + i]) for tap in taps])
            finish.store(output, made.index(n, y, x), channels, sums)


def depthwise_conv2d(tile: Tile, source: Array, weights: Array, *rest: Array) -> None:
    *constants, output = rest
    finish, zero = Finish(tile, tuple(constants)), quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    width = tile.net.tensor(tile.op.inputs[1]).shape[2]
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        for channels in _blocks(made.channels, LANES):
            sums = finish.start(channels)
            with inside(rows, columns) as (ky, kx, row, column):
                pixel = let("pixel", given.index(n, row, column))
                tap = let("tap", (ky * width + kx) * made.channels)
                values = [wide(source[pixel + _source_channel(tile, c)], zero) for c in channels]
                _accumulate(sums, [v * wide(weights[tap + c]) for v, c in zip(values, channels, strict=True)])
            finish.store(output, made.index(n, y, x), channels, sums)


def _products(tile: Tile, source: Array, weights: Array, output: Array, finish: Sink) -> None:
    zero = quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    depth = tile.net.tensor(tile.op.inputs[1]).shape[1]
    with each_pixel(made) as place:
        for channels in _blocks(made.channels, LANES):
            sums = finish.start(channels)
            with loop("i", 0, depth) as i:
                value = let("value", wide(source[given.index(*place, i)], zero))
                _accumulate(sums, [value * wide(weights[c * depth + i]) for c in channels])
            finish.store(output, made.index(*place), channels, sums)


def _blocks(channels: int, lanes: int) -> Iterator[list[Expr]]:
    """Loops over blocks of channels, then over those that are left: the channels of each turn."""
    for start, stop, size in ((0, channels - channels % lanes, lanes), (channels - channels % lanes, channels, 1)):
        if stop > start:
            with loop("block", 0, (stop - start) // size) as block:
                yield [start + block * size + lane for lane in range(size)]


def _lanes(tile: Tile) -> int:
    """Channels of one block share their inputs, so that with groups each is alone."""
    return LANES if _groups(tile) == 1 else 1


def _groups(tile: Tile) -> int:
    if isinstance(tile.op.attributes, Sums):
        return 1
    return tile.net.tensor(tile.op.inputs[0]).shape[3] // tile.net.tensor(tile.op.inputs[1]).shape[3]


def _first_channel(tile: Tile, channel: Expr) -> Expr:
    """The first input channel of an output channel's group."""
    outputs, *_, depth = tile.net.tensor(tile.op.inputs[1]).shape
    groups = _groups(tile)
    if groups == 1:
        return 0
    group = quotient(channel + tile.output.box.start[3], outputs // groups)
    return group * depth - tile.inputs[0].box.start[3]


def _source_channel(tile: Tile, channel: Expr) -> Expr:
    multiplier = tile.net.tensor(tile.op.output).shape[3] // tile.net.tensor(tile.op.inputs[0]).shape[3]
    absolute = channel + tile.output.box.start[3]
    return (absolute if multiplier == 1 else quotient(absolute, multiplier)) - tile.inputs[0].box.start[3]


def _accumulate(sums: Sequence[Local], products: Sequence[Expr]) -> None:
    for total, product in zip(sums, products, strict=True):
        total.set(total.value + product)
