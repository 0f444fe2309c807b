"""Elementwise choices of bytes, four at a time: the smaller or the larger of two, or one of two by a condition.

SSUB8 and USUB8 set a flag for each byte, and SEL takes bytes by these flags: 1.5 to 2 cycles an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernels.rows import Around, nested

_UNROLLED = 8
"""Words per pass of the loop."""
_AT_ONCE = 2
"""Words whose loads are consecutive."""
_WORD = 4
_POINTERS = ("r0", "r1", "r2", "r3")
_DATA = (("r5", "r6"), ("r7", "r8"), ("r9", "r10"))
_COUNTERS = ("r11", "lr")
_END, _SPARE, _ONES = "r4", "r12", "r12"
_OF_LINE, _UNUSED = "r5", "r6"
"""The condition of a line, four times, and a register that is then free."""
MOST_AXES = len(_COUNTERS)
"""Limit of loops around the innermost."""


@lru_cache(maxsize=1 << 12)
def choice(length: int, around: tuple[Around, ...], kind: str, *, of_line: bool = False) -> Assembly:
    """Lines of `length` bytes. Registers: r0 and on the operands, then the output. `kind`: of the op. `of_line`: a
    selection with a condition of one byte for a line."""
    assert len(around) <= MOST_AXES
    pointers = _POINTERS if kind == "select" else _POINTERS[:-1]
    moved = [0 if of_line and pointer == "r0" else length for pointer in pointers]
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    if kind == "select":
        asm.constant(_ONES, 0x01010101)
    nested(asm, around, pointers, moved, _COUNTERS, lambda _: _Line(asm, kind, pointers, of_line).emit(length))
    asm.emit("pop {r4-r11, pc}")
    return asm


class _Line:
    """The code for a line. The pointers end behind the line."""

    def __init__(self, asm: Assembly, kind: str, pointers: Sequence[str], of_line: bool) -> None:
        self._asm, self._kind, self._pointers, self._of_line = asm, kind, pointers, of_line

    def emit(self, length: int) -> None:
        rounds, rest = divmod(length, _UNROLLED * _WORD)
        words, single = divmod(rest, _WORD)
        if self._of_line:
            self._asm.emit(f"ldrb {_OF_LINE}, [r0]", f"mul {_OF_LINE}, {_OF_LINE}, {_ONES}")
        if rounds > 1:
            self._asm.add(_END, self._pointers[-1], rounds * _UNROLLED * _WORD, _END)
        if rounds:
            with self._asm.loop(rounds, closing=(f"cmp {self._pointers[-1]}, {_END}",)):
                self._emit_some(_UNROLLED, _WORD)
        self._emit_some(words, _WORD)
        self._emit_some(single, 1)

    def _emit_some(self, count: int, size: int) -> None:
        """Code for words, or for bytes with a size of 1."""
        for first in range(0, count, _AT_ONCE):
            self._emit_few([size * place for place in range(first, min(first + _AT_ONCE, count))], "b" * (size == 1))
        for pointer in self._pointers[self._of_line :] if count else ():
            self._asm.emit(f"add {pointer}, {pointer}, #{count * size}")

    def _emit_few(self, places: Sequence[int], access: str) -> None:
        *sources, target = self._pointers
        for source, registers in [*zip(sources, _DATA, strict=False)][self._of_line :]:
            pairs = zip(registers, places, strict=False)
            self._asm.emit(*(f"ldr{access} {register}, [{source}, #{place}]" for register, place in pairs))
        for *registers, place in zip(*_DATA, places, strict=False):
            made = self._emit_choice(*registers)
            self._asm.emit(f"str{access} {made}, [{target}, #{place}]")

    def _emit_choice(self, first: str, second: str, third: str) -> str:
        """Code for a choice. Returns the register of the result."""
        if self._kind == "select":
            condition, flags = (_OF_LINE, _UNUSED) if self._of_line else (first, first)
            self._asm.emit(f"usub8 {flags}, {condition}, {_ONES}", f"sel {second}, {second}, {third}")
            return second
        larger, smaller = (first, second) if self._kind == "maximum" else (second, first)
        self._asm.emit(f"ssub8 {_SPARE}, {first}, {second}", f"sel {first}, {larger}, {smaller}")
        return first
