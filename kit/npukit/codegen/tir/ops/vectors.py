"""Convolution, depthwise convolution and dense layers with RISC-V vectors: many output channels at a time.

The called functions are in `templates/net/vectors.c.j2`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from npukit.accel.core_filters import VECTOR_LANES
from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, call, do, let, loop
from npukit.codegen.tir.ops.filters import zero_of
from npukit.codegen.tir.ops.finish import Finish
from npukit.codegen.tir.ops.strided import Layout, each_pixel
from npukit.codegen.tir.ops.window import inside, sweeps_of
from npukit.net.requantize import quantization


def conv2d(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    finish, sums = Finish(tile, tuple(constants)), _sums()
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    _, height, width, depth = tile.net.tensor(tile.op.inputs[1]).shape
    sweep_y, sweep_x = sweeps_of(tile)
    runs_on = given.pixel_stride == depth and sweep_x.dilation == 1
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        window, count = (rows, columns.whole if runs_on else columns), columns.count * depth if runs_on else depth
        for first, lanes in _blocks(made.channels):
            finish.begin_vector(sums, first, lanes)
            with inside(*window) as (ky, kx, row, column):
                pixel = source.address(given.index(n, row, column))
                tap = weights.address(first * (height * width * depth) + (ky * width + kx) * (depth * lanes))
                do(call("vector_products", sums, pixel, tap, count, zero_of(tile), lanes))
            finish.store_vector(output, made.index(n, y, x, first), sums, first, lanes)


def dense(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    finish, sums = Finish(tile, tuple(constants)), _sums()
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    depth = tile.net.tensor(tile.op.inputs[1]).shape[1]
    with each_pixel(made) as place:
        row = source.address(given.index(*place))
        for first, lanes in _blocks(made.channels):
            finish.begin_vector(sums, first, lanes)
            do(call("vector_products", sums, row, weights.address(first * depth), depth, zero_of(tile), lanes))
            finish.store_vector(output, made.index(*place, first), sums, first, lanes)


def depthwise_conv2d(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    finish, sums = Finish(tile, tuple(constants)), _sums()
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    width, zero = tile.net.tensor(tile.op.inputs[1]).shape[2], quantization(tile.net, tile.op.inputs[0]).zero_point
    sweep_y, sweep_x = sweeps_of(tile)
    step, begins = sweep_x.dilation * given.pixel_stride, tile.output.box.start[3] - tile.inputs[0].box.start[3]
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        for first, lanes in _blocks(made.channels):
            finish.begin_vector(sums, first, lanes)
            with inside(rows, columns.whole) as (ky, kx, row, column):
                pixel = source.address(given.index(n, row, column, first + begins))
                tap = weights.address((ky * width + kx) * made.channels + first)
                do(call("vector_taps", sums, pixel, tap, columns.count, step, made.channels, zero, lanes))
            finish.store_vector(output, made.index(n, y, x, first), sums, first, lanes)


def _sums() -> Expr:
    """The address of the sums of a block of channels."""
    return Local.in_a_row("sums", "int32", [0] * VECTOR_LANES)[0].address


def _blocks(channels: int) -> Iterator[tuple[Expr, int]]:
    """Loops over blocks of channels. Yields the first channel and the size of each block."""
    whole, rest = divmod(channels, VECTOR_LANES)
    if whole:
        with loop("block", 0, whole) as block:
            yield let("first", block * VECTOR_LANES), VECTOR_LANES
    if rest:
        yield whole * VECTOR_LANES, rest


IN_VECTORS: Mapping[str, Callable[..., None]] = {"conv2d": conv2d, "dense": dense, "depthwise_conv2d": depthwise_conv2d}
