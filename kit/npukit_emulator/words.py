# SPDX-License-Identifier: GPL-2.0-only
"""Registers that must be multiples of 4 at the start of a block, otherwise an access of the block faults.

A register's value is followed through the block as the value of a register at the start plus a number, as far as the
instructions state it. An access through a register of unknown value is checked at each execution.
"""

from __future__ import annotations

from dataclasses import dataclass

import capstone
from capstone import arm_const as arm

from npukit_emulator.instructions import ADDS, LISTS, SUBTRACTS, ids, list_growth, memory_operand, word_base

MOST_NEEDS = 4
"""Most needs of a block, as in `struct joint` in core/code.h."""

_WORD_BYTES = 4
_MOVES = ids("mov movw movs")
_SHIFT_OF_WORDS = 2


@dataclass(frozen=True)
class Value:
    """The value of a register at the start of the block (None: 0) plus a number."""

    register: int | None
    added: int = 0

    def plus(self, number: int) -> Value:
        return Value(self.register, self.added + number)


@dataclass(frozen=True)
class Need:
    """`register` plus `added` must be a multiple of 4 at the start of the block, for the access at `offset`."""

    register: int
    added: int
    offset: int


class Words:
    """Known values of the registers during a walk through a block."""

    def __init__(self) -> None:
        self._values: dict[int, Value | None] = {}
        self.needs: list[Need] = []

    def access(self, instruction: capstone.CsInsn, offset: int, *, conditional: bool) -> int | None:
        """Note an instruction's need. Returns the base register if the access must be checked at each execution."""
        base = word_base(instruction)
        if base is None:
            return None
        value = None if conditional else self._value(base)
        known = value is not None and (
            value.added % _WORD_BYTES == 0 if value.register is None else self._need(value, offset)
        )
        if known:
            return None
        if not conditional:
            self._values[base] = Value(None)  # a multiple of 4 from here on, or the PE has stopped
        return base

    def follow(self, instruction: capstone.CsInsn, *, conditional: bool) -> None:
        """Update the registers with the results of an instruction."""
        after = {**dict.fromkeys(instruction.regs_access()[1]), **self._results(instruction)}
        for register, value in after.items():
            same = value is not None and value == self._value(register)
            self._values[register] = value if same or not conditional else None

    @property
    def keeps(self) -> bool:
        """True if needs that hold at the start of the block hold again at the end."""
        ends = [(need, self._value(need.register)) for need in self.needs]
        return all(
            end is not None and end.register == need.register and end.added % _WORD_BYTES == 0 for need, end in ends
        )

    def _need(self, value: Value, offset: int) -> bool:
        """Add a need. False if there is no room."""
        assert value.register is not None
        need = Need(value.register, value.added, offset)
        known = any(
            each.register == need.register and (each.added - need.added) % _WORD_BYTES == 0 for each in self.needs
        )
        if not known and len(self.needs) < MOST_NEEDS:
            self.needs.append(need)
        return known or need in self.needs

    def _value(self, register: int) -> Value | None:
        fixed = Value(None) if register in (arm.ARM_REG_SP, arm.ARM_REG_PC) else Value(register)
        return self._values.get(register, fixed)

    def _results(self, instruction: capstone.CsInsn) -> dict[int, Value | None]:
        """Values of the registers that an instruction sets, as far as they are known."""
        operands = instruction.operands
        if instruction.id in ADDS or instruction.id in SUBTRACTS:
            return {operands[0].reg: self._sum(instruction)}
        if instruction.writeback and (moved := self._written_back(instruction)):
            return moved
        if instruction.id in _MOVES and len(operands) == 2 and not operands[1].shift.type:
            return {operands[0].reg: self._operand(operands[1])}
        if instruction.id == arm.ARM_INS_LSL and operands[-1].type == arm.ARM_OP_IMM:
            return {operands[0].reg: Value(None) if operands[-1].imm >= _SHIFT_OF_WORDS else None}
        if instruction.id == arm.ARM_INS_ADR:
            return {operands[0].reg: Value(None, operands[-1].imm)}
        if instruction.id == arm.ARM_INS_MOVT:
            return {operands[0].reg: self._value(operands[0].reg)}
        return {}

    def _sum(self, instruction: capstone.CsInsn) -> Value | None:
        first, second = instruction.operands[-2:]
        one, other = self._operand(first), self._operand(second)
        if one is None or other is None:
            return None
        if other.register is None:
            return one.plus(-other.added if instruction.id in SUBTRACTS else other.added)
        return other.plus(one.added) if one.register is None and instruction.id in ADDS else None

    def _operand(self, operand: capstone.arm.ArmOp) -> Value | None:
        if operand.type == arm.ARM_OP_IMM:
            return Value(None, operand.imm)
        if operand.type != arm.ARM_OP_REG:
            return None
        if operand.shift.type == arm.ARM_SFT_LSL and operand.shift.value >= _SHIFT_OF_WORDS:
            return Value(None)
        return None if operand.shift.type else self._value(operand.reg)

    def _written_back(self, instruction: capstone.CsInsn) -> dict[int, Value | None]:
        first, last = instruction.operands[0], instruction.operands[-1]
        if instruction.id in LISTS:
            return {first.reg: self._moved(first.reg, list_growth(instruction))}
        memory = memory_operand(instruction)
        if memory is None:
            return {}
        by = memory.disp if last.type == arm.ARM_OP_MEM else last.imm if last.type == arm.ARM_OP_IMM else None
        return {memory.base: None if by is None else self._moved(memory.base, by)}

    def _moved(self, register: int, by: int) -> Value | None:
        value = self._value(register)
        return None if value is None else value.plus(by)
