"""An assembly writer that counts instructions, cycles and bytes during emission.

The generator determines the trip count of every loop, so the counts are exact, not estimates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from npukit.accel.cortex_m.code import timing

_MODIFIED_IMMEDIATE_BITS, _NARROW_BRANCH_REACH = 8, 252
"""Width in bits of a constant that any instruction can encode at any position; range in bytes of a short branch."""

REACH, PAIR_REACH, INDEX_REACH = 4095, 1020, 255
"""Largest offset in bytes of a load or store: of one register, of two registers, and with update of the address
(Armv7-M Architecture Reference Manual, LDR, LDRD)."""

PUSHED_BYTES = 36
"""Bytes on the stack for r4 to r11 and lr."""

WORD_ORDER = (0, 2, 1, 3)
"""The positions of a word's four bytes after SXTB16 has split the word: the bytes of the first halfword come first."""


@dataclass(frozen=True)
class CodeWorth:
    """The time that code must save: `byte` per byte of code, plus the fetches. A fetched byte takes `fetch` cycles.
    Loops of more than `kept_bytes` are fetched again in each pass."""

    byte: float
    fetch: float = 0
    kept_bytes: int = 0


USUAL_WORTH = CodeWorth(8.0)
"""The worth of code if the network around a layer is unknown."""


class _Loop(NamedTuple):
    """Passes of a loop, and bytes of its body once the body is complete."""

    trips: int
    bytes: int = 0


class Assembly:
    """The body of a routine. `instructions`, `cycles` and memory `accesses` are for a whole call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.instructions = 0
        self.cycles = 0
        self.accesses = 0
        self.bytes = 0
        self._times = 1
        self._loops: list[_Loop] = []
        self._around: tuple[int, ...] = ()
        self._written: dict[tuple[int, ...], int] = {}
        self._label_at: dict[str, int] = {}
        self._before: timing.Instruction | None = None

    def emit(self, *texts: str) -> None:
        for text in texts:
            self._emit(timing.parse(text), text)

    def comment(self, text: str) -> None:
        """Write a comment on the following instructions, for readers of the routine."""
        self.lines.append(f"    @ {text}")

    @contextmanager
    def loop(self, trips: int, *, closing: Sequence[str] = (), branch: str = "bne") -> Iterator[None]:
        """A loop as a context: the code inside runs `trips` times. `closing` sets the flags, unless `trips` is 1."""
        if trips == 1:
            yield
            return
        label, first, around = self._label(), self.bytes, self._around
        self._around = (*around, len(self._loops))
        self._loops.append(_Loop(trips))
        self._times *= trips
        yield
        self.emit(*closing, f"{branch} {label}")
        self._loops[self._around[-1]] = _Loop(trips, self.bytes - first)
        self._around = around
        self._times //= trips
        self.cycles += self._times * (trips - 1)
        self._before = None

    @contextmanager
    def unless(self, condition: str, of: int) -> Iterator[None]:
        """A branch as a context: the code inside is skipped if `condition` is true. The counts assume a skip in all but
        one of `of` rounds of the enclosing loop."""
        label = str(len(self._label_at) + 1)
        self._label_at[label] = self.bytes
        self.emit(f"b{condition}.w {label}f")
        times, self._times = self._times, self._times // of
        yield
        self._times = times
        self.cycles += times - times // of
        self.lines.append(f"{label}:")
        self._before = None

    def constant(self, register: str, value: int) -> None:
        """Load a 32-bit constant into a register."""
        value &= 0xFFFFFFFF
        self.emit(f"movw {register}, #{value & 0xFFFF}")
        if value >> 16:
            self.emit(f"movt {register}, #{value >> 16}")

    def add(self, target: str, source: str, value: int, spare: str) -> None:
        """target = source + value, through `spare` if no immediate reaches."""
        if value == 0 and target == source:
            return
        name = "add" if value >= 0 else "sub"
        if value == 0:
            self.emit(f"mov {target}, {source}")
        elif abs(value) < 4096 or encodable(abs(value)):
            self.emit(f"{name} {target}, {source}, #{abs(value)}")
        else:
            self.constant(spare, abs(value))
            self.emit(f"{name} {target}, {source}, {spare}")

    def cost(self, worth: CodeWorth) -> float:
        """The cost of a routine, to compare variants. Instructions count beside cycles: each is also a fetch, with a
        cost that the board file may not give."""
        fetched = worth.fetch * self.fetched_bytes(worth.kept_bytes) if worth.fetch else 0
        return self.instructions + self.cycles + worth.byte * self.bytes + fetched

    def fetched_bytes(self, kept_bytes: int) -> int:
        """Bytes of code fetched by a call, if loops of up to `kept_bytes` are fetched once each time they begin."""
        return sum(
            size * prod(self._loops[loop].trips for loop in around if self._loops[loop].bytes > kept_bytes)
            for around, size in self._written.items()
        )

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def _label(self) -> str:
        label = str(len(self._label_at) + 1)
        self._label_at[label] = self.bytes
        self.lines.append(f"{label}:")
        self._before = None
        return f"{label}b"

    def _emit(self, instruction: timing.Instruction, text: str) -> None:
        self.lines.append(f"    {text}")
        self.instructions += self._times
        self.cycles += self._times * timing.cycles(instruction, self._before)
        self.accesses += self._times * instruction.accesses
        size = self._branch_bytes(text) if instruction.branches else timing.size(instruction)
        self.bytes += size
        self._written[self._around] = self._written.get(self._around, 0) + size
        self._before = None if instruction.branches else instruction

    def _branch_bytes(self, text: str) -> int:
        distance = self.bytes - self._label_at[text.split()[1].rstrip("b")]
        return 2 if distance <= _NARROW_BRANCH_REACH else 4


def encodable(value: int) -> bool:
    """True if Thumb-2 can encode a value as 8 bits shifted (the repeated patterns are not needed here)."""
    if value == 0:
        return True
    low = (value & -value).bit_length() - 1
    return value >> low < 1 << _MODIFIED_IMMEDIATE_BITS
