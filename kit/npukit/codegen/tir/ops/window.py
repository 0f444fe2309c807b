"""Windows that slide over the rows and pixels of an image, cut off at its edges, and pools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, cast, let, loop, quotient, select
from npukit.codegen.tir.ops.fixed_point import clamp
from npukit.codegen.tir.ops.strided import Layout, each_pixel
from npukit.net.ops import AveragePool, MaxPool
from npukit.net.ops.table import SPECS


@dataclass(frozen=True)
class Taps:
    """The taps of a window inside the image: `first` <= tap < `end`. Tap t reads position `origin + t * dilation`."""

    first: Expr
    end: Expr
    origin: Expr
    dilation: int

    @property
    def count(self) -> Expr:
        return self.end - self.first

    @property
    def whole(self) -> Taps:
        """The first tap alone, for a loop body that reads all taps together."""
        return Taps(self.first, self.first + 1, self.origin, self.dilation)


@dataclass(frozen=True)
class Sweep:
    """A window along one axis. `padding`: counted from the operand's first element."""

    name: str
    inputs: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    padding: int

    def range_at(self, position: Expr) -> Taps:
        """The taps inside the image for an output position."""
        if self.inside == (0, self.outputs):
            return self.whole_range_at(position)
        origin = let(f"{self.name}_origin", position * self.stride - self.padding)
        reach = (self.taps - 1) * self.dilation
        first = select(origin < 0, self._up(0 - origin), 0)
        end = select(origin + reach >= self.inputs, self._up(self.inputs - origin), self.taps)
        return Taps(let(f"{self.name}_first", first), let(f"{self.name}_end", end), origin, self.dilation)

    def whole_range_at(self, position: Expr) -> Taps:
        """All taps, for a position whose window lies inside."""
        return Taps(0, self.taps, position * self.stride - self.padding, self.dilation)

    @property
    def inside(self) -> tuple[int, int]:
        """The first output position whose window lies inside, and the position after the last."""
        first = min(max(-(-self.padding // self.stride), 0), self.outputs)
        end = (self.inputs - 1 - (self.taps - 1) * self.dilation + self.padding) // self.stride + 1
        return first, min(max(end, first), self.outputs)

    def _up(self, distance: Expr) -> Expr:
        """Steps of `dilation` that cover a distance."""
        return distance if self.dilation == 1 else quotient(distance + (self.dilation - 1), self.dilation)


def sweeps_of(tile: Tile) -> tuple[Sweep, Sweep]:
    """The windows along rows and along pixels."""
    attributes: Any = tile.op.attributes
    source, result = tile.inputs[0].box, tile.output.box
    taps, dilation = SPECS[tile.op.kind].window(tile.net, tile.op), getattr(attributes, "dilation", (1, 1))

    def sweep(name: str, axis: int) -> Sweep:
        stride, inputs, outputs = attributes.strides[axis], source.shape[axis + 1], result.shape[axis + 1]
        padding = source.start[axis + 1] - (result.start[axis + 1] * stride - attributes.padding[axis])
        return Sweep(name, inputs, outputs, taps[axis], stride, dilation[axis], padding)

    return sweep("y", 0), sweep("x", 1)


@contextmanager
def inside(rows: Taps, columns: Taps) -> Iterator[tuple[Expr, Expr, Expr, Expr]]:
    """Loops over the taps inside. Yields tap y, tap x, and the row and pixel read."""
    with loop("ky", rows.first, rows.end) as ky, loop("kx", columns.first, columns.end) as kx:
        yield ky, kx, rows.origin + ky * rows.dilation, columns.origin + kx * columns.dilation


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
