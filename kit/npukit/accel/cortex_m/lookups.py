"""Lookups in a table for each channel on the core: routines for any box of the output, 3.4 cycles a byte.

Channels are the outer loop, pixels the inner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from npukit.accel.cortex_m.code.assembly import REACH, Assembly
from npukit.accel.cortex_m.kernel import BoxRoutine, function
from npukit.accel.cortex_m.kernels.rows import Around, nested
from npukit.accel.cortex_m.kernels.transpose import dense_strides
from npukit.accel.cortex_m.reductions import merged_rows
from npukit.accel.interface import Address, ConstantArray, Lowered, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Lookup

TABLE_BYTES = 256
_POINTERS, _COUNTERS, _END = ("r0", "r1", "r3"), ("r10", "r11", "r12"), "lr"
_DATA = ("r6", "r7", "r8", "r9")
_UNROLLED = 16
"""Bytes per pass of the loop."""
MOST_AXES = len(_COUNTERS) - 1
"""Limit of loops around the loop over channels."""

Strides = tuple[int, int]
"""Bytes from pixel to pixel of the input and of the output."""


def suits(strides: Strides) -> bool:
    """True if four pixels are within reach of a load."""
    return len(_DATA) * max(strides) <= REACH


@dataclass(frozen=True, eq=False)
class LookupByChannel(BoxRoutine):
    """A lookup as a routine. `tables`: of each channel, in the order of the bytes read."""

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
    """The routine for a lookup by channel of pixels; None for other ops."""
    if not isinstance(op.attributes, Lookup):
        return None
    tables, shape = net.constants[op.inputs[1]], net.tensor(op.output).shape
    if tables.ndim != 2 or sum(size > 1 for size in shape[:-1]) > MOST_AXES + 1:
        return None
    first = TABLE_BYTES // 2 if net.tensor(op.inputs[0]).dtype == "int8" else 0
    found = LookupByChannel(np.roll(tables, first, axis=1))
    whole = dense_strides(shape, 1)
    return found if found._body(shape, whole, whole) else None


# ---- code ----


@lru_cache(maxsize=1 << 12)
def looked_up(pixels: int, channels: int, strides: Strides, around: tuple[Around, ...]) -> Assembly:
    """Registers: r0 input, r1 output, r3 the table of the first channel, in the order of the bytes read.
    `around`: further loops, with strides in the input and in the output."""
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    loops = [Around(size, (*steps, 0)) for size, steps in around] + [Around(channels, (1, 1, TABLE_BYTES))]
    moved = (*(pixels * stride for stride in strides), 0)
    nested(asm, loops, _POINTERS, moved, _COUNTERS, lambda _: _emit_pixels(asm, pixels, strides))
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_pixels(asm: Assembly, pixels: int, strides: Strides) -> None:
    """Code for all pixels of a channel. Both addresses end behind the last."""
    most = min(_UNROLLED, REACH // max(strides) // len(_DATA) * len(_DATA))
    rounds, rest = divmod(pixels, most)
    if rounds > 1:
        asm.add(_END, "r0", rounds * most * strides[0], _END)
    if rounds:
        with asm.loop(rounds, closing=(f"cmp r0, {_END}",)):
            _emit_some(asm, most, strides)
    _emit_some(asm, rest, strides)


def _emit_some(asm: Assembly, count: int, strides: Strides) -> None:
    source, target = strides
    for first in range(0, count, len(_DATA)):
        places: Sequence[tuple[str, int]] = list(zip(_DATA, range(first, count), strict=False))
        asm.emit(*(f"ldrb {name}, [r0, #{place * source}]" for name, place in places))
        asm.emit(*(f"ldrb {name}, [r3, {name}]" for name, _ in places))
        asm.emit(*(f"strb {name}, [r1, #{place * target}]" for name, place in places))
    asm.add("r0", "r0", count * source, "r4")
    asm.add("r1", "r1", count * target, "r4")
