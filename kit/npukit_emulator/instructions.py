# SPDX-License-Identifier: GPL-2.0-only
"""Instructions of a Cortex-M4F: cycles, and memory accesses with special rules.

Cycles without wait states: Arm 100166 (Cortex-M4 TRM), tables 3-1 and 7-1. Where the TRM gives a range, a single value
stands for it: division, barriers. The hardware manual of the board has the same rules; both must agree.
"""

from __future__ import annotations

import capstone
from capstone import arm_const as arm


def ids(names: str) -> frozenset[int]:
    """Capstone's numbers of instructions, by their names."""
    return frozenset(getattr(arm, f"ARM_INS_{name.upper()}") for name in names.split())


_WORD_BYTES = 4
ADDS, SUBTRACTS = ids("add addw"), ids("sub subw")
_DOWN = ids("ldmdb stmdb vldmdb vstmdb")
LISTS = _DOWN | ids("ldm stm vldmia vstmia")
"""Loads and stores of several registers at a base register."""
_STACK_LISTS = ids("ldm vldmia stmdb vstmdb")
_LOADS = ids("ldr ldrb ldrh ldrsb ldrsh ldrt ldrbt ldrht ldrsbt ldrsht ldrex ldrexb ldrexh")
_SINGLE_STORES = ids("str strb strh strt strbt strht")
_EXCLUSIVE_STORES = ids("strex strexb strexh")
_PUSHES, _POPS = ids("push vpush"), ids("pop vpop")
_SEVERAL_WORDS = LISTS | _PUSHES | _POPS
_STORES = _SINGLE_STORES | _EXCLUSIVE_STORES | _PUSHES | ids("strd stm stmdb vstr vstmia vstmdb")
_OF_ONE_REGISTER = ids("ldrd strd ldrex strex vldr vstr")
_ALWAYS_ALIGNED = (arm.ARM_REG_SP, arm.ARM_REG_PC)
_CYCLES = {
    **dict.fromkeys(ids("tbb tbh dsb isb dmb mrs msr") | _EXCLUSIVE_STORES, 2),
    **dict.fromkeys(ids("ldrd strd vmla vmls vnmla vnmls vfma vfms vfnma vfnms"), 3),
    **dict.fromkeys(ids("sdiv udiv"), 6),
    **dict.fromkeys(ids("vdiv vsqrt"), 14),
}


def cost(instruction: capstone.CsInsn, loaded: int | None) -> tuple[int, int | None]:
    """Cycles; and the target of a single load, behind which the next instruction may be pipelined, or None. `loaded`:
    the target of the instruction before, or None unless it was a single load."""
    kind, operands = instruction.id, instruction.operands
    if kind in (arm.ARM_INS_VLDR, arm.ARM_INS_VSTR):
        return 1 + list_words(instruction, operands[:1]), None
    if kind in _LOADS:
        target = operands[0].reg
        return 1 if _pipelined(instruction, loaded) else 2, None if target == arm.ARM_REG_PC else target
    if kind in _SINGLE_STORES:
        has_index = operands[1].type == arm.ARM_OP_MEM and operands[1].mem.index != 0
        return 2 if has_index and not _pipelined(instruction, loaded) else 1, None
    if kind in LISTS:
        return 1 + list_words(instruction, operands[1:]), None
    if kind in _PUSHES or kind in _POPS:
        return 1 + list_words(instruction, operands), None
    if kind == arm.ARM_INS_VMOV and len(operands) > 2:
        return 2, None
    return _CYCLES.get(kind, 1), None


def _pipelined(instruction: capstone.CsInsn, loaded: int | None) -> bool:
    """True if the instruction follows a single load and does not use the result as an address."""
    return loaded is not None and loaded not in address_registers(instruction)


def list_words(instruction: capstone.CsInsn, registers: list[capstone.arm.ArmOp]) -> int:
    """Words of registers; a register `d...` has two."""
    return len(registers) + sum((instruction.reg_name(each.reg) or "").startswith("d") for each in registers)


def memory_operand(instruction: capstone.CsInsn) -> capstone.arm.ArmOpMem | None:
    return next((operand.mem for operand in instruction.operands if operand.type == arm.ARM_OP_MEM), None)


def address_registers(instruction: capstone.CsInsn) -> tuple[int, ...]:
    """The address registers of a single load or store."""
    memory = memory_operand(instruction)
    return (memory.base, memory.index) if memory else ()


def accesses_memory(instruction: capstone.CsInsn) -> bool:
    return memory_operand(instruction) is not None or instruction.id in _SEVERAL_WORDS


def stores(instruction: capstone.CsInsn) -> bool:
    return instruction.id in _STORES


def word_base(instruction: capstone.CsInsn) -> int | None:
    """The base register that must be a multiple of 4, otherwise the instruction faults. None: no condition. Offsets are
    multiples of 4 in all of these instructions; SP and PC are always aligned."""
    register = None
    if instruction.id in LISTS:
        register = instruction.operands[0].reg
    elif instruction.id in _OF_ONE_REGISTER and (memory := memory_operand(instruction)):
        register = memory.base
    return None if register in _ALWAYS_ALIGNED else register


def list_growth(instruction: capstone.CsInsn) -> int:
    """Bytes that a list adds to the base register."""
    size = _WORD_BYTES * list_words(instruction, instruction.operands[1:])
    return -size if instruction.id in _DOWN else size


def stack_growth(instruction: capstone.CsInsn) -> int:
    """Bytes by which the stack pointer goes down (negative: up); 0 if not stated in the instruction."""
    kind, operands = instruction.id, instruction.operands
    if kind in _PUSHES or kind in _POPS:
        size = _WORD_BYTES * list_words(instruction, operands)
        return size if kind in _PUSHES else -size
    if not operands or operands[0].reg != arm.ARM_REG_SP:
        memory = memory_operand(instruction)  # a push of a single register: `STR Rt, [SP, #-n]!` and similar
        if memory is None or memory.base != arm.ARM_REG_SP or not instruction.writeback:
            return 0
        return max(-memory.disp, 0)
    if kind in _STACK_LISTS:
        return -list_growth(instruction) if instruction.writeback else 0
    if kind in SUBTRACTS or kind in ADDS:
        last = operands[-1]
        amount = last.imm if last.type == arm.ARM_OP_IMM and operands[-2].reg == arm.ARM_REG_SP else 0
        return amount if kind in SUBTRACTS else -amount
    return 0
