"""The generator's result: a kernel, or the reason why there is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.layout import Layout
from npukit.accel.interface import Routine

WORD = 4
PROLOGUE = ".syntax unified\n.thumb\n.text\n"
_DIGEST_DIGITS = 8
_ENTRY_INSTRUCTIONS, _ENTRY_BYTES, _ENTRY_CYCLES = 3, 12, 4
"""The way into a routine with constants: their address, in two halves of a register, and a branch."""
_BRANCH_CYCLES, _MOVE_BYTES, _WORD = 2, 2, 4


@dataclass(frozen=True)
class Constant:
    """An array the kernel refers to by its symbol."""

    symbol: str
    values: np.ndarray
    align: int = 4


@dataclass(frozen=True)
class SharedRoutine:
    """Code without constants, so that layers of the same shape share it. Takes the constants' address in r12."""

    name: str
    assembly: str
    bytes: int


@dataclass(frozen=True, eq=False)
class Kernel:
    """`void symbol(const int8_t *input, int8_t *output, void *scratch)`; an add takes two inputs.

    `reads_beyond` bytes beyond the input may be read, never used: they must exist. The output may begin where an input
    that `may_overwrite` numbers begins. `instructions` and `cycles` are those of one call.
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
    """The number of times that a call reads its constants from first to last."""

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
    def entry(self) -> str:
        """The few instructions that name this layer's constants and enter the shared routine."""
        lines = [f".global {self.symbol}", ".thumb_func", f"{self.symbol}:"]
        if self.constants:
            symbol = self.constants[0].symbol
            lines += [f"    movw r12, #:lower16:{symbol}", f"    movt r12, #:upper16:{symbol}"]
        return "\n".join([*lines, f"    b.w {self.routine.name}", ""])

    @property
    def assembly(self) -> str:
        return PROLOGUE + self.routine.assembly + self.entry

    @property
    def code_bytes(self) -> int:
        return self.routine.bytes + self.entry_bytes

    @property
    def entry_bytes(self) -> int:
        return _ENTRY_BYTES if self.constants else 4

    @property
    def constant_bytes(self) -> int:
        return sum(constant.values.nbytes for constant in self.constants)

    @property
    def accesses(self) -> int:
        """Times that a call reads or writes activations, and not its constants."""
        return max(0, self.body.accesses - self.sweeps * self.constant_bytes // WORD)


@dataclass(frozen=True)
class Refusal:
    """Why a variant does not apply to a layer."""

    variant: str
    reason: str


@lru_cache(maxsize=1 << 12)
def routine(body: Assembly) -> SharedRoutine:
    """A body as a routine named after its contents."""
    text = body.text()
    name = f"npukit_m4_{sha256(text.encode()).hexdigest()[:12]}"
    return SharedRoutine(name, f".balign 4\n.thumb_func\n{name}:\n{text}", body.bytes)


def function(note: str, body: Assembly, *, constants: bool, pointers: int = 4) -> Routine:
    """A body as a function of its own, named after what it does, with digits that differ where its contents do. It may
    be given more than four pointers."""
    code, entry = routine(body), "    mov r12, r3\n" * constants
    name = re.sub(r"\W+", "_", note) + "_" + code.name[-_DIGEST_DIGITS:]
    size = _in_words(code.bytes + _MOVE_BYTES * constants)
    return Routine(name, f"{entry}{body.text()}", note, size, max(pointers, 4))


def _in_words(size: int) -> int:
    """Bytes with the gap up to the next word, where functions begin."""
    return -(-size // _WORD) * _WORD


def entry_cycles(*, constants: bool) -> int:
    """Cycles before a routine, which may be told where its constants lie."""
    return _ENTRY_CYCLES if constants else _BRANCH_CYCLES
