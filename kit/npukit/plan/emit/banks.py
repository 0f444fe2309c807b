"""Banks: memories for the activations of one core. Buffers with the most wait cycles go to the fastest bank.

The first bank is the fastest. Offsets count through all banks: each bank begins where the bank before it ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npukit.board.board import Board, Memory
from npukit.plan.emit.pe_program import PeProgram
from npukit.plan.ir.plan import Compute
from npukit.plan.predict.memory import (
    CODE_BYTES,
    STACK_BYTES,
    Lifetime,
    activation_room,
    bank_begins,
    extent,
    joined,
    pack,
)

WORD = 4
"""Bytes of a word, the most that an access reads."""

Reads = Mapping[int, Sequence[tuple[int, int]]]
"""The steps that read or write each buffer, by the buffer's index, with the number of accesses of each step."""


@dataclass(frozen=True)
class Banks:
    """The banks of a PE. `room`: bytes of the first bank for activations."""

    memories: tuple[Memory, ...]
    begins: tuple[int, ...]
    room: int

    @classmethod
    def of(cls, board: Board, program: PeProgram) -> Banks:
        room = activation_room(board, sum(program.constants.values()), len(program.costs))
        return cls(board.banks, bank_begins(board), room)

    @property
    def most(self) -> int:
        """Bytes of all banks for activations if the program had no code and no stack."""
        return self.room + CODE_BYTES + STACK_BYTES + sum(bank.size for bank in self.memories[1:])

    def number_at(self, offset: int) -> int:
        """The index of the bank at an offset."""
        return bisect_right(self.begins, offset) - 1

    def extents(self, lifetimes: Sequence[Lifetime], offsets: Sequence[int]) -> tuple[int, ...]:
        """Bytes in use in each bank."""
        if len(self.begins) == 1:
            return (extent(lifetimes, offsets),)
        numbers = [self.number_at(offset) for offset in offsets]
        return tuple(
            extent(*_of_bank(number, begin, numbers, lifetimes, offsets)) for number, begin in enumerate(self.begins)
        )

    def waits(self, lifetimes: Sequence[Lifetime], offsets: Sequence[int], reads: Reads) -> dict[int, int]:
        """Wait cycles of each step for the buffers read and written."""
        found: dict[int, int] = {}
        for index, uses in reads.items():
            bank = self.memories[self.number_at(offsets[index])]
            for step, accesses in uses:
                found[step] = found.get(step, 0) + bank.cycles_of(lifetimes[index].bytes, accesses)
        return found

    def spread(
        self, lifetimes: Sequence[Lifetime], units: Sequence[Mapping[int, int]], reads: Reads
    ) -> tuple[int, ...]:
        """The offset of each buffer. Fills bank after bank, units with the most wait cycles per byte first. Buffers of
        a unit stay together."""
        lives = [joined([lifetimes[index] for index in unit]) for unit in units]
        left = sorted(range(len(units)), key=lambda each: self._worth(units[each], lives[each], lifetimes, reads))
        offsets = [0] * len(lifetimes)
        for number, begin in enumerate(self.begins):
            own = left if number == len(self.begins) - 1 else _that_fit(left, lives, self._room(number))
            left = [each for each in left if each not in own]
            for each, at in zip(own, pack([lives[each] for each in own]), strict=True):
                for index, distance in units[each].items():
                    offsets[index] = begin + at + distance
        return tuple(offsets)

    def _worth(
        self, unit: Mapping[int, int], life: Lifetime, lifetimes: Sequence[Lifetime], reads: Reads
    ) -> tuple[float, int]:
        """The sort key for the faster banks: wait cycles per byte in the slowest bank, then size, largest first."""
        uses = [(index, accesses) for index in unit for _, accesses in reads.get(index, ())]
        cycles = sum(self.memories[-1].cycles_of(lifetimes[index].bytes, accesses) for index, accesses in uses)
        return -cycles / max(life.bytes, 1), -life.bytes

    def _room(self, number: int) -> int:
        return self.memories[number].size if number else self.room


def _of_bank(
    number: int, begin: int, numbers: Sequence[int], lifetimes: Sequence[Lifetime], offsets: Sequence[int]
) -> tuple[list[Lifetime], list[int]]:
    own = [index for index, bank in enumerate(numbers) if bank == number]
    return [lifetimes[index] for index in own], [offsets[index] - begin for index in own]


def _that_fit(units: Sequence[int], lives: Sequence[Lifetime], room: int) -> list[int]:
    """The units that fit into `room` bytes together, taken greedily in order."""
    own: list[int] = []
    for each in units:
        together = [lives[unit] for unit in (*own, each)]
        if extent(together, pack(together)) <= room:
            own.append(each)
    return own


def reads_of(program: PeProgram, named: Mapping[str, int], sizes: Sequence[int]) -> Reads:
    """The accesses of each step to buffers.

    Each byte of an output is written once. With scratch memory, each word of the inputs is read once, and all other
    accesses go to the scratch memory. Without scratch memory, all other accesses go to the inputs.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        for name, accesses in _accesses(compute, cost.accesses, {n: sizes[i] for n, i in named.items()}):
            found.setdefault(named[name], []).append((step, accesses))
    return found


def _accesses(step: Compute, accesses: int, sizes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    inputs, written = [view.buffer for view in step.inputs], sizes[step.output.buffer]
    read = sum(sizes[name] for name in inputs)
    left = max(accesses - written, read // WORD)
    yield step.output.buffer, written
    for name in inputs:
        yield name, sizes[name] // WORD if step.scratch else left * sizes[name] // max(read, 1)
    if step.scratch:
        yield step.scratch, left - read // WORD
