# SPDX-License-Identifier: GPL-2.0-only
"""Cycles of each instruction of a Cortex-M4F: Arm 100166 (Cortex-M4 TRM), tables 3-1 and 7-1, without wait states.

Where the TRM gives a range, a single value stands for it: `_DIVIDE`, `_BARRIER`. The hardware manual of the board has
the same rules; both must agree.
"""

from __future__ import annotations

import capstone
from capstone import arm_const as arm

_DIVIDE = 6
_BARRIER = 2
_SPECIAL_REGISTER = 2
_MULTIPLY_ACCUMULATE_FLOAT = 3
_DIVIDE_FLOAT = 14

_LOADS = frozenset(
    (
        *(arm.ARM_INS_LDR, arm.ARM_INS_LDRB, arm.ARM_INS_LDRH, arm.ARM_INS_LDRSB, arm.ARM_INS_LDRSH),
        *(arm.ARM_INS_LDRT, arm.ARM_INS_LDRBT, arm.ARM_INS_LDRHT, arm.ARM_INS_LDRSBT, arm.ARM_INS_LDRSHT),
        *(arm.ARM_INS_LDREX, arm.ARM_INS_LDREXB, arm.ARM_INS_LDREXH),
    )
)
_STORES = frozenset(
    (
        *(arm.ARM_INS_STR, arm.ARM_INS_STRB, arm.ARM_INS_STRH),
        *(arm.ARM_INS_STRT, arm.ARM_INS_STRBT, arm.ARM_INS_STRHT),
    )
)
_EXCLUSIVE_STORES = frozenset((arm.ARM_INS_STREX, arm.ARM_INS_STREXB, arm.ARM_INS_STREXH))
_WITH_BASE = frozenset(
    (
        *(arm.ARM_INS_LDM, arm.ARM_INS_LDMDB, arm.ARM_INS_STM, arm.ARM_INS_STMDB),
        *(arm.ARM_INS_VLDMIA, arm.ARM_INS_VLDMDB, arm.ARM_INS_VSTMIA, arm.ARM_INS_VSTMDB),
    )
)
_WITHOUT_BASE = frozenset((arm.ARM_INS_PUSH, arm.ARM_INS_POP, arm.ARM_INS_VPUSH, arm.ARM_INS_VPOP))
_FIXED = {
    arm.ARM_INS_LDRD: 3,
    arm.ARM_INS_STRD: 3,
    arm.ARM_INS_SDIV: _DIVIDE,
    arm.ARM_INS_UDIV: _DIVIDE,
    arm.ARM_INS_TBB: 2,
    arm.ARM_INS_TBH: 2,
    arm.ARM_INS_DSB: _BARRIER,
    arm.ARM_INS_ISB: _BARRIER,
    arm.ARM_INS_DMB: _BARRIER,
    arm.ARM_INS_MRS: _SPECIAL_REGISTER,
    arm.ARM_INS_MSR: _SPECIAL_REGISTER,
    **dict.fromkeys(_EXCLUSIVE_STORES, 2),
    **dict.fromkeys(
        (
            *(arm.ARM_INS_VMLA, arm.ARM_INS_VMLS, arm.ARM_INS_VNMLA, arm.ARM_INS_VNMLS),
            *(arm.ARM_INS_VFMA, arm.ARM_INS_VFMS, arm.ARM_INS_VFNMA, arm.ARM_INS_VFNMS),
        ),
        _MULTIPLY_ACCUMULATE_FLOAT,
    ),
    arm.ARM_INS_VDIV: _DIVIDE_FLOAT,
    arm.ARM_INS_VSQRT: _DIVIDE_FLOAT,
}


def cost(instruction: capstone.CsInsn, loaded: int | None) -> tuple[int, int | None]:
    """Cycles; and the target of a single load, behind which the next instruction may be pipelined, or None.

    `loaded`: the target of the instruction before, or None unless it was a single load.
    """
    kind, operands = instruction.id, instruction.operands
    if kind in _LOADS or kind == arm.ARM_INS_VLDR:
        return _load(instruction, loaded)
    if kind in _STORES or kind == arm.ARM_INS_VSTR:
        return _store(instruction, loaded), None
    if kind in _WITH_BASE:
        return 1 + sum(_words(instruction, operand) for operand in operands[1:]), None
    if kind in _WITHOUT_BASE:
        return 1 + sum(_words(instruction, operand) for operand in operands), None
    if kind == arm.ARM_INS_VMOV and len(operands) > 2:
        return 2, None
    return _FIXED.get(kind, 1), None


def _load(instruction: capstone.CsInsn, loaded: int | None) -> tuple[int, int | None]:
    target = instruction.operands[0].reg
    if instruction.id == arm.ARM_INS_VLDR:
        return (3 if _is_double(instruction, target) else 2), None
    cycles = 1 if _pipelined(instruction, loaded) else 2
    return cycles, None if target == arm.ARM_REG_PC else target


def _store(instruction: capstone.CsInsn, loaded: int | None) -> int:
    if instruction.id == arm.ARM_INS_VSTR:
        return 3 if _is_double(instruction, instruction.operands[0].reg) else 2
    memory = instruction.operands[1]
    has_index = memory.type == arm.ARM_OP_MEM and memory.mem.index != 0
    return 2 if has_index and not _pipelined(instruction, loaded) else 1


def _pipelined(instruction: capstone.CsInsn, loaded: int | None) -> bool:
    """True if the instruction follows a single load and does not use the result as an address."""
    return loaded is not None and loaded not in address_registers(instruction)


def _words(instruction: capstone.CsInsn, register: capstone.arm.ArmOp) -> int:
    return 2 if _is_double(instruction, register.reg) else 1


def _is_double(instruction: capstone.CsInsn, register: int) -> bool:
    return (instruction.reg_name(register) or "").startswith("d")


def address_registers(instruction: capstone.CsInsn) -> tuple[int, ...]:
    """The address registers of a single load or store."""
    memory = next((operand.mem for operand in instruction.operands if operand.type == arm.ARM_OP_MEM), None)
    return (memory.base, memory.index) if memory else ()


def accesses_memory(instruction: capstone.CsInsn) -> bool:
    single = any(operand.type == arm.ARM_OP_MEM for operand in instruction.operands)
    return single or instruction.id in _WITH_BASE or instruction.id in _WITHOUT_BASE
