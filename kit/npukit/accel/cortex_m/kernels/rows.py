"""Loops over the rows of a tensor, and over the numbers of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from npukit.accel.cortex_m.code.assembly import Assembly

Strides = tuple[int, int]
"""Bytes from row to row of what is read, and of what is written."""
_FIRST = 4
"""Bytes of the number of a part's first one."""
UNROLLED = 16
"""Numbers of a pass through the loop: with 4 a vision transformer takes 0.7 % longer, with 64, whose rests are longer,
0.3 % (`benchmarks/core/kernel_constants.md`)."""


@dataclass(frozen=True)
class RowPart:
    """The numbers of a row that are made: `count` of `length`, all of which are read. Which is the first is data."""

    length: int
    count: int

    @property
    def is_whole(self) -> bool:
        return self.count == self.length

    @property
    def bytes_before(self) -> int:
        """Bytes of constants between those of the op and those of its numbers."""
        return 0 if self.is_whole else _FIRST


@contextmanager
def each_row(asm: Assembly, rows: int, part: RowPart, strides: Strides, held: int = 0) -> Iterator[None]:
    """The code for a row, behind which r0 and r1 stand as many numbers on as are made; r2 is the end of the input, r4
    is spare. r12 begins at the constants: so many bytes `held` for the op, and the number of a part's first one, lie
    before those of its numbers."""
    asm.add("r12", "r12", held + part.bytes_before, "r4")
    if rows > 1:
        asm.add("r2", "r0", rows * strides[0], "r4")
    with asm.loop(rows, closing=("cmp r0, r2",)):
        yield
        for register, stride in zip(("r0", "r1"), strides, strict=True):
            asm.add(register, register, stride - part.count if rows > 1 else 0, "r4")


@contextmanager
def from_first(asm: Assembly, part: RowPart) -> Iterator[None]:
    """The code for the numbers that are made, with r0 at the first one, whose number lies before r12; r4 is spare."""
    if not part.is_whole:
        asm.emit("ldr r4, [r12, #-4]", "add r0, r0, r4")
    yield
    if not part.is_whole:
        asm.emit("ldr r4, [r12, #-4]", "sub r0, r0, r4")


def unrolled(
    asm: Assembly, length: int, at_once: int, emit: Callable[[int, int], None], *, end: str, back: bool = False
) -> None:
    """Code for so many numbers at a time, given the first's offset and how many it is for, along a row.

    Then r0 and r1 stand behind the row, or, if nothing is written, where they were (`back`). `end` is the register that
    says where a loop ends.
    """
    rounds, rest = divmod(length, UNROLLED)
    if rounds > 1:
        asm.emit(f"add {end}, r0, #{rounds * UNROLLED}")
    if rounds:
        with asm.loop(rounds, closing=(f"cmp r0, {end}",)):
            _each(emit, UNROLLED, at_once)
            asm.emit(f"add r0, r0, #{UNROLLED}", *([] if back else [f"add r1, r1, #{UNROLLED}"]))
    _each(emit, rest, at_once)
    asm.add("r0", "r0", -rounds * UNROLLED if back else rest, "r4")
    asm.add("r1", "r1", 0 if back else rest, "r4")


def _each(emit: Callable[[int, int], None], count: int, at_once: int) -> None:
    for first in range(0, count, at_once):
        emit(first, min(at_once, count - first))
