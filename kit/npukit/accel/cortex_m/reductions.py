"""Means and places of the largest along the last axis on the core: routines for any box of the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT
from npukit.accel.cortex_m.kernel import BoxRoutine, entry_cycles, function
from npukit.accel.cortex_m.kernels.reduced import MOST_AXES, largest_of_rows, mean_of_rows
from npukit.accel.cortex_m.kernels.rows import Around
from npukit.accel.cortex_m.kernels.transpose import dense_strides
from npukit.accel.interface import Address, ConstantArray, Cost, Lowered, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import ArgMax, Mean
from npukit.net.ops.search import LARGEST_SEARCH
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
        if self.exponent:
            return mean_of_rows(self.length, around, self.exponent)
        return largest_of_rows(self.length, around, self.item)


def merged_rows(shape: Sequence[int], given: Sequence[int], made: Sequence[int]) -> tuple[Around, ...]:
    """The loops around rows: axes that are contiguous in both tensors are merged."""
    found: list[Around] = []
    for size, *steps in zip(shape, given, made, strict=True):
        if found and found[-1].strides == tuple(size * step for step in steps):
            found[-1] = Around(size * found[-1].size, tuple(steps))
        elif size > 1:
            found.append(Around(size, tuple(steps)))
    return tuple(found)


def reductions_of(net: Net, op: Op) -> ReducedRows | None:
    """The routine for a reduction of the last axis of bytes; None for other ops."""
    shape = net.tensor(op.inputs[0]).shape
    leading = sum(size > 1 for size in shape[:-1])
    if net.tensor(op.inputs[0]).dtype != "int8" or leading > MOST_AXES or not shape:
        return None
    if isinstance(op.attributes, ArgMax) and op.attributes.axis == len(shape) - 1 and shape[-1] <= LARGEST_SEARCH:
        item = np.dtype(net.tensor(op.output).dtype).itemsize
        return ReducedRows("largest of rows", shape[-1], np.zeros(0, np.int32), 0, item)
    if isinstance(op.attributes, Mean) and op.attributes.axes == (len(shape) - 1,):
        return _mean(net, op, shape[-1])
    return None


def _mean(net: Net, op: Op, length: int) -> ReducedRows | None:
    factor, given = mean_rescaling(net, op, length), quantization(net, op.inputs[0])
    exponent, made = -factor.shift, quantization(net, op.output)
    if not 1 <= exponent <= LARGEST_EXPONENT or length > LARGEST_SEARCH:
        return None
    more = length // _WORD * _WORD * 128 + length * given.zero_point
    numbers = [2 * more, factor.multiplier, (made.zero_point << exponent) + (1 << (exponent - 1))]
    return ReducedRows("mean of rows", length, np.array(numbers, np.int32), exponent, 1)
