"""Loops over the rows of a tensor, and over the numbers of a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from npukit.accel.cortex_m.code.assembly import Assembly

Strides = tuple[int, int]
"""Bytes from row to row of the input and of the output."""
_FIRST = 4
"""Bytes of the index of a part's first number."""
UNROLLED = 16
"""Numbers per pass of the loop: with 4 a vision transformer takes 0.7 % longer, with 64, whose rests are longer, 0.3 %
(`benchmarks/core/kernel_constants.md`)."""


class Around(NamedTuple):
    """A loop around contiguous elements: its rounds, and the stride in bytes of each pointer."""

    size: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class RowPart:
    """The numbers of a row to compute: `count` of `length`. All are read. The first's index is data."""

    length: int
    count: int

    @property
    def is_whole(self) -> bool:
        return self.count == self.length

    @property
    def bytes_before(self) -> int:
        """Bytes between the op's constants and the constants of its numbers."""
        return 0 if self.is_whole else _FIRST


@contextmanager
def each_row(asm: Assembly, rows: int, part: RowPart, strides: Strides, held: int = 0) -> Iterator[None]:
    """A loop over rows as a context: the code inside computes a row and advances r0 and r1 by `part.count`. r2 is the
    end of the input, r4 is spare. r12 advances from the start of the constants, over `held` bytes of the op and the
    index of a part's first number, to the constants of the row's numbers."""
    asm.add("r12", "r12", held + part.bytes_before, "r4")
    if rows > 1:
        asm.add("r2", "r0", rows * strides[0], "r4")
    with asm.loop(rows, closing=("cmp r0, r2",)):
        yield
        for register, stride in zip(("r0", "r1"), strides, strict=True):
            asm.add(register, register, stride - part.count if rows > 1 else 0, "r4")


@contextmanager
def from_first(asm: Assembly, part: RowPart) -> Iterator[None]:
    """A context in which r0 points to the first number to compute. The number's index lies before r12; r4 is spare."""
    if not part.is_whole:
        asm.emit("ldr r4, [r12, #-4]", "add r0, r0, r4")
    yield
    if not part.is_whole:
        asm.emit("ldr r4, [r12, #-4]", "sub r0, r0, r4")


def unrolled(
    asm: Assembly, length: int, at_once: int, emit: Callable[[int, int], None], *, end: str, back: bool = False
) -> None:
    """Code along a row, for up to `at_once` numbers at a time. `emit`: takes the offset of the first number, and the
    count.

    r0 and r1 end behind the row; with `back`, where nothing is written, they are unchanged. `end`: the register for the
    loop's end address.
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


def nested(
    asm: Assembly,
    around: Sequence[Around],
    pointers: Sequence[str],
    moved: Sequence[int],
    counters: Sequence[str],
    emit: Callable[[str], None],
) -> None:
    """Loops around `emit`, which moves the pointers by `moved` bytes and takes the next free counter. The pointers end
    behind the last round of the outermost loop. r4 is spare. `counters`: registers, or words on the stack."""
    counter, *others = (*counters, "")
    if not around:
        emit(counter)
        return
    (size, strides), *inner = around
    inside = [inner[0].size * stride for stride in inner[0].strides] if inner else moved
    with _counted(asm, size, counter):
        nested(asm, inner, pointers, moved, others[:-1], emit)
        for register, stride, already in zip(pointers, strides, inside, strict=True):
            asm.add(register, register, stride - already, "r4")


@contextmanager
def _counted(asm: Assembly, size: int, counter: str) -> Iterator[None]:
    """A loop with its counter in a register, or in a word on the stack."""
    if not counter.startswith("["):
        asm.constant(counter, size)
        with asm.loop(size, closing=(f"subs {counter}, #1",)):
            yield
        return
    if size > 1:
        asm.constant("r4", size)
        asm.emit(f"str r4, {counter}")
    with asm.loop(size, closing=(f"ldr r4, {counter}", "subs r4, #1", f"str r4, {counter}")):
        yield


def _each(emit: Callable[[int, int], None], count: int, at_once: int) -> None:
    for first in range(0, count, at_once):
        emit(first, min(at_once, count - first))
