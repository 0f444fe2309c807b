# SPDX-License-Identifier: GPL-2.0-only
"""Decoded blocks of instructions for the C core: costs up to each instruction, and conditions to check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag

import capstone
from capstone import arm_const as arm

from npukit_emulator.instructions import accesses_memory, address_registers, cost, stack_growth, stores
from npukit_emulator.words import Need, Words

_SEV = (b"\x40\xbf", b"\xaf\xf3\x04\x80")
_HINT_OR_IT = 0xBF
_ANY_OTHER_REGISTER = -1
_CORE_REGISTERS = (*range(arm.ARM_REG_R0, arm.ARM_REG_R12 + 1), arm.ARM_REG_SP, arm.ARM_REG_LR, arm.ARM_REG_PC)

_decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
_decoder.detail = True


class Remark(IntFlag):
    """Properties of an instruction: `enum remark` of core/code.h."""

    NONE = 0
    SENDS_EVENT = 1
    CONDITIONAL = 2
    BEFORE_ACCESS = 4
    NEEDS_WORDS = 16
    STORES = 32
    BARRIER = 64


_BASE_REGISTER_SHIFT = 12


@dataclass(frozen=True)
class BlockCosts:
    """Costs of a block. `progress`: instructions and cycles before each halfword and at the end, and remarks on the
    instruction there.

    The other fields are as in `struct joint` of core/code.h: the block's relation to neighbours. A taken branch
    costs `refill_cycles` more; the core adds them when the next block does not follow in memory.
    """

    progress: list[tuple[int, int, int]]
    first_can_follow: bool
    first_address: int
    last_loaded: int
    stack_bytes: int
    stack_at: int
    fpu_at: int | None
    needs: list[Need]
    keeps_needs: bool


@dataclass(frozen=True)
class _Instruction:
    offset: int
    size: int
    cycles: int = 1
    loaded: int | None = None
    """The register of a single load, behind which the next instruction may be pipelined."""
    can_follow: bool = False
    address: tuple[int, ...] = ()
    accesses_memory: bool = False
    remark: int = Remark.NONE
    stack_growth: int = 0
    decoded: capstone.CsInsn | None = None
    conditional_after: int = 0
    """The number of instructions made conditional by this IT instruction."""
    uses_fpu: bool = False


def block_costs(code: bytes, address: int, others: Mapping[str, int]) -> BlockCosts:
    """The costs of a block. `others`: cycles of instructions, by name, that differ from a Cortex-M4's."""
    instructions = list(_instructions(code, address, others))
    first, last = instructions[0], instructions[-1]
    conditional = {  # indices of the instructions under an IT instruction
        conditional
        for index, each in enumerate(instructions)
        for conditional in range(index + 1, min(index + 1 + each.conditional_after, len(instructions)))
    }
    words, looked_at = _words(instructions, conditional)
    depth = deepest = at = 0
    for each in instructions:
        depth += each.stack_growth
        if depth > deepest:
            deepest, at = depth, each.offset
    return BlockCosts(
        _progress(instructions, _remarks(instructions, conditional, looked_at), len(code) // 2),
        first.can_follow,
        _bits(first.address),
        _bits(() if last.loaded is None else (last.loaded,)),
        deepest,
        at,
        next((each.offset for each in instructions if each.uses_fpu), None),
        words.needs,
        words.keeps,
    )


def _progress(instructions: list[_Instruction], remarks: list[int], halfwords: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = [(0, 0, Remark.NONE)] * (halfwords + 1)
    count = cycles = 0
    for instruction, remark in zip(instructions, remarks, strict=True):
        first = instruction.offset // 2
        found[first] = (count, cycles, remark)
        count, cycles = count + 1, cycles + instruction.cycles
        for halfword in range(first + 1, min(first + instruction.size // 2, halfwords) + 1):
            found[halfword] = (count, cycles, Remark.NONE)
    return found


def _words(instructions: list[_Instruction], conditional: set[int]) -> tuple[Words, dict[int, int]]:
    """The block's needs; and, by index, base registers of accesses to check at each execution."""
    words, looked_at = Words(), dict[int, int]()
    for index, each in enumerate(instructions):
        if each.decoded is None:
            continue
        base = words.access(each.decoded, each.offset, conditional=index in conditional)
        if base is not None:
            looked_at[index] = base
        words.follow(each.decoded, conditional=index in conditional)
    return words, looked_at


def _remarks(instructions: list[_Instruction], conditional: set[int], looked_at: dict[int, int]) -> list[int]:
    remarks = [each.remark for each in instructions]
    for index, each in enumerate(instructions):
        under = range(index + 1, min(index + 1 + each.conditional_after, len(instructions)))
        if any(instructions[number].accesses_memory for number in under):
            remarks[index] |= Remark.BEFORE_ACCESS
        remarks[index] |= Remark.CONDITIONAL if index in conditional else Remark.NONE
        if index in looked_at:
            remarks[index] |= Remark.NEEDS_WORDS | core_register(looked_at[index]) << _BASE_REGISTER_SHIFT
    return remarks


def _instructions(code: bytes, address: int, others: Mapping[str, int]) -> Iterator[_Instruction]:
    offset, loaded = 0, None
    while offset < len(code):
        decoded = next(_decoder.disasm(code[offset : offset + 4], address + offset, 1), None)
        if decoded:
            instruction = _described(decoded, code, offset, loaded, others)
        else:  # only Unicorn can decode it: taken to access memory
            size = 4 if code[offset + 1] >> 3 in (0x1D, 0x1E, 0x1F) else 2
            instruction = _Instruction(offset, size, accesses_memory=True, uses_fpu=_uses_fpu(code, offset))
        yield instruction
        loaded = instruction.loaded
        offset += instruction.size


def _described(
    decoded: capstone.CsInsn, code: bytes, offset: int, loaded: int | None, others: Mapping[str, int]
) -> _Instruction:
    cycles, loads = cost(decoded, loaded)
    other = others.get(str(decoded.insn_name()))
    remark = Remark.STORES if stores(decoded) else Remark.NONE
    if decoded.id == arm.ARM_INS_DSB:
        remark |= Remark.BARRIER
    if code[offset : offset + decoded.size] in _SEV:
        remark |= Remark.SENDS_EVENT
    return _Instruction(
        offset,
        decoded.size,
        cycles if other is None else other,
        loads if other is None else None,
        other is None and cost(decoded, _ANY_OTHER_REGISTER)[0] < cost(decoded, None)[0],
        address_registers(decoded),
        accesses_memory(decoded),
        remark,
        stack_growth(decoded),
        decoded,
        _conditional_after(int.from_bytes(code[offset : offset + 2], "little")),
        _uses_fpu(code, offset),
    )


def _uses_fpu(code: bytes, offset: int) -> bool:
    """True for instructions of the coprocessors 10 and 11: Armv7-M, section A5.3.18."""
    first, second = (int.from_bytes(code[at : at + 2], "little") for at in (offset, offset + 2))
    return first & 0xEC00 == 0xEC00 and second & 0x0E00 == 0x0A00


def _conditional_after(halfword: int) -> int:
    """The number of instructions made conditional by an IT instruction, whose mask ends with a 1."""
    mask = halfword & 0xF
    if halfword >> 8 != _HINT_OR_IT or mask == 0:
        return 0
    return 4 - (mask & -mask).bit_length() + 1


def core_register(register: int) -> int:
    """The register's number, 0 to 15."""
    return _CORE_REGISTERS.index(register)


def _bits(registers: tuple[int, ...]) -> int:
    return sum({1 << _CORE_REGISTERS.index(register) for register in registers if register in _CORE_REGISTERS})
