"""Means, and places of the largest along the last axis, on the core: routines for any box of the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT
from npukit.accel.cortex_m.kernel import BoxRoutine, entry_cycles, function
from npukit.accel.cortex_m.kernels import columns
from npukit.accel.cortex_m.kernels.reduced import MOST_AXES, largest_of_rows, mean_of_rows
from npukit.accel.cortex_m.kernels.rows import Around
from npukit.accel.cortex_m.kernels.transpose import dense_strides
from npukit.accel.interface import Address, ConstantArray, Cost, Lowered, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import ArgMax, Mean
from npukit.net.ops.search import LARGEST_SEARCH
from npukit.net.ops.shapes import Shape
from npukit.net.receptive import needs
from npukit.net.requantize import mean_rescaling, quantization

_WORD = 4


@dataclass(frozen=True, eq=False)
class ReducedRows(BoxRoutine):
    """A reduction of rows as a routine. `exponent`: right shift of a mean. `item`: bytes of a result."""

    note: str
    length: int
    numbers: np.ndarray
    exponent: int
    item: int

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        (source,) = needs(net, op, output)
        body = self._body(output, dense_strides(source.shape, 1), dense_strides(output.shape, self.item))
        assert body is not None, "a dense box takes one loop"
        return [body]

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        cycles = self.bodies(net, op, output)[0].cycles + entry_cycles(constants=bool(self.numbers.size))
        return Cost(cycles, self.numbers.nbytes, constants_key=self.note)

    def lowered(self, tile: Tile) -> Lowered | None:
        (source,), symbol = tile.inputs, f"{tile.name}_constants"
        body = self._body(tile.output.box, source.strides, tile.output.strides)
        if body is None:
            return None
        constants = [ConstantArray(symbol, self.numbers, _WORD, "scales of the mean")] if self.numbers.size else []
        code = function(self.note, body, constants=bool(constants))
        last = Address(symbol) if constants else 0
        call = RoutineCall(code, (source.address, tile.output.address, 0, last))
        return Lowered(tuple(constants), Routines((call,)))

    def _body(self, output: Box, given: Sequence[int], made: Sequence[int]) -> Assembly | None:
        """The routine for rows with these strides; None if it needs too many loops."""
        rows = output.shape[: len(given) - 1]
        around = merged_rows(rows, given[:-1], made[: len(rows)])
        if len(around) > MOST_AXES:
            return None
        if self.numbers.size:
            return mean_of_rows(self.length, around, self.exponent)
        return largest_of_rows(self.length, around, self.item)


@dataclass(frozen=True, eq=False)
class MeanOfPixels(BoxRoutine):
    """The mean of each channel as routines: for four channels at a time, and for the channels behind. `axes`: the axes
    of the pixels."""

    axes: tuple[int, ...]
    numbers: np.ndarray
    exponent: int
    note: str = "mean of pixels"

    def suits(self, shape: Shape, made: Shape) -> bool:
        """True if dense tensors of these shapes have few loops."""
        dense = (dense_strides(each, 1) for each in (shape, made))
        return len(shape) - 1 not in self.axes and self._bodies(shape, *dense) is not None

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        (source,) = needs(net, op, output)
        found = self._bodies(source.shape, dense_strides(source.shape, 1), dense_strides(output.shape, 1))
        assert found is not None, "a box of it takes no more loops than the whole"
        return [body for _, body in found]

    def constants_of(self, output: Box) -> np.ndarray:
        return self.numbers

    def lowered(self, tile: Tile) -> Lowered | None:
        (source,), target = tile.inputs, tile.output
        bodies = self._bodies(source.box.shape, source.strides, target.strides)
        if bodies is None:
            return None
        held = ConstantArray(f"{tile.name}_constants", self.numbers, _WORD, "scales of the mean")
        calls = (
            RoutineCall(function(self.note, body, constants=True), (*places, 0, Address(held.symbol)))
            for first, body in bodies
            if (places := [replace(each.address, offset=each.address.offset + first) for each in (source, target)])
        )
        return Lowered((held,), Routines(tuple(calls)))

    def _bodies(
        self, shape: Sequence[int], given: Sequence[int], made: Sequence[int]
    ) -> Sequence[tuple[int, Assembly]] | None:
        """The first channel and the routine of each part; None for too many loops."""
        leading = [axis for axis in range(len(shape) - 1) if axis not in self.axes]
        kept = merged_rows(*([each[axis] for axis in leading] for each in (shape, given, made)))
        pixels = merged_rows(*([each[axis] for axis in self.axes] for each in (shape, given, given)))
        too_long = len(pixels) > 1 and pixels[-1].size > columns.LONGEST_LINE
        if too_long or max(len(kept), len(pixels)) > columns.MOST_AXES:
            return None
        words, rest = divmod(shape[-1], columns.WORD)
        parts = ((0, words, columns.WORD), (shape[-1] - rest, rest, 1))
        return [
            (first, columns.mean_of_pixels(groups, together, kept, pixels, self.exponent))
            for first, groups, together in parts
            if groups
        ]


def merged_rows(shape: Sequence[int], given: Sequence[int], made: Sequence[int]) -> tuple[Around, ...]:
    """The loops around rows: axes that are contiguous in both tensors are merged."""
    found: list[Around] = []
    for size, *steps in zip(shape, given, made, strict=True):
        if found and found[-1].strides == tuple(size * step for step in steps):
            found[-1] = Around(size * found[-1].size, tuple(steps))
        elif size > 1:
            found.append(Around(size, tuple(steps)))
    return tuple(found)


def reductions_of(net: Net, op: Op) -> ReducedRows | MeanOfPixels | None:
    """The routine for a reduction of bytes: along the last axis, or the mean over other axes; None for other ops."""
    shape = net.tensor(op.inputs[0]).shape
    if net.tensor(op.inputs[0]).dtype != "int8" or not shape:
        return None
    if isinstance(op.attributes, Mean) and len(shape) - 1 not in op.attributes.axes:
        return _mean_of_pixels(net, op, shape)
    if sum(size > 1 for size in shape[:-1]) > MOST_AXES:
        return None
    if isinstance(op.attributes, ArgMax) and op.attributes.axis == len(shape) - 1 and shape[-1] <= LARGEST_SEARCH:
        item = np.dtype(net.tensor(op.output).dtype).itemsize
        return ReducedRows("largest of rows", shape[-1], np.zeros(0, np.int32), 0, item)
    if isinstance(op.attributes, Mean) and op.attributes.axes == (len(shape) - 1,):
        found = _numbers(net, op, shape, shape[-1] // _WORD * _WORD * 128)
        return ReducedRows("mean of rows", shape[-1], *found, 1) if found else None
    return None


def _mean_of_pixels(net: Net, op: Op, shape: Shape) -> MeanOfPixels | None:
    found = _numbers(net, op, shape)
    made = MeanOfPixels(tuple(sorted(op.of(Mean).axes)), *found) if found else None
    return made if made and made.suits(shape, net.tensor(op.output).shape) else None


def _numbers(net: Net, op: Op, shape: Shape, more: int = 0) -> tuple[np.ndarray, int] | None:
    """Constants and right shift of a mean; None for shifts and counts out of range. `more`: excess of a sum of
    zeros."""
    count = prod(shape[axis] for axis in op.of(Mean).axes)
    factor, given, made = mean_rescaling(net, op, count), *(quantization(net, n) for n in (op.inputs[0], op.output))
    exponent = -factor.shift
    if not 0 <= exponent <= LARGEST_EXPONENT or count > LARGEST_SEARCH:
        return None
    addend = (made.zero_point << exponent) + (1 << exponent >> 1)
    return np.array([2 * (more + count * given.zero_point), factor.multiplier, addend], np.int32), exponent
