"""Bytes looked up in the table of their channel: 3.4 cycles a byte. Channels are the outer loop, pixels the inner."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import REACH, Assembly
from npukit.accel.cortex_m.kernels.rows import Around, nested

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


@lru_cache(maxsize=1 << 12)
def looked_up(pixels: int, channels: int, strides: Strides, around: tuple[Around, ...]) -> Assembly:
    """Registers: r0 input, r1 output, r3 the table of the first channel, at which non-negative bytes come first.
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
