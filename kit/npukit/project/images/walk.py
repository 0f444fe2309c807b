"""The stack used by a function of an image: a walk through its instructions along every path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from npukit.board.cores import architecture_of
from npukit.errors import NpukitError
from npukit.project.images.elf import Elf, ElfFunction

MOST_VISITS = 64
"""Limit on visits of an instruction with ever more stack. Beyond it, a loop never frees the stack."""


@dataclass(frozen=True)
class MachineCall:
    """A call or a tail call. `callee`: None for a call through a pointer. `depth`: the caller's own bytes on the stack.
    `after`: the return address of a call."""

    site: int
    after: int
    depth: int
    callee: int | None


@dataclass(frozen=True)
class StackState:
    """The stack at an instruction. `depth`: bytes on the stack. `pointers`: registers that point into it, as bytes
    below the entry's stack pointer. `numbers`: registers with known numbers."""

    depth: int = 0
    pointers: Mapping[str, int] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """A function's own use of the stack, and the calls in it."""

    function: ElfFunction
    bytes: int
    calls: tuple[MachineCall, ...]


@dataclass(frozen=True)
class InstructionSet:
    """The functions for an architecture: decode instructions, compute the state after one, list its successors.
    Instructions have an `address` and a `size`. `successors` also notes calls."""

    decode: Callable[[bytes, int], Iterator[Any]]
    after: Callable[[FunctionWalk, Any, StackState], StackState]
    successors: Callable[[FunctionWalk, Any, StackState], list[int]]


@cache
def _instructions_of(elf: str) -> InstructionSet:
    """The decoder of an architecture's code. The modules of the architectures import this module."""
    return import_module(f"{__package__}.{architecture_of(elf).instructions}").INSTRUCTIONS


def frame_of(elf: Elf, function: ElfFunction) -> Frame:
    """Follow every path through the function."""
    instructions = _instructions_of(elf.machine)
    walk = FunctionWalk(elf, function, instructions.decode)
    pending = [(function.address, StackState())]
    while pending:
        address, state = pending.pop()
        if not walk.is_news(address, state):
            continue
        after = instructions.after(walk, walk.code[address], state)
        walk.deepest = max(walk.deepest, state.depth, after.depth)
        pending.extend((target, after) for target in instructions.successors(walk, walk.code[address], after))
    return Frame(function, walk.deepest, tuple(walk.calls.values()))


@dataclass
class FunctionWalk:
    """A function's instructions, and the visited states."""

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

    def is_news(self, address: int, state: StackState) -> bool:
        """True if the instruction has not been seen with as much stack yet. An error outside the function."""
        if address not in self.code:
            raise self.puzzled(address, "runs on into something that is no instruction")
        known = self.seen.get(address)
        if known is not None and known.depth >= state.depth:
            return False
        self.visits[address] = self.visits.get(address, 0) + 1
        if self.visits[address] > MOST_VISITS:
            raise self.puzzled(address, "takes more stack with each turn of a loop")
        self.seen[address] = state
        return True

    def read(self, function: ElfFunction) -> None:
        """Add a function's instructions, without the literals between them."""
        starts, ends = [function.address], list[int]()
        for start, end in self.elf.data_in_code:
            if function.address < end and start < function.end:
                ends.append(start)
                starts.append(end)
        for start, end in zip(starts, [*ends, function.end], strict=True):
            if start < end:
                for instruction in self.decode(self.elf.read(start, end - start), start):
                    self.code[instruction.address] = instruction

    def note_call(self, site: int, depth: int, callee: int | None) -> None:
        self.calls[site] = MachineCall(site, site + self.code[site].size, depth, callee)

    def leave(self, site: int, depth: int, target: int) -> list[int]:
        """The successors of a jump. A jump out of the function is a tail call, or leads into the middle of another."""
        if not (inside := target in self.code or self.joins(target)):
            self.note_call(site, depth, target)
        return [target] if inside else []

    def joins(self, target: int) -> bool:
        """True if the target is in the middle of another function. That function's instructions then belong to the walk
        too.

        Conversions in the compilers' libraries jump this way: they share the code for rounding and packing with the
        addition.
        """
        inside = (each for each in self.elf.functions.values() if each.address < target < each.end)
        other = next(inside, None) if target not in self.elf.functions else None
        if other:
            self.read(other)
        return other is not None

    def comes_back(self, following: int) -> bool:
        """True if a call returns, unless at the end of the function or before an aligning NOP."""
        aligns = following + len(_ARMV6_M_NOP) not in self.code and self.elf.read(following, 2) == _ARMV6_M_NOP
        return following in self.code and not aligns

    def puzzled(self, address: int, what: str) -> NpukitError:
        return NpukitError(
            f"the stack of {self.function.name} cannot be bounded: at {address:#x} it {what}",
            tries=["no alloca and no arrays of variable size", "a kernel without that instruction"],
        )


_ARMV6_M_NOP = bytes.fromhex("c046")
