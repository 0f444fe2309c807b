"""Lines written over the lines of a tensor where a condition is true. All other lines are unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import Assembly

_DATA = ("r4", "r5", "r6", "r7")
_COUNTERS = ("r8", "r9", "r10")
_UNROLLED = 64
"""Bytes per pass of the loop: fewer or more change no time of the tried networks
(`benchmarks/core/kernel_constants.md`)."""
_WORD = 4
MOST_AXES = 2
"""Limit of loops around the loop over lines."""


@dataclass(frozen=True)
class WrittenLines:
    """Lines of `length` bytes, each with a condition of one byte. `around`: outer loops, each with rounds and with
    strides in bytes in the new lines and in the overwritten tensor."""

    length: int
    count: int
    conditions: int
    """Bytes from one condition to the next."""
    stride: int
    """Bytes from one overwritten line to the next."""
    around: tuple[tuple[int, int, int], ...] = ()


@lru_cache(maxsize=1 << 12)
def written(lines: WrittenLines) -> Assembly:
    """Registers: r0 the conditions, r1 the new lines, r2 the lines to overwrite."""
    assert len(lines.around) <= MOST_AXES
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    _emit_loops(asm, lines, lines.around, _COUNTERS)
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_loops(
    asm: Assembly, lines: WrittenLines, around: tuple[tuple[int, int, int], ...], counters: tuple[str, ...]
) -> None:
    """Code for the loops. r2 ends behind the last round of the outermost loop; r0 and r1 are unchanged."""
    if not around:
        _emit_lines(asm, lines, counters[0])
        return
    (size, source, target), *inner = around
    moved = inner[0][0] * inner[0][2] if inner else lines.count * lines.stride
    back = inner[0][0] * inner[0][1] if inner else 0
    asm.constant(counters[0], size)
    with asm.loop(size, closing=(f"subs {counters[0]}, #1",)):
        _emit_loops(asm, lines, tuple(inner), counters[1:])
        asm.add("r1", "r1", source - back, "r4")
        asm.add("r2", "r2", target - moved, "r4")


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
            _emit_copy(asm, lines.length)
        asm.add("r0", "r0", lines.conditions, "r4")
        asm.add("r2", "r2", lines.stride, "r4")


def _emit_copy(asm: Assembly, length: int) -> None:
    """Copy a line from r1 to r2; both registers are unchanged."""
    rounds, rest = divmod(length, _UNROLLED)
    asm.emit("mov r3, r1", "mov r11, r2")
    if rounds > 1:
        asm.add("lr", "r1", rounds * _UNROLLED, "r4")
    if rounds:
        with asm.loop(rounds, closing=("cmp r3, lr",)):
            _emit_some(asm, _UNROLLED)
            asm.emit(f"add r3, r3, #{_UNROLLED}", f"add r11, r11, #{_UNROLLED}")
    _emit_some(asm, rest)


def _emit_some(asm: Assembly, count: int) -> None:
    words, rest = divmod(count, _WORD)
    places = [("", _WORD * word) for word in range(words)] + [("b", _WORD * words + byte) for byte in range(rest)]
    for first in range(0, len(places), len(_DATA)):
        moved = list(zip(_DATA, places[first : first + len(_DATA)], strict=False))
        asm.emit(*(f"ldr{kind} {register}, [r3, #{place}]" for register, (kind, place) in moved))
        asm.emit(*(f"str{kind} {register}, [r11, #{place}]" for register, (kind, place) in moved))
