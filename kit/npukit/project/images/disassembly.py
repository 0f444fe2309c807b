"""The use of the stack by a function of an image, from the instructions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from npukit.board.cores import architecture_of
from npukit.project.images.elf import Elf, ElfFunction
from npukit.project.images.walk import FunctionWalk, InstructionSet, MachineCall, StackState

MOST_VISITS = 64
"""Limit on visits of an instruction with ever more stack. Beyond it, a loop never frees the stack."""


@cache
def _instructions_of(elf: str) -> InstructionSet:
    """The decoder of an architecture's code."""
    return import_module(f"{__package__}.{architecture_of(elf).instructions}").INSTRUCTIONS


@dataclass(frozen=True)
class Frame:
    """A function's own use of the stack, and the calls in it."""

    function: ElfFunction
    bytes: int
    calls: tuple[MachineCall, ...]


def frame_of(elf: Elf, function: ElfFunction) -> Frame:
    """Follow every path through the function."""
    instructions = _instructions_of(elf.machine)
    walk = FunctionWalk(elf, function, instructions.decode)
    pending = [(function.address, StackState())]
    while pending:
        address, state = pending.pop()
        if not _is_news(walk, address, state):
            continue
        state = walk.seen[address]
        after = instructions.after(walk, walk.code[address], state)
        walk.deepest = max(walk.deepest, state.depth, after.depth)
        pending.extend((target, after) for target in instructions.successors(walk, walk.code[address], after))
    return Frame(function, walk.deepest, tuple(walk.calls.values()))


def _is_news(walk: FunctionWalk, address: int, state: StackState) -> bool:
    """True if the instruction has not been seen with as much stack yet. An address outside the function is an internal
    error."""
    if address not in walk.code:
        raise walk.puzzled(address, "runs on into something that is no instruction")
    known = walk.seen.get(address)
    if known is not None and known.depth >= state.depth:
        return False
    walk.visits[address] = walk.visits.get(address, 0) + 1
    if walk.visits[address] > MOST_VISITS:
        raise walk.puzzled(address, "takes more stack with each turn of a loop")
    walk.seen[address] = state
    return True
