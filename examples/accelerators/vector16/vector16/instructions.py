"""The instruction set, with an assembler and a disassembler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

LANES = 16
OPCODES = ("halt", "load", "store", "add", "sub", "mul", "min", "max", "addi", "mini", "maxi", "shl", "mulh", "rshr")
WITH_IMMEDIATE = ("addi", "mini", "maxi", "shl", "mulh", "rshr")
WITH_TWO_SOURCES = ("add", "sub", "mul", "min", "max")
FORMATS = {"halt": "halt", "load": "load v{d}, [p{a}]", "store": "store v{d}, [p{a}]"}


@dataclass(frozen=True)
class Instruction:
    """`d` is a register. `a` is a register, or the pointer of a load or store."""

    operation: str
    d: int = 0
    a: int = 0
    b: int = 0
    immediate: int = 0

    def __str__(self) -> str:
        if self.operation in FORMATS:
            return FORMATS[self.operation].format(d=self.d, a=self.a)
        last = f"v{self.b}" if self.operation in WITH_TWO_SOURCES else f"#{self.immediate}"
        return f"{self.operation} v{self.d}, v{self.a}, {last}"

    def words(self) -> list[int]:
        word = OPCODES.index(self.operation) | self.d << 8 | self.a << 16 | self.b << 24
        return [word, self.immediate] if self.operation in WITH_IMMEDIATE else [word]


def assemble(program: Sequence[Instruction]) -> np.ndarray:
    """The program's words, ending with `halt`."""
    return np.array([word for each in (*program, Instruction("halt")) for word in each.words()], np.int32)


def disassemble(words: Sequence[int]) -> Iterator[Instruction]:
    """The instructions up to `halt`. Raises ValueError at an invalid word."""
    rest = iter(int(word) for word in words)
    for word in rest:
        fields = [word >> shift & 0xFF for shift in (0, 8, 16, 24)]
        if fields[0] >= len(OPCODES):
            raise ValueError(f"{word:#x} is no instruction")
        operation = OPCODES[fields[0]]
        yield Instruction(operation, *fields[1:], immediate=next(rest) if operation in WITH_IMMEDIATE else 0)
        if operation == "halt":
            return
    raise ValueError("the program has no halt")
