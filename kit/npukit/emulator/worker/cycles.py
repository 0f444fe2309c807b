# SPDX-License-Identifier: GPL-2.0-only
"""What each instruction of a Cortex-M4F costs: Arm 100166 (Cortex-M4 TRM), tables 3-1 and 7-1, without wait states.

Where the TRM gives a range, one value stands for it: DIVIDE, REFILL, BARRIER. The hardware manual of the board repeats
these rules; both must say the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag

import capstone
from capstone import arm_const as arm

REFILL = 1
"""Cycles to refill the pipeline when the next instruction is not the one behind."""

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
_SEV = (b"\x40\xbf", b"\xaf\xf3\x04\x80")
_HINT_OR_IT = 0xBF

_decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
_decoder.detail = True


class Remark(IntFlag):
    """As `enum remark` in core/mesh.h."""

    NONE = 0
    SENDS_EVENT = 1
    CONDITIONAL = 2
    BEFORE_ACCESS = 4


@dataclass(frozen=True)
class _Instruction:
    offset: int
    size: int
    cycles: int
    accesses_memory: bool
    sends_event: bool
    conditional_after: int
    """Of an IT instruction: how many instructions are under it."""


def block_costs(code: bytes, address: int) -> list[tuple[int, int, Remark]]:
    """Instructions and cycles spent before each halfword of a block and at its end, and remarks on what starts there.

    A taken branch costs `REFILL` more, which the caller adds when the next block does not follow on.
    """
    instructions = list(_instructions(code, address))
    remarks = _remarks(instructions)
    found = [(0, 0, Remark.NONE)] * (len(code) // 2 + 1)
    count = cycles = 0
    for instruction, remark in zip(instructions, remarks, strict=True):
        first = instruction.offset // 2
        found[first] = (count, cycles, remark)
        count, cycles = count + 1, cycles + instruction.cycles
        for halfword in range(first + 1, min(first + instruction.size // 2, len(code) // 2) + 1):
            found[halfword] = (count, cycles, Remark.NONE)
    return found


def _remarks(instructions: list[_Instruction]) -> list[Remark]:
    remarks = [Remark.SENDS_EVENT if each.sends_event else Remark.NONE for each in instructions]
    for index, each in enumerate(instructions):
        under = range(index + 1, min(index + 1 + each.conditional_after, len(instructions)))
        for conditional in under:
            remarks[conditional] |= Remark.CONDITIONAL
        if any(instructions[conditional].accesses_memory for conditional in under):
            remarks[index] |= Remark.BEFORE_ACCESS
    return remarks


def _instructions(code: bytes, address: int) -> Iterator[_Instruction]:
    offset, loaded = 0, None
    while offset < len(code):
        decoded = next(_decoder.disasm(code[offset : offset + 4], address + offset, 1), None)
        halfword = int.from_bytes(code[offset : offset + 2], "little")
        if decoded is None:
            size, cycles, loaded, accesses = _size(code, offset), 1, None, False
        else:
            size, accesses = decoded.size, any(o.type == arm.ARM_OP_MEM for o in decoded.operands)
            accesses |= decoded.id in _WITH_BASE or decoded.id in _WITHOUT_BASE
            cycles, loaded = _cost(decoded, loaded)
        sends_event = code[offset : offset + size] in _SEV
        yield _Instruction(offset, size, cycles, accesses, sends_event, _conditional_after(halfword))
        offset += size


def _conditional_after(halfword: int) -> int:
    """How many instructions an IT instruction makes conditional: its mask ends with a one."""
    mask = halfword & 0xF
    if halfword >> 8 != _HINT_OR_IT or mask == 0:
        return 0
    return 4 - (mask & -mask).bit_length() + 1


def _size(code: bytes, offset: int) -> int:
    """Bytes of an instruction, from its first halfword."""
    return 4 if code[offset + 1] >> 3 in (0x1D, 0x1E, 0x1F) else 2


def _cost(instruction: capstone.CsInsn, loaded: int | None) -> tuple[int, int | None]:
    """Cycles, and the register that a single load leaves, for the next one to be pipelined behind it.

    `loaded` is that register of the instruction before, or None if it was not a single load.
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
    """Whether it follows a single load that did not make its address."""
    if loaded is None:
        return False
    memory = next((operand.mem for operand in instruction.operands if operand.type == arm.ARM_OP_MEM), None)
    return memory is not None and loaded not in (memory.base, memory.index)


def _words(instruction: capstone.CsInsn, register: capstone.arm.ArmOp) -> int:
    return 2 if _is_double(instruction, register.reg) else 1


def _is_double(instruction: capstone.CsInsn, register: int) -> bool:
    return (instruction.reg_name(register) or "").startswith("d")
