# SPDX-License-Identifier: GPL-2.0-only
"""Memory accesses with special rules on a Cortex-M4: pairs and lists of words, and the stack."""

from __future__ import annotations

import capstone
from capstone import arm_const as arm

_WORD_BYTES = 4
_OF_ONE_REGISTER = frozenset(
    (
        *(arm.ARM_INS_LDRD, arm.ARM_INS_STRD, arm.ARM_INS_LDREX, arm.ARM_INS_STREX),
        *(arm.ARM_INS_VLDR, arm.ARM_INS_VSTR),
    )
)
_LISTS = frozenset(
    (
        *(arm.ARM_INS_LDM, arm.ARM_INS_LDMDB, arm.ARM_INS_STM, arm.ARM_INS_STMDB),
        *(arm.ARM_INS_VLDMIA, arm.ARM_INS_VLDMDB, arm.ARM_INS_VSTMIA, arm.ARM_INS_VSTMDB),
    )
)
_PUSHES = frozenset((arm.ARM_INS_PUSH, arm.ARM_INS_VPUSH))
_POPS = frozenset((arm.ARM_INS_POP, arm.ARM_INS_VPOP))
_DOWN = frozenset((arm.ARM_INS_STMDB, arm.ARM_INS_VSTMDB))
_UP = frozenset((arm.ARM_INS_LDM, arm.ARM_INS_VLDMIA))
_SUBTRACTS = frozenset((arm.ARM_INS_SUB, arm.ARM_INS_SUBW))
_ADDS = frozenset((arm.ARM_INS_ADD, arm.ARM_INS_ADDW))
_STORES = frozenset(
    (
        *(arm.ARM_INS_STR, arm.ARM_INS_STRB, arm.ARM_INS_STRH, arm.ARM_INS_STRD),
        *(arm.ARM_INS_STRT, arm.ARM_INS_STRBT, arm.ARM_INS_STRHT),
        *(arm.ARM_INS_STREX, arm.ARM_INS_STREXB, arm.ARM_INS_STREXH),
        *(arm.ARM_INS_STM, arm.ARM_INS_STMDB, arm.ARM_INS_PUSH),
        *(arm.ARM_INS_VSTR, arm.ARM_INS_VSTMIA, arm.ARM_INS_VSTMDB, arm.ARM_INS_VPUSH),
    )
)
_ALWAYS_ALIGNED = (arm.ARM_REG_SP, arm.ARM_REG_PC)


def word_base(instruction: capstone.CsInsn) -> int | None:
    """The base register that must be a multiple of 4, otherwise the instruction faults. None: no condition.

    Offsets are multiples of 4 in all of these instructions; SP and PC are always aligned.
    """
    if instruction.id in _LISTS:
        register = instruction.operands[0].reg
    elif instruction.id in _OF_ONE_REGISTER:
        register = next(operand.mem.base for operand in instruction.operands if operand.type == arm.ARM_OP_MEM)
    else:
        return None
    return None if register in _ALWAYS_ALIGNED else register


def stores(instruction: capstone.CsInsn) -> bool:
    return instruction.id in _STORES


def stack_growth(instruction: capstone.CsInsn) -> int:
    """Bytes by which the stack pointer goes down (negative: up); 0 if not stated in the instruction."""
    kind, operands = instruction.id, instruction.operands
    if kind in _PUSHES or kind in _POPS:
        bytes_moved = list_bytes(instruction, operands)
        return bytes_moved if kind in _PUSHES else -bytes_moved
    if not operands or operands[0].reg != arm.ARM_REG_SP:
        return _single_push(instruction)
    if kind in _DOWN or kind in _UP:
        bytes_moved = list_bytes(instruction, operands[1:]) if instruction.writeback else 0
        return bytes_moved if kind in _DOWN else -bytes_moved
    if kind in _SUBTRACTS or kind in _ADDS:
        last = operands[-1]
        amount = last.imm if last.type == arm.ARM_OP_IMM and operands[-2].reg == arm.ARM_REG_SP else 0
        return amount if kind in _SUBTRACTS else -amount
    return 0


def _single_push(instruction: capstone.CsInsn) -> int:
    """A push of a single register: `STR Rt, [SP, #-n]!` and similar."""
    memory = next((operand.mem for operand in instruction.operands if operand.type == arm.ARM_OP_MEM), None)
    if memory is None or memory.base != arm.ARM_REG_SP or not instruction.writeback:
        return 0
    return max(-memory.disp, 0)


def list_bytes(instruction: capstone.CsInsn, registers: list[capstone.arm.ArmOp]) -> int:
    doubles = sum((instruction.reg_name(register.reg) or "").startswith("d") for register in registers)
    return _WORD_BYTES * (len(registers) + doubles)
