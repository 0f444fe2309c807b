"""Quotients and squared differences by a table for each operand: 7.9 and 9.9 cycles an element.

SMMLAR multiplies a dividend and a reciprocal, or twice a square and its factor, and rounds. The addend includes the
zero point, and half a step of the right shift. No square is negative. A difference lies in both halves of a register:
SMUAD then makes twice its square.
"""

from __future__ import annotations

from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernels.rows import Around, nested

TABLE_BYTES = 1024
_UNROLLED = 16
"""Elements per pass of the loop."""
_POINTERS = ("r0", "r1", "r2")
_COUNTERS = ("r3", "r8", "[sp]")
_FIRST, _SECOND = (("r4", "r12"), ("r5", "r12")), (("r6", "r9"), ("r7", "r9"))
"""The registers of two consecutive elements, each with its table."""
MOST_AXES = len(_COUNTERS)
"""Limit of loops around the innermost."""


@lru_cache(maxsize=1 << 12)
def of_pairs(length: int, around: tuple[Around, ...], shift: int, *, squared: bool) -> Assembly:
    """Registers: r0 and r1 operands, r2 output, r12 both tables, factor, addend. `squared`: the square of a difference
    instead of a product."""
    assert len(around) <= MOST_AXES
    asm = Assembly()
    asm.emit("push {r3-r11, lr}", f"add r9, r12, #{TABLE_BYTES}")
    asm.emit(f"ldr r10, [r12, #{2 * TABLE_BYTES}]", f"ldr r11, [r12, #{2 * TABLE_BYTES + 4}]")

    def emit(count: int) -> None:
        for first in range(0, count, len(_FIRST)):
            _emit_few(asm, range(first, min(first + len(_FIRST), count)), shift, squared)
        asm.emit(*(f"add {register}, {register}, #{count}" for register in _POINTERS if count))

    def line(_: str) -> None:
        rounds, rest = divmod(length, _UNROLLED)
        if rounds > 1:
            asm.add("lr", "r2", rounds * _UNROLLED, "r4")
        if rounds:
            with asm.loop(rounds, closing=("cmp r2, lr",)):
                emit(_UNROLLED)
        emit(rest)

    nested(asm, around, _POINTERS, (length,) * 3, _COUNTERS, line)
    asm.emit("pop {r3-r11, pc}")
    return asm


def _emit_few(asm: Assembly, places: range, shift: int, squared: bool) -> None:
    both = [
        (held, pointer) for operand, pointer in ((_FIRST, "r0"), (_SECOND, "r1")) for held in operand[: len(places)]
    ]
    asm.emit(*(f"ldrb {name}, [{pointer}, #{places[n % len(places)]}]" for n, ((name, _), pointer) in enumerate(both)))
    asm.emit(*(f"ldr {name}, [{table}, {name}, lsl #2]" for (name, table), _ in both))
    for (a, _), (b, _), place in zip(_FIRST, _SECOND, places, strict=False):
        if squared:
            asm.emit(f"ssub16 {a}, {a}, {b}", f"smuad {a}, {a}, {a}")
        asm.emit(f"smmlar {a}, {a}, {'r10' if squared else b}, r11")
        asm.emit(f"ssat {a}, #8, {a}{f', asr #{shift}' * bool(shift)}", f"strb {a}, [r2, #{place}]")
