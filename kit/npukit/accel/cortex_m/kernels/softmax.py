"""Softmax with a table of exponentials: a layer needs 256 values, in the order of the inputs. Long rows have a second
table with each exponential's term of the sum.

The reciprocal's Newton steps are gemmlowp's, in 64-bit products. SMMLAR is gemmlowp's doubling high multiply of an
exponential: the table has twice the exponentials less 2^31, so that they are signed, and the addend half the reciprocal
that this takes off. Four results are saturated in pairs, and stored as a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernels.rows import UNROLLED, RowPart, Strides, each_row, from_first, unrolled
from npukit.net.ops.softmax import ACCUMULATOR_INTEGER_BITS
from npukit.net.requantize import doubling_high_multiply, rounding_shift_right

LONGEST_SOFTMAX = 4095
"""Longest row in elements: the sum of its exponentials, each at most 2^19, fits 31 bits."""
ENTRIES = 256
_LONG = 64
"""Shortest row in elements that is worth a second table of 1 KB: each element saves a cycle."""
_LEAST_SHIFT = 23
"""The results' shift to the right in a row with a single term."""
_48_OVER_17 = 1515870810
_NEG_32_OVER_17 = -1010580540


def softmax_tables(exponentials: np.ndarray, length: int) -> np.ndarray:
    """Twice the exponentials less 2^31, given from difference 0 downwards, in the routine's order; for a long row also
    their terms."""
    rising = exponentials[::-1]
    terms = rounding_shift_right(rising, ACCUMULATOR_INTEGER_BITS)
    return np.concatenate([2 * rising - (1 << 31), *([terms] if length >= _LONG else [])]).astype(np.int32)


def takes_even_reciprocals(exponentials: np.ndarray) -> bool:
    """True if a reciprocal of 1 may be 2^31 - 2 instead of 2^31 - 1, the only odd one: no result changes."""
    shifts = np.arange(_LEAST_SHIFT, _LEAST_SHIFT + ACCUMULATOR_INTEGER_BITS)[:, None]
    usual, even = (
        rounding_shift_right(doubling_high_multiply(exponentials, (1 << 31) - less), shifts) for less in (1, 2)
    )
    return np.array_equal(usual, even)


@lru_cache(maxsize=1 << 12)
def softmax(rows: int, part: RowPart, strides: Strides) -> Assembly:
    """Registers: r0 input, r1 output, r12 the tables, from the least difference on; r3 the entry for the value 0."""
    asm, length = Assembly(), part.length
    asm.emit("push {r4-r11, lr}")
    with each_row(asm, rows, part, strides):
        asm.comment("r5 the row's largest value")
        _emit_largest(asm, length)
        asm.comment("r3 the table's entry for a value of 0, r6 the sum of the exponentials")
        asm.add("r3", "r12", 4 * (ENTRIES - 1), "r4")
        asm.emit("sub r3, r3, r5, lsl #2", "mov r6, #0", *([f"add r9, r3, #{4 * ENTRIES}"] if length >= _LONG else []))
        if length < _LONG:
            asm.constant("r9", (1 << 30) + (1 << (ACCUMULATOR_INTEGER_BITS - 1)))
        unrolled(asm, length, _LANES, partial(_emit_sum, asm, length), end="r10", back=True)
        _emit_reciprocal(asm)
        asm.comment("each exponential times that, to 8 bits")
        with from_first(asm, part):
            unrolled(asm, part.count, _LANES, partial(_emit_results, asm), end="r10")
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_largest(asm: Assembly, length: int) -> None:
    if length < UNROLLED:
        asm.emit("mvn r5, #127")
        for place in range(length):
            asm.emit(f"ldrsb r4, [r0, #{place}]", "cmp r4, r5", "it gt", "movgt r5, r4")
        return
    asm.emit("mov r5, #0x80808080")

    def emit(first: int, count: int) -> None:
        """Maxima of the bytes in r5 and of four numbers. The last four of a row may overlap the four before."""
        asm.emit(f"ldr r4, [r0, #{first + count - _LANES}]", *_LARGER)

    unrolled(asm, length, _LANES, emit, end="r10", back=True)
    for bits in (16, 8):
        asm.emit(f"ror r4, r5, #{bits}", *_LARGER)
    asm.emit("sxtb r5, r5")


