"""A walk through the instructions of one function, along every path: what all architectures have alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from npukit.errors import NpukitError
from npukit.project.images.elf import Elf, ElfFunction


@dataclass(frozen=True)
class MachineCall:
    """A call or a tail call, through a pointer if there is no callee. `depth`: the caller's own bytes on the stack.

    `after`: the address that a call returns to.
    """

    site: int
    after: int
    depth: int
    callee: int | None


@dataclass(frozen=True)
class StackState:
    """Bytes on the stack; the registers that point there, as bytes below the entry's stack pointer; and those that hold
    a number, as far as they are followed."""

    depth: int = 0
    pointers: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class InstructionSet:
    """The instructions of an architecture: how they are read, the state after one, and where control goes from it.

    Instructions have an `address` and a `size`. `successors` notes calls on the way.
    """

    decode: Callable[[bytes, int], Iterator[Any]]
    after: Callable[[FunctionWalk, Any, StackState], StackState]
    successors: Callable[[FunctionWalk, Any, StackState], list[int]]


@dataclass
class FunctionWalk:
    """A function's instructions, as they are visited."""

    elf: Elf
    function: ElfFunction
    decode: Callable[[bytes, int], Iterator[Any]]
    code: dict[int, Any] = field(default_factory=dict)
    deepest: int = 0
    calls: dict[int, MachineCall] = field(default_factory=dict)
    seen: dict[int, StackState] = field(default_factory=dict)
    visits: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.read(self.function)

    def read(self, function: ElfFunction) -> None:
        """Add a function's instructions."""
        for start, end in _stretches(self.elf, function):
            for instruction in self.decode(self.elf.read(start, end - start), start):
                self.code[instruction.address] = instruction

    def note_call(self, site: int, depth: int, callee: int | None) -> None:
        self.calls[site] = MachineCall(site, site + self.code[site].size, depth, callee)

    def leave(self, site: int, depth: int, target: int) -> list[int]:
        """A jump: to inside the function; leaving it is a tail call, or a way on in the middle of another function."""
        if target in self.code or self.joins(target):
            return [target]
        self.note_call(site, depth, target)
        return []

    def joins(self, target: int) -> bool:
        """True if it is in the middle of a function, whose instructions are from then on this one's too.

        So do conversions of the compilers' libraries, which share what rounds and packs with the addition.
        """
        inside = (each for each in self.elf.functions.values() if each.address < target < each.end)
        other = next(inside, None) if target not in self.elf.functions else None
        if other:
            self.read(other)
        return other is not None

    def comes_back(self, following: int) -> bool:
        """A call at a function's very end, or before the NOP that aligns its literals, is one that never returns."""
        aligns = following + len(_ARMV6_M_NOP) not in self.code and self.elf.read(following, 2) == _ARMV6_M_NOP
        return following in self.code and not aligns

    def puzzled(self, address: int, what: str) -> NpukitError:
        return NpukitError(
            f"the stack of {self.function.name} cannot be bounded: at {address:#x} it {what}",
            tries=["no alloca and no arrays of variable size", "a kernel without that instruction"],
        )


_ARMV6_M_NOP = bytes.fromhex("c046")


def _stretches(elf: Elf, function: ElfFunction) -> Iterator[tuple[int, int]]:
    """The parts of the function that are instructions."""
    at = function.address
    for start, end in elf.data_in_code:
        if start >= function.end:
            break
        if end > at:
            if start > at:
                yield at, start
            at = end
    if at < function.end:
        yield at, function.end
