"""Banks: memories for the activations of one core. Buffers with the most wait cycles go to the fastest bank.

The first bank is the fastest. Offsets count through all banks: each bank begins where the bank before it ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npukit.board.board import Board, Memory
from npukit.plan.emit.pe_program import PeProgram
from npukit.plan.predict.memory import (
    CODE_BYTES,
    STACK_BYTES,
    Lifetime,
    activation_room,
    aligned,
    bank_begins,
    extent,
    joined,
    pack,
)
from npukit.structs import WORD

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
        ends = [0] * len(self.begins)
        for life, offset in zip(lifetimes, offsets, strict=True):
            number = self.number_at(offset)
            ends[number] = max(ends[number], aligned(offset - self.begins[number] + life.bytes))
        return tuple(ends)

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
        ranks = [self._rank(unit, life, lifetimes, reads) for unit, life in zip(units, lives, strict=True)]
        left = sorted(range(len(units)), key=ranks.__getitem__)
        offsets = [0] * len(lifetimes)
        for number, begin in enumerate(self.begins):
            room = self.memories[number].size if number else self.room
            own = left if number == len(self.begins) - 1 else _that_fit(left, lives, room)
            left = [each for each in left if each not in own]
            for each, at in zip(own, pack([lives[each] for each in own]), strict=True):
                for index, distance in units[each].items():
                    offsets[index] = begin + at + distance
        return tuple(offsets)

    def _rank(
        self, unit: Mapping[int, int], life: Lifetime, lifetimes: Sequence[Lifetime], reads: Reads
    ) -> tuple[float, int]:
        """The sort key for the faster banks: wait cycles per byte in the slowest bank, then size, largest first."""
        uses = [(index, accesses) for index in unit for _, accesses in reads.get(index, ())]
        cycles = sum(self.memories[-1].cycles_of(lifetimes[index].bytes, accesses) for index, accesses in uses)
        return -cycles / max(life.bytes, 1), -life.bytes


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
    for index, step, cost in program.computes():
        inputs, output = [named[view.buffer] for view in step.inputs], named[step.output.buffer]
        read = sum(sizes[each] for each in inputs)
        left = max(cost.accesses - sizes[output], read // WORD)
        found.setdefault(output, []).append((index, sizes[output]))
        for each in inputs:
            accesses = sizes[each] // WORD if step.scratch else left * sizes[each] // max(read, 1)
            found.setdefault(each, []).append((index, accesses))
        if step.scratch:
            found.setdefault(named[step.scratch], []).append((index, left - read // WORD))
    return found
