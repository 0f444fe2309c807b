"""The partial sums of a layer, added and requantised: some 28 cycles a result."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from npukit.accel.cortex_m.code.assembly import PUSHED_BYTES, Assembly

_WORD = 4
_IN_REGISTERS = 4
"""Number of arguments in registers; further arguments lie on the stack."""
_PARTS = ("r4", "r5", "r6", "r8")
MOST_PARTS = len(_PARTS)


def numbers_of_total(bias: np.ndarray, multipliers: np.ndarray, shifts: np.ndarray, zero: int) -> np.ndarray:
    """The constants of each result: bias; multiplier; zero point plus half a step of the right shift; right shift."""
    right = -shifts.astype(np.int64)
    return np.stack([bias, multipliers, (zero << right) + (1 << (right - 1)), right], axis=-1).astype(np.int32)


@lru_cache(maxsize=1 << 12)
def total(count: int, parts: int) -> Assembly:
    """The code for `count` results. Arguments: the sums of each part, the output, the constants of each result.

    A high product in 64 bits is gemmlowp's. Halves of the shift round away from zero. A sum that saturates is far
    beyond 8 bits.
    """
    assert 2 <= parts <= MOST_PARTS
    asm, pointers = Assembly(), [f"r{number}" for number in range(parts)]
    asm.emit("push {r4-r11, lr}")
    for number, register in enumerate(("lr", "r12"), parts):
        on_stack = PUSHED_BYTES + _WORD * (number - _IN_REGISTERS)
        asm.emit(f"mov {register}, r{number}" if number < _IN_REGISTERS else f"ldr {register}, [sp, #{on_stack}]")
    asm.emit(f"add r7, lr, #{count}")
    with asm.loop(count, closing=("cmp lr, r7",)):
        asm.emit(*(f"ldr {part}, [{pointer}], #{_WORD}" for part, pointer in zip(_PARTS, pointers, strict=False)))
        asm.emit(*(f"add r4, r4, {part}" for part in _PARTS[1:parts]))
        asm.emit("ldmia r12!, {r8, r9, r10, r11}", "add r4, r4, r8", "smull r5, r6, r4, r9")
        asm.emit("adds r5, r5, #0x40000000", "adc r6, r6, #0", "lsl r6, r6, #1", "orr r4, r6, r5, lsr #31")
        asm.emit("add r4, r4, r4, asr #31", "qadd r4, r4, r10", "asr r4, r4, r11", "ssat r4, #8, r4")
        asm.emit("strb r4, [lr], #1")
    asm.emit("pop {r4-r11, pc}")
    return asm
