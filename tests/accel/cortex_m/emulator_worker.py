"""A Cortex-M4 in a process of its own (Unicorn is GPL), spoken to with pickles over the standard streams.

A request is (code, entry, [(address, size to map)], [(address, bytes to write)], arguments, [(address, size to read)]);
the answer is (memory read, instructions executed, stack bytes used, error). Instructions are those of each executed
basic block, as capstone counts them. A load or store of several words off a word is an error: Unicorn lets it pass,
a Cortex-M4 faults.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections import Counter
from typing import Any

from capstone import CS_ARCH_ARM, CS_MODE_MCLASS, CS_MODE_THUMB, Cs, CsInsn
from capstone.arm import ARM_OP_MEM, ARM_REG_SP
from unicorn import UC_ARCH_ARM, UC_HOOK_BLOCK, UC_HOOK_CODE, UC_MODE_THUMB
from unicorn.arm_const import (
    UC_ARM_REG_LR,
    UC_ARM_REG_R0,
    UC_ARM_REG_R1,
    UC_ARM_REG_R2,
    UC_ARM_REG_R3,
    UC_ARM_REG_SP,
    UC_CPU_ARM_CORTEX_M4,
)
from unicorn.unicorn import Uc, UcError

Blocks = Counter[tuple[int, int]]
CODE, CODE_BYTES = 0x10000, 0x80000
FLASH, FLASH_BYTES = 0x08000000, 0x400000
RAM, RAM_BYTES = 0x20000000, 0x200000
STACK, STACK_BYTES = 0x20400000, 0x10000
RETURN = 0xF000
PAINT = b"\xa5"
_REGISTERS = (UC_ARM_REG_R0, UC_ARM_REG_R1, UC_ARM_REG_R2, UC_ARM_REG_R3)
_TOP = STACK - 0x100


Answer = tuple[list[bytes], int, int, str]


def run(code: bytes, entry: int, regions: Any, writes: Any, arguments: list[int], reads: Any) -> Answer:
    uc, blocks, misaligned = _machine(regions), Counter(), []
    for address, data in ((CODE, code), *writes):
        uc.mem_write(address, data)
    _pass_arguments(uc, arguments)
    uc.hook_add(UC_HOOK_BLOCK, lambda _uc, address, size, _: blocks.update([(address, size)]))
    _watch_alignment(uc, code, misaligned)
    try:
        uc.emu_start(entry | 1, RETURN)
    except UcError as error:
        return [], 0, 0, str(error)
    if misaligned:
        return [], 0, 0, f"misaligned: {misaligned[0]}"
    stack = bytes(uc.mem_read(STACK - STACK_BYTES, STACK_BYTES - 0x100)).lstrip(PAINT)
    return [bytes(uc.mem_read(a, n)) for a, n in reads], _instructions(code, blocks), len(stack), ""


def _watch_alignment(uc: Uc, code: bytes, found: list[str]) -> None:
    """Stop at the first load or store of several words off a word, and say which it was."""
    disassembler = Cs(CS_ARCH_ARM, CS_MODE_THUMB | CS_MODE_MCLASS)
    disassembler.detail = True
    for instruction in disassembler.disasm(code, CODE):
        place = _words_address(instruction)
        if place is None:
            continue

        def look(uc: Uc, address: int, _size: int, place: tuple[int, int, str] = place) -> None:
            base, offset, text = place
            if (uc.reg_read(base) + offset) % 4:
                found.append(f"{address:#x} {text}")
                uc.emu_stop()

        uc.hook_add(UC_HOOK_CODE, look, place, begin=instruction.address, end=instruction.address)


def _words_address(instruction: CsInsn) -> tuple[int, int, str] | None:
    """Base register and offset of an instruction that moves several words; the stack pointer is never off a word."""
    text = f"{instruction.mnemonic} {instruction.op_str}"
    if instruction.mnemonic.startswith(("ldrd", "strd")):
        memory = next(operand.mem for operand in instruction.operands if operand.type == ARM_OP_MEM)
        found = memory.base, memory.disp, text
    elif instruction.mnemonic.startswith(("ldm", "stm")):
        found = instruction.operands[0].reg, 0, text
    else:
        return None
    return None if found[0] == ARM_REG_SP else found


def _machine(more: Any) -> Uc:
    uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB, UC_CPU_ARM_CORTEX_M4)
    regions = ((RETURN, 0x1000), (CODE, CODE_BYTES), (FLASH, FLASH_BYTES), (RAM, RAM_BYTES))
    for address, size in (*regions, *more, (STACK - STACK_BYTES, STACK_BYTES)):
        uc.mem_map(address, size)
    uc.mem_write(STACK - STACK_BYTES, PAINT * STACK_BYTES)
    return uc


def _pass_arguments(uc: Uc, arguments: list[int]) -> None:
    padded = arguments + [0] * 8
    for register, value in zip(_REGISTERS, padded, strict=False):
        uc.reg_write(register, value)
    uc.mem_write(_TOP, struct.pack("<4I", *padded[4:8]))
    uc.reg_write(UC_ARM_REG_SP, _TOP)
    uc.reg_write(UC_ARM_REG_LR, RETURN | 1)


def _instructions(code: bytes, blocks: Blocks) -> int:
    disassembler = Cs(CS_ARCH_ARM, CS_MODE_THUMB | CS_MODE_MCLASS)
    total = 0
    for (address, size), times in blocks.items():
        inside = code[address - CODE : address - CODE + size]
        total += times * sum(1 for _ in disassembler.disasm_lite(inside, address))
    return total


def main() -> None:
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(run(*request), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
