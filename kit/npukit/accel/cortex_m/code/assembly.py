"""Writing assembly whose instruction, cycle and byte counts are known as it is written.

Every loop has a trip count known to the generator, so the counts are exact, not estimates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from npukit.accel.cortex_m.code import timing

_MODIFIED_IMMEDIATE_BITS, _NARROW_BRANCH_REACH = 8, 252
"""Bits of a constant that any instruction holds, wherever they lie in a word; bytes that a short branch spans."""

REACH, PAIR_REACH, INDEX_REACH = 4095, 1020, 255
"""The most bytes that a load or a store adds to its address: of one register, of two, and where it moves the address on
(Armv7-M Architecture Reference Manual, LDR, LDRD)."""

PUSHED_BYTES = 36
"""Bytes of r4 to r11 and lr on the stack."""

WORD_ORDER = (0, 2, 1, 3)
"""The places of four bytes in a word, once SXTB16 has taken it apart: those of the first halfword come first."""


@dataclass(frozen=True)
class CodeWorth:
    """The time that code must save: `byte` for each byte of it, and its fetches.

    A byte that is fetched takes `fetch` cycles, where loops of more than `kept_bytes` are fetched anew in each pass.
    """

    byte: float
    fetch: float = 0
    kept_bytes: int = 0


USUAL_WORTH = CodeWorth(8.0)
"""The worth of code where nothing is known of the network around a layer."""


class _Loop(NamedTuple):
    """A loop's passes through its body, and the body's bytes, once they are written."""

    trips: int
    bytes: int = 0


class Assembly:
    """The body of one routine. `instructions`, `cycles` and `accesses` to memory are those of one whole call."""

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
        """Writes a comment on the instructions that follow, for readers of the routine."""
        self.lines.append(f"    @ {text}")

    @contextmanager
    def loop(self, trips: int, *, closing: Sequence[str] = (), branch: str = "bne") -> Iterator[None]:
        """The body, `trips` times. `closing` sets the flags `branch` looks at; a single trip needs neither."""
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
        """The body, jumped over if the flags say so: in all but one of so many rounds of the loop around, it counts."""
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
        """A 32-bit constant into a register."""
        value &= 0xFFFFFFFF
        self.emit(f"movw {register}, #{value & 0xFFFF}")
        if value >> 16:
            self.emit(f"movt {register}, #{value >> 16}")

    def add(self, target: str, source: str, value: int, spare: str) -> None:
        """target = source + value, through `spare` where no immediate reaches."""
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
        """The cost by which ways of writing a routine are compared.

        Instructions count beside cycles, for each is also a fetch, which may cost what the board does not say.
        """
        fetched = worth.fetch * self.fetched_bytes(worth.kept_bytes) if worth.fetch else 0
        return self.instructions + self.cycles + worth.byte * self.bytes + fetched

    def fetched_bytes(self, kept_bytes: int) -> int:
        """Bytes of code that a call fetches, if loops of up to so many are fetched but once each time they begin."""
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
    """True if Thumb-2 can hold a value as 8 bits shifted (the repeated patterns are not needed here)."""
    if value == 0:
        return True
    low = (value & -value).bit_length() - 1
    return value >> low < 1 << _MODIFIED_IMMEDIATE_BITS
