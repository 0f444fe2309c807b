"""Bytes and cycles of the emitted Thumb-2 instructions.

Cycles are from the Cortex-M4 Technical Reference Manual, without wait states. A load directly after a load costs one
cycle instead of two, unless the second address comes from the first load. Helium instructions take two beats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

_LOADS = frozenset({"ldr", "ldrb", "ldrh", "ldrsb", "ldrsh"})
_STORES = frozenset({"str", "strb", "strh"})
_BRANCHES = frozenset({"b", "bne", "bls", "bgt"})
_VECTOR_LOADS = ("vldr", "vstr")
_NUMBERS = {"sp": 13, "lr": 14, "pc": 15}
_LOW = 8
_WORDS_OF_A_VECTOR = 4


@dataclass(frozen=True)
class Instruction:
    """A parsed instruction."""

    mnemonic: str
    operands: tuple[str, ...]

    @cached_property
    def loads(self) -> bool:
        return self.mnemonic in _LOADS

    @cached_property
    def branches(self) -> bool:
        return self.mnemonic in _BRANCHES

    @cached_property
    def is_helium(self) -> bool:
        """True for an instruction on vectors."""
        return self.mnemonic[0] == "v" and not self.registers_are_listed

    @property
    def registers_are_listed(self) -> bool:
        return self.operands[-1:] != () and self.operands[-1].startswith("{")

    @property
    def registers_listed(self) -> int:
        return len(_listed(self.operands[-1]))

    @cached_property
    def accesses(self) -> int:
        """Words, or parts of words, read from or written to memory."""
        if self.registers_are_listed:
            return self.registers_listed
        if self.mnemonic.startswith(_VECTOR_LOADS):
            return _WORDS_OF_A_VECTOR
        return {"ldrd": 2, "strd": 2}.get(self.mnemonic, int(self.loads or self.mnemonic in _STORES))

    @property
    def address_registers(self) -> tuple[str, ...]:
        """The base and the index of an address."""
        return tuple(re.findall(r"\b(?:r\d+|sp|lr)\b", self.operands[1])) if len(self.operands) > 1 else ()


@cache
def parse(text: str) -> Instruction:
    mnemonic, _, rest = text.partition(" ")
    operands = re.findall(r"\[[^\]]*\]!?|\{[^}]*\}|[^,\s][^,]*", rest)
    return Instruction(mnemonic, tuple(operand.strip() for operand in operands))


@cache
def cycles(instruction: Instruction, before: Instruction | None) -> int:
    """Cycles of an instruction after `before`. A taken branch costs one more."""
    name = instruction.mnemonic
    if instruction.loads:
        return (
            1 if before is not None and before.loads and before.operands[0] not in instruction.address_registers else 2
        )
    if instruction.is_helium:  # two beats of 64 bits; one overlaps if just one of the two instructions accesses memory
        overlaps = (
            before is not None
            and before.is_helium
            and name.startswith(_VECTOR_LOADS) != before.mnemonic.startswith(_VECTOR_LOADS)
        )
        return 1 if overlaps else 2
    if instruction.registers_are_listed:
        return 1 + instruction.registers_listed + ("pc" in instruction.operands[-1])
    if name in ("ldrd", "strd"):
        return 3
    if name in _STORES:
        indexed = re.match(r"\[\w+, *r", instruction.operands[1]) is not None
        return 2 if indexed and not (before is not None and before.loads) else 1
    return {"sdiv": 6, "udiv": 6, "mla": 2, "mls": 2, "bx": 2}.get(name, 1)


@cache
def size(instruction: Instruction) -> int:
    """Bytes of the encoding chosen by both assemblers."""
    rule = _NARROW.get(instruction.mnemonic)
    return 2 if rule is not None and rule(instruction.operands) else 4


def _narrow_add(operands: tuple[str, ...]) -> bool:
    if len(operands) == 2:
        operands = (operands[0], *operands)
    target, first, second = operands[:3]
    if len(operands) > 3:
        return False
    if not second.startswith("#"):
        return target in (first, second)
    if first != "sp":
        return False
    limit = 508 if target == "sp" else 1020
    return (target == "sp" or _low(target)) and _fits(second, limit, 4)


def _narrow_word(operands: tuple[str, ...]) -> bool:
    return _narrow_offset(operands, 124, 4) or (
        _low(operands[0]) and len(operands) == 2 and _base(operands[1]) == "sp" and _offset_fits(operands[1], 1020, 4)
    )


def _narrow_offset(operands: tuple[str, ...], limit: int, step: int) -> bool:
    if len(operands) != 2 or not _low(operands[0]) or not _low(_base(operands[1])):
        return False
    return _offset_fits(operands[1], limit, step)


def _narrow_indexed(operands: tuple[str, ...]) -> bool:
    inside = [part.strip() for part in operands[1].strip("[]").split(",")]
    return len(operands) == 2 and len(inside) == 2 and all(_low(r) for r in (operands[0], *inside))


def _narrow_load_many(operands: tuple[str, ...]) -> bool:
    base = operands[0].rstrip("!")
    listed = _listed(operands[1])
    return operands[0].endswith("!") and _low(base) and max(listed) < _LOW and _number(base) not in listed


def _low(register: str) -> bool:
    return register[0] == "r" and int(register[1:]) < _LOW


def _number(register: str) -> int:
    return _NUMBERS.get(register) or int(register[1:])


def _base(address: str) -> str:
    return address.strip("[]!").split(",")[0].strip()


def _offset_fits(address: str, limit: int, step: int) -> bool:
    if not address.endswith("]"):
        return False
    _, _, offset = address.strip("[]").partition(",")
    offset = offset.strip()
    return not offset or (offset.startswith("#") and _fits(offset, limit, step))


def _fits(immediate: str, limit: int, step: int) -> bool:
    value = int(immediate.lstrip("#"), 0)
    return 0 <= value <= limit and value % step == 0


def _listed(registers: str) -> list[int]:
    found: list[int] = []
    for part in registers.strip("{}").split(","):
        first, _, last = part.strip().partition("-")
        found += range(_number(first), _number(last or first) + 1)
    return found


_NARROW: Mapping[str, Callable[[tuple[str, ...]], bool]] = {
    "mov": lambda o: not o[1].startswith("#"),
    "add": _narrow_add,
    "sub": lambda o: o[0] == o[1] == "sp" and o[2].startswith("#") and _fits(o[2], 508, 4),
    # In an IT block the short form leaves the flags unchanged.
    **dict.fromkeys(("subhi", "subeq"), lambda o: o[0] == o[1] and _low(o[0]) and _fits(o[2], 255, 1)),
    "ldr": _narrow_word,
    "str": _narrow_word,
    **dict.fromkeys(("ldrb", "strb"), lambda o: _narrow_offset(o, 31, 1) or _narrow_indexed(o)),
    **dict.fromkeys(("ldrh", "strh"), lambda o: _narrow_offset(o, 62, 2) or _narrow_indexed(o)),
    "ldrsb": _narrow_indexed,
    **dict.fromkeys(("ldmia", "stmia"), _narrow_load_many),
    "push": lambda o: all(number < _LOW or number == 14 for number in _listed(o[0])),
    "pop": lambda o: all(number < _LOW or number == 15 for number in _listed(o[0])),
    "cmp": lambda o: not o[1].startswith("#") or (_low(o[0]) and _fits(o[1], 255, 1)),
    **dict.fromkeys(("bx", "it", "ite", "itt"), lambda o: True),
    **dict.fromkeys(("moveq", "movgt", "movls", "movlt", "movne"), lambda o: not o[1].startswith("#") or _low(o[0])),
    "adds": lambda o: all(map(_low, o)),
    **dict.fromkeys(("lsrs", "rsbs"), lambda o: all(map(_low, o[:2]))),
    "sxtb": lambda o: all(map(_low, o)),
    "subs": lambda o: len(o) == 2 and _low(o[0]) and _fits(o[1], 255, 1),
}