_LANES = 4
_LARGER = ("ssub8 r8, r4, r5", "sel r5, r4, r5")


def _emit_sum(asm: Assembly, length: int, first: int, count: int) -> None:
    """Add the exponentials of up to four numbers to r6. Consecutive loads take less time."""
    values = ("r4", "r5", "r7", "r8")[:count]
    _emit_exponentials(asm, first, values, "r9" if length >= _LONG else "r3")
    for value in values:
        rounded = [f"add {value}, r9, {value}, asr #1", f"add r6, r6, {value}, lsr #{ACCUMULATOR_INTEGER_BITS}"]
        asm.emit(*(rounded if length < _LONG else [f"add r6, r6, {value}"]))


def _emit_results(asm: Assembly, first: int, count: int) -> None:
    """Code for up to four results."""
    values = ("r4", "r5", "r6", "r11")[:count]
    _emit_exponentials(asm, first, values, "r3")
    asm.emit(*(f"smmlar {value}, {value}, r7, r9" for value in values))
    asm.emit(*(f"lsr {value}, {value}, r8" for value in values))
    if count < _LANES:
        for place, value in enumerate(values, first):
            asm.emit(f"usat {value}, #8, {value}", f"eor {value}, {value}, #0x80", f"strb {value}, [r1, #{place}]")
        return
    asm.emit("pkhbt r4, r4, r6, lsl #16", "pkhbt r5, r5, r11, lsl #16", "usat16 r4, #8, r4", "usat16 r5, #8, r5")
    asm.emit("orr r4, r4, r5, lsl #8", "eor r4, r4, #0x80808080", f"str r4, [r1, #{first}]")


def _emit_exponentials(asm: Assembly, first: int, values: Sequence[str], table: str) -> None:
    """Load a table's entries for consecutive numbers of the row."""
    asm.emit(*(f"ldrsb {value}, [r0, #{place}]" for place, value in enumerate(values, first)))
    asm.emit(*(f"ldr {value}, [{table}, {value}, lsl #2]" for value in values))


def _emit_reciprocal(asm: Assembly) -> None:
    """r7 = 1 / sum in Q0.31, with the sum scaled to [1, 2); r8 = the shift of the results; r9 = the addend."""
    asm.comment("r7 one over the sum, by Newton's method; r8 the results' shift, r9 half of it and half of r7")
    asm.emit("clz r8, r6", "lsl r6, r6, r8", "rsb r8, r8, #35", "mov r9, #1", "sub r10, r8, #1", "lsl r9, r9, r10")
    asm.emit("lsr r6, r6, #1")
    asm.constant("r10", _NEG_32_OVER_17)
    _emit_multiply(asm, "r11", "r6", "r10")
    asm.constant("r7", _48_OVER_17)
    asm.emit("add r7, r7, r11")
    for _ in range(3):
        _emit_multiply(asm, "r11", "r6", "r7")
        asm.emit("rsb r11, r11, #0x20000000")
        _emit_multiply(asm, "r11", "r7", "r11")
        asm.emit("add r7, r7, r11, lsl #2")
    asm.emit("qadd r7, r7, r7", "bic r7, r7, #1", "add r9, r9, r7, lsr #1")


def _emit_multiply(asm: Assembly, target: str, a: str, b: str) -> None:
    """gemmlowp's SaturatingRoundingDoublingHighMul, through r4 and r5."""
    asm.emit(f"smull r4, r5, {a}, {b}", "adds r4, r4, #0x40000000", "adc r5, r5, #0", "lsl r5, r5, #1")
    asm.emit(f"orr {target}, r5, r4, lsr #31")
