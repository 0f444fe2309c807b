"""Lines written over the lines of a tensor where a condition is true. All other lines are unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernels.rows import Around, nested

_DATA = ("r4", "r5", "r6", "r7")
_COUNTERS = ("r8", "r9", "r10")
_UNROLLED = 64
"""Bytes per pass of the loop: other numbers change no time (`benchmarks/core/kernel_constants.md`)."""
_WORD = 4
MOST_AXES = 2
"""Limit of loops around the loop over lines."""


@dataclass(frozen=True)
class WrittenLines:
    """Lines of `length` bytes, each with a condition of one byte. `around`: outer loops, with strides in the new lines
    and in the overwritten tensor."""

    length: int
    count: int
    conditions: int
    """Bytes from one condition to the next."""
    stride: int
    """Bytes from one overwritten line to the next."""
    around: tuple[Around, ...] = ()


@lru_cache(maxsize=1 << 12)
def written(lines: WrittenLines) -> Assembly:
    """Registers: r0 the conditions, r1 the new lines, r2 the lines to overwrite."""
    assert len(lines.around) <= MOST_AXES
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    moved = (0, lines.count * lines.stride)
    nested(asm, lines.around, ("r1", "r2"), moved, _COUNTERS, lambda counter: _emit_lines(asm, lines, counter))
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_lines(asm: Assembly, lines: WrittenLines, counter: str) -> None:
    """Code for the lines. Contiguous conditions are tested one word at a time, because most lines are unchanged."""
    words, rest = divmod(lines.count, _WORD)
    if lines.conditions > 1 or rest:
        _emit_each(asm, lines, lines.count, counter)
        asm.add("r0", "r0", -lines.count * lines.conditions, "r4")
        return
    asm.constant(counter, words)
    with asm.loop(words, closing=(f"subs {counter}, #1",)):
        asm.emit("ldr r4, [r0]", "cmp r4, #0")
        with asm.unless("eq", words):
            _emit_each(asm, lines, _WORD, "r12")
            asm.emit(f"sub r0, r0, #{_WORD}")
            asm.add("r2", "r2", -_WORD * lines.stride, "r4")
        asm.emit(f"add r0, r0, #{_WORD}")
        asm.add("r2", "r2", _WORD * lines.stride, "r4")
    asm.add("r0", "r0", -lines.count, "r4")


def _emit_each(asm: Assembly, lines: WrittenLines, count: int, counter: str) -> None:
    """Code for `count` lines, each written if its condition is true. r0 and r2 end behind the last line."""
    asm.constant(counter, count)
    with asm.loop(count, closing=(f"subs {counter}, #1",)):
        asm.emit("ldrb r4, [r0]", "cmp r4, #0")
        with asm.unless("eq", count):
            rounds, rest = divmod(lines.length, _UNROLLED)
            asm.emit("mov r3, r1", "mov r11, r2")
            if rounds > 1:
                asm.add("lr", "r1", rounds * _UNROLLED, "r4")
            if rounds:
                with asm.loop(rounds, closing=("cmp r3, lr",)):
                    _emit_some(asm, _UNROLLED)
                    asm.emit(f"add r3, r3, #{_UNROLLED}", f"add r11, r11, #{_UNROLLED}")
            _emit_some(asm, rest)
        asm.add("r0", "r0", lines.conditions, "r4")
        asm.add("r2", "r2", lines.stride, "r4")


def _emit_some(asm: Assembly, count: int) -> None:
    words, rest = divmod(count, _WORD)
    places = [("", _WORD * word) for word in range(words)] + [("b", _WORD * words + byte) for byte in range(rest)]
    for first in range(0, len(places), len(_DATA)):
        moved = list(zip(_DATA, places[first : first + len(_DATA)], strict=False))
        asm.emit(*(f"ldr{kind} {register}, [r3, #{place}]" for register, (kind, place) in moved))
        asm.emit(*(f"str{kind} {register}, [r11, #{place}]" for register, (kind, place) in moved))
