"""A Cortex-M4 in a process of its own (Unicorn is GPL), spoken to with pickles over the standard streams.

A request is (code, entry, [(address, size to map)], [(address, bytes to write)], arguments, [(address, size to read)]);
the answer is (memory read, instructions executed, stack bytes used, error). Instructions are those of each executed
basic block, as capstone counts them.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections import Counter
from typing import Any

from capstone import CS_ARCH_ARM, CS_MODE_MCLASS, CS_MODE_THUMB, Cs
from unicorn import UC_ARCH_ARM, UC_HOOK_BLOCK, UC_MODE_THUMB
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
    uc, blocks = _machine(regions), Counter()
    for address, data in ((CODE, code), *writes):
        uc.mem_write(address, data)
    _pass_arguments(uc, arguments)
    uc.hook_add(UC_HOOK_BLOCK, lambda _uc, address, size, _: blocks.update([(address, size)]))
    try:
        uc.emu_start(entry | 1, RETURN)
    except UcError as error:
        return [], 0, 0, str(error)
    stack = bytes(uc.mem_read(STACK - STACK_BYTES, STACK_BYTES - 0x100)).lstrip(PAINT)
    return [bytes(uc.mem_read(a, n)) for a, n in reads], _instructions(code, blocks), len(stack), ""


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
