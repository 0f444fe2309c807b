"""Average and maximum pools: padding never counts."""

from __future__ import annotations

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Local, Pointed, cast, let, loop, quotient, select
from npukit.codegen.tir.ops.fixed_point import clamp
from npukit.codegen.tir.ops.strided import Layout, each_pixel
from npukit.codegen.tir.ops.window import inside, sweeps_of
from npukit.net.ops import AveragePool, MaxPool


def average_pool(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(AveragePool), Layout.of(tile.inputs[0]), Layout.of(tile.output)
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        count = let("count", rows.count * columns.count)
        half = let("half", quotient(count, 2))
        with loop("c", 0, made.channels) as c:
            total = Local("sum", "int32", 0)
            with inside(rows, columns) as (_, _, row, column):
                total.set(total.value + cast("int32", source[given.index(n, row, column, c)]))
            rounded = let("rounded", select(total.value > 0, total.value + half, total.value - half))
            output[made.index(n, y, x, c)] = cast("int8", clamp(quotient(rounded, count), *attributes.clamp))


def max_pool(tile: Tile, source: Pointed, output: Pointed) -> None:
    attributes, given, made = tile.op.of(MaxPool), Layout.of(tile.inputs[0]), Layout.of(tile.output)
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        with loop("c", 0, made.channels) as c:
            largest = Local("largest", "int32", -128)
            with inside(rows, columns) as (_, _, row, column):
                value = let("value", cast("int32", source[given.index(n, row, column, c)]))
                largest.set(select(value > largest.value, value, largest.value))
            output[made.index(n, y, x, c)] = cast("int8", clamp(largest.value, *attributes.clamp))


KERNELS = {"average_pool": average_pool, "max_pool": max_pool}
