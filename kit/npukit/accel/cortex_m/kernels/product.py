"""Elementwise functions of two tensors: products of 8 or 9 cycles an element, quotients of 8, squared differences of
10.

Quotients and squared differences have a table for each operand. SMMLAR multiplies a dividend and a reciprocal, or twice
a square and its factor. A difference lies in both halves of a register: SMUAD then makes twice its square.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT, saturated, scaled_byte
from npukit.accel.cortex_m.kernels.rows import Around, nested

_UNROLLED = 16
"""Elements per pass of the loop: with 4 a block of a language model takes 0.5 % longer, with 64 0.1 % less, for 8 KB
more (`benchmarks/core/kernel_constants.md`)."""
_AT_ONCE = 2
"""Elements whose loads are consecutive and share a cycle: with 1 a block takes 0.2 % longer."""
_POINTERS = ("r0", "r1", "r2")
_COUNTERS = ("r3", "r8", "r9")
_WITH_TABLES = ("r3", "r8", "[sp]")
MOST_AXES = len(_COUNTERS)
"""Limit of loops around the innermost."""
_TABLE_BYTES = 1024


@lru_cache(maxsize=1 << 12)
def product(length: int, around: tuple[Around, ...], second_zero: int, shift: int) -> Assembly:
    """Registers: r0 and r1 operands, r2 output, r12 twice the first operand's zero point, multiplier, addend."""
    assert len(around) <= MOST_AXES
    assert 0 <= shift <= LARGEST_EXPONENT
    asm = Assembly()
    asm.emit("push {r4-r11, lr}", "ldmia r12, {r10, r11, r12}")

    def emit(first: int, count: int) -> None:
        pairs = _loaded(asm, "ldrsb", first, count)
        for a, b, place in pairs:
            asm.emit(f"rsb {a}, r10, {a}, lsl #1")
            if second_zero:
                asm.emit(f"{'sub' if second_zero > 0 else 'add'} {b}, {b}, #{abs(second_zero)}")
            asm.emit(f"mul {a}, {a}, {b}", *scaled_byte(a, "r11", "r12", b, shift), f"strb {a}, [r2, #{place}]")

    nested(asm, around, _POINTERS, (length,) * 3, _COUNTERS, lambda _: _emit_line(asm, length, emit))
    asm.emit("pop {r4-r11, pc}")
    return asm


@lru_cache(maxsize=1 << 12)
def of_tables(length: int, around: tuple[Around, ...], shift: int, *, squared: bool) -> Assembly:
    """Registers: r0 and r1 operands, r2 output, r12 both tables, factor, addend. `squared`: the square of a difference
    instead of a product."""
    assert len(around) <= MOST_AXES
    asm = Assembly()
    asm.emit("push {r3-r11, lr}", f"add r9, r12, #{_TABLE_BYTES}")
    asm.emit(f"ldr r10, [r12, #{2 * _TABLE_BYTES}]", f"ldr r11, [r12, #{2 * _TABLE_BYTES + 4}]")

    def emit(first: int, count: int) -> None:
        pairs = _loaded(asm, "ldrb", first, count)
        asm.emit(*(f"ldr {a}, [r12, {a}, lsl #2]" for a, _, _ in pairs))
        asm.emit(*(f"ldr {b}, [r9, {b}, lsl #2]" for _, b, _ in pairs))
        for a, b, place in pairs:
            if squared:
                asm.emit(f"ssub16 {a}, {a}, {b}", f"smuad {a}, {a}, {a}")
            asm.emit(f"smmlar {a}, {a}, {'r10' if squared else b}, r11")
            asm.emit(saturated(a, shift), f"strb {a}, [r2, #{place}]")

    nested(asm, around, _POINTERS, (length,) * 3, _WITH_TABLES, lambda _: _emit_line(asm, length, emit))
    asm.emit("pop {r3-r11, pc}")
    return asm


def _loaded(asm: Assembly, load: str, first: int, count: int) -> list[tuple[str, str, int]]:
    """Loads of elements of both operands. Returns their registers and places."""
    places = range(first, first + count)
    pairs: list[tuple[str, str, int]] = list(zip(("r4", "r5"), ("r6", "r7"), places, strict=False))
    asm.emit(*(f"{load} {a}, [r0, #{place}]" for a, _, place in pairs))
    asm.emit(*(f"{load} {b}, [r1, #{place}]" for _, b, place in pairs))
    return pairs


def _emit_line(asm: Assembly, length: int, emit_few: Callable[[int, int], None]) -> None:
    """Code for a line. The pointers end behind the line."""

    def emit(count: int) -> None:
        for first in range(0, count, _AT_ONCE):
            emit_few(first, min(_AT_ONCE, count - first))
        asm.emit(*(f"add {register}, {register}, #{count}" for register in _POINTERS if count))

    rounds, rest = divmod(length, _UNROLLED)
    if rounds > 1:
        asm.add("lr", "r2", rounds * _UNROLLED, "r4")
    if rounds:
        with asm.loop(rounds, closing=("cmp r2, lr",)):
            emit(_UNROLLED)
    emit(rest)
