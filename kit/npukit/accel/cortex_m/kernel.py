"""The result of a kernel generator: a kernel, or the reason why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.layout import Layout
from npukit.accel.interface import Cost, Lowered, Routine, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.structs import WORD

_DIGEST_DIGITS = 8
_ENTRY_INSTRUCTIONS, _ENTRY_BYTES, _ENTRY_CYCLES = 3, 12, 4
"""Instructions, bytes and cycles to enter a routine with constants: two halves of their address, and a branch."""
_BRANCH_CYCLES, _MOVE_BYTES = 2, 2


@dataclass(frozen=True)
class Constant:
    """An array that the kernel refers to by symbol."""

    symbol: str
    values: np.ndarray
    align: int = 4


@dataclass(frozen=True)
class SharedRoutine:
    """Code without constants, shared by layers of the same shape. Takes the constants' address in r12."""

    name: str
    assembly: str
    bytes: int


@dataclass(frozen=True, eq=False)
class Kernel:
    """A function `void symbol(const int8_t *input, int8_t *output, void *scratch)`; an addition takes two inputs.

    `reads_beyond`: bytes behind the input that may be read but are not used; the bytes must exist. `may_overwrite`:
    indices of inputs at whose address the output may begin. `instructions` and `cycles` are for one call.
    """

    symbol: str
    variant: str
    condition: str
    body: Assembly
    inputs: tuple[Layout, ...]
    output: Layout
    stack_bytes: int
    constants: tuple[Constant, ...] = ()
    scratch_bytes: int = 0
    reads_beyond: int = 0
    may_overwrite: tuple[int, ...] = ()
    sweeps: int = 1
    """Number of passes of a call over its constants."""

    @cached_property
    def routine(self) -> SharedRoutine:
        return routine(self.body)

    @property
    def instructions(self) -> int:
        return self.body.instructions + (_ENTRY_INSTRUCTIONS if self.constants else 1)

    @property
    def cycles(self) -> int:
        return self.body.cycles + entry_cycles(constants=bool(self.constants))

    @property
    def entry_bytes(self) -> int:
        """Bytes to load the address of the layer's constants and to branch to the shared routine."""
        return _ENTRY_BYTES if self.constants else 4

    @property
    def constant_bytes(self) -> int:
        return sum(constant.values.nbytes for constant in self.constants)

    @property
    def accesses(self) -> int:
        """Loads and stores of a call, without the reads of constants."""
        return max(0, self.body.accesses - self.sweeps * self.constant_bytes // WORD)


@dataclass(frozen=True)
class Refusal:
    """The reason why a variant does not apply to a layer."""

    variant: str
    reason: str


@lru_cache(maxsize=1 << 12)
def routine(body: Assembly) -> SharedRoutine:
    """The body as a routine, named after a digest of the text."""
    text = body.text()
    name = f"npukit_m4_{sha256(text.encode()).hexdigest()[:12]}"
    return SharedRoutine(name, f".balign 4\n.thumb_func\n{name}:\n{text}", body.bytes)


def function(note: str, body: Assembly, *, constants: bool, pointers: int = 4) -> Routine:
    """The body as a function, named by `note` and a digest of the text. `pointers`: arguments, at least four."""
    code, entry = routine(body), "    mov r12, r3\n" * constants
    name = re.sub(r"\W+", "_", note) + "_" + code.name[-_DIGEST_DIGITS:]
    size = -(-(code.bytes + _MOVE_BYTES * constants) // WORD) * WORD
    return Routine(name, f"{entry}{body.text()}", note, size, max(pointers, 4))


def entry_cycles(*, constants: bool) -> int:
    """Cycles to enter a routine, with or without the address of its constants."""
    return _ENTRY_CYCLES if constants else _BRANCH_CYCLES


class BoxRoutine:
    """An op of the core as routines for any box of the output. `note`: the routine's name for people."""

    note: str

    def bodies(self, net: Net, op: Op, output: Box) -> Sequence[Assembly]:
        """The routines for a box of the output, with dense operands and output."""
        raise NotImplementedError

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        """The cost of a box of the output. Routines take the address of their constants."""
        cycles = sum(body.cycles + entry_cycles(constants=True) for body in self.bodies(net, op, output))
        return Cost(cycles, self.constants_of(output).nbytes, constants_key=self.note)

    def constants_of(self, output: Box) -> np.ndarray:
        """The constants for a box of the output."""
        raise NotImplementedError

    def codes(self, net: Net, op: Op, output: Box) -> Iterator[SharedRoutine]:
        return map(routine, self.bodies(net, op, output))

    def lowered(self, tile: Tile) -> Lowered | None:
        """The tile as routines; None if the boxes lie in larger tensors in a way that needs too many loops."""
        raise NotImplementedError
