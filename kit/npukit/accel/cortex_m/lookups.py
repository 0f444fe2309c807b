"""Lookups in a table for each channel on the core: routines for any box of the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import BoxRoutine, function
from npukit.accel.cortex_m.kernels.rows import Around
from npukit.accel.cortex_m.kernels.tabled import MOST_AXES, TABLE_BYTES, looked_up, suits
from npukit.accel.cortex_m.kernels.transpose import dense_strides
from npukit.accel.cortex_m.reductions import merged_rows
from npukit.accel.interface import Address, ConstantArray, Lowered, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Lookup


@dataclass(frozen=True, eq=False)
class LookupByChannel(BoxRoutine):
    """A lookup as a routine. `tables`: of each channel, non-negative bytes first."""

    tables: np.ndarray
    note: str = "lookup by channel"

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        dense = dense_strides(output.shape, 1)
        body = self._body(output.shape, dense, dense)
        assert body is not None, "a dense box takes one loop"
        return [body]

    def constants_of(self, output: Box) -> np.ndarray:
        return self.tables[output.start[-1] : output.stop[-1]]

    def lowered(self, tile: Tile) -> Lowered | None:
        body = self._body(tile.output.box.shape, tile.inputs[0].strides, tile.output.strides)
        if body is None:
            return None
        values = self.constants_of(tile.output.box).ravel()
        held = ConstantArray(f"{tile.name}_tables", values, 4, "of each channel, by the byte read")
        code = function(self.note, body, constants=False)
        places = tile.inputs[0].address, tile.output.address, 0, Address(held.symbol)
        return Lowered((held,), Routines((RoutineCall(code, places),)))

    @staticmethod
    def _body(shape: Sequence[int], given: Sequence[int], made: Sequence[int]) -> Assembly | None:
        *around, pixels = merged_rows(shape[:-1], given[:-1], made[:-1]) or (Around(1, (1, 1)),)
        source, target = pixels.strides
        if len(around) > MOST_AXES or not suits((source, target)):
            return None
        return looked_up(pixels.size, shape[-1], (source, target), tuple(around))


def lookups_of(net: Net, op: Op) -> LookupByChannel | None:
    """The routine for a lookup by channel of int8 pixels; None for other ops."""
    if not isinstance(op.attributes, Lookup) or net.tensor(op.inputs[0]).dtype != "int8":
        return None
    tables, shape = net.constants[op.inputs[1]], net.tensor(op.output).shape
    if tables.ndim != 2 or sum(size > 1 for size in shape[:-1]) not in range(1, MOST_AXES + 2):
        return None
    found = LookupByChannel(np.roll(tables, TABLE_BYTES // 2, axis=1))
    whole = dense_strides(shape, 1)
    return found if found._body(shape, whole, whole) else None
