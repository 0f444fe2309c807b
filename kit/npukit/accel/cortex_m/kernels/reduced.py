"""Rows reduced to a number, four bytes at a time: the mean of each row, and the place of its first largest number.

USADA8 adds four bytes at once. SSUB8 sets a flag for each byte, and SEL takes maxima and their places by these flags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT, scaled_byte
from npukit.accel.cortex_m.kernels.rows import Around, nested

_WORD = 4
_UNROLLED = 8
"""Words per pass of the loop."""
_POINTERS, _COUNTERS, _END = ("r0", "r1"), ("r2", "r3"), "r4"
MOST_AXES = len(_COUNTERS)
"""Limit of loops around a row."""
_NUMBERED = 1 << 8
"""Words of a piece of a row: the number of a word fits a byte."""

Axes = tuple[Around, ...]


@lru_cache(maxsize=1 << 12)
def mean_of_rows(length: int, around: Axes, exponent: int) -> Assembly:
    """Registers: r0 rows, r1 output, r12 twice what the sum of a row of zeros has too much, multiplier, addend. Bytes
    of words are added without sign, 128 more each."""
    assert 0 <= exponent <= LARGEST_EXPONENT
    asm = Assembly()
    asm.emit("push {r4-r11, lr}", "ldmia r12, {r9, r10, r11}", "mov lr, #0")

    def row(_: str) -> None:
        asm.emit("mov r12, #0")
        _each_word(asm, length // _WORD, ("r5", "r6", "r7", "r8"), add)
        for place in range(length % _WORD):
            asm.emit(f"ldrsb r5, [r0, #{place}]", "add r12, r12, r5")
        asm.add("r0", "r0", length % _WORD, "r5")
        asm.emit("rsb r12, r9, r12, lsl #1", *scaled_byte("r12", "r10", "r11", "r5", exponent), "strb r12, [r1], #1")

    def add(registers: Sequence[str]) -> None:
        asm.emit(*(f"eor {register}, {register}, #0x80808080" for register in registers))
        asm.emit(*(f"usada8 r12, {register}, lr, r12" for register in registers))

    nested(asm, around, _POINTERS, (length, 1), _COUNTERS, row)
    asm.emit("pop {r4-r11, pc}")
    return asm


@lru_cache(maxsize=1 << 12)
def largest_of_rows(length: int, around: Axes, item: int) -> Assembly:
    """Registers: r0 rows, r1 output of `item` bytes a row. The best number so far is r12: 65536 times the number, less
    its place."""
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")

    def row(_: str) -> None:
        _emit_search(asm, length)
        asm.emit("rsb r12, r12, #0", "uxth r12, r12", "str r12, [r1], #4")
        if item > _WORD:
            asm.emit("mov r12, #0", "str r12, [r1], #4")

    nested(asm, around, _POINTERS, (length, item), _COUNTERS, row)
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_search(asm: Assembly, length: int) -> None:
    """Code for the best number of a row: piece by piece, then the bytes behind the last word."""
    pieces, rest = divmod(length, _WORD * _NUMBERED)
    asm.emit("mov r12, #0x80000000", "mov r8, #0")
    if pieces:
        asm.constant("lr", pieces)
        with asm.loop(pieces, closing=("subs lr, #1",)):
            _emit_piece(asm, _NUMBERED)
            asm.add("r8", "r8", _WORD * _NUMBERED, "r5")
    if rest >= _WORD:
        _emit_piece(asm, rest // _WORD)
    for place in range(rest % _WORD):
        asm.emit(f"ldrsb r5, [r0, #{place}]")
        asm.add("r6", "r8", rest // _WORD * _WORD + place, "r7")
        _emit_best(asm)
    asm.add("r0", "r0", rest % _WORD, "r5")


def _emit_piece(asm: Assembly, words: int) -> None:
    """Code for a piece of a row from place r8 on: for each byte of a word the largest in r9, the number of its word in
    r10."""

    def compare(registers: Sequence[str]) -> None:
        for register in registers:
            asm.emit(f"ssub8 r7, r9, {register}", f"sel r9, r9, {register}", "sel r10, r10, r11")
            asm.emit("add r11, r11, #0x01010101")

    asm.emit("mov r9, #0x80808080", "mov r10, #0", "mov r11, #0")
    _each_word(asm, words, ("r5", "r6"), compare)
    for place in range(_WORD):
        turned = f", ror #{8 * place}" if place else ""
        asm.emit(f"sxtb r5, r9{turned}", f"uxtb r6, r10{turned}", "add r6, r8, r6, lsl #2")
        asm.add("r6", "r6", place, "r7")
        _emit_best(asm)


def _emit_best(asm: Assembly) -> None:
    """Code that compares the number in r5 at place r6 with the best."""
    asm.emit("rsb r5, r6, r5, lsl #16", "cmp r5, r12", "it gt", "movgt r12, r5")


def _each_word(asm: Assembly, words: int, data: Sequence[str], use: Callable[[Sequence[str]], None]) -> None:
    """Code that loads each word of a row. r0 ends behind the last."""

    def emit(count: int) -> None:
        for first in range(0, count, len(data)):
            chosen = data[: count - first]
            asm.emit(*(f"ldr {name}, [r0, #{_WORD * (first + place)}]" for place, name in enumerate(chosen)))
            use(chosen)
        asm.add("r0", "r0", _WORD * count, "r5")

    rounds, rest = divmod(words, _UNROLLED)
    if rounds > 1:
        asm.add(_END, "r0", rounds * _UNROLLED * _WORD, _END)
    if rounds:
        with asm.loop(rounds, closing=(f"cmp r0, {_END}",)):
            emit(_UNROLLED)
    emit(rest)
