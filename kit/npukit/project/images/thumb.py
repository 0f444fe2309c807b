"""Instructions of Arm's M profile: their effect on the stack pointer, and their branches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import capstone
from capstone import arm

from npukit.project.images.elf import THUMB, Elf
from npukit.project.images.walk import FunctionWalk, InstructionSet, StackState


def _decode(code: bytes, address: int) -> Iterator[capstone.CsInsn]:
    """Instructions up to the first invalid one. Helium unknown to capstone becomes NOPs of the same length."""
    at = 0
    while at < len(code):
        before = at
        for instruction in _MACHINE.disasm(code[at:], address + at):
            yield instruction
            at += instruction.size
        if _is_helium(code[at : at + 4]):
            yield next(_MACHINE.disasm(_NOP, address + at))
            at += len(_NOP)
        elif at == before:
            return


def _is_helium(code: bytes) -> bool:
    """True for the Helium instructions in generated kernels: VMOV of two sums into a vector, VCTP."""
    word = int.from_bytes(code[:2], "little") << 16 | int.from_bytes(code[2:], "little")
    return word & 0xFFA01FC0 == 0xEC000F00 or word & 0xFFC0F801 == 0xF000E801


def _after(walk: FunctionWalk, instruction: capstone.CsInsn, state: StackState) -> StackState:
    """The stack after the instruction."""
    change = _pushed(instruction)
    if change is not None:
        # A conditional pop either returns, or is not executed.
        undone = change < 0 and _conditional(instruction)
        return state if undone else replace(_forgetting(instruction, state), depth=state.depth + change)
    written = _stack_registers(instruction)
    known = _moved(instruction, state) if written else state
    if known is None and "sp" in written:
        raise walk.puzzled(instruction.address, f"sets the stack pointer by `{_text(instruction)}`")
    return known or _forgetting(instruction, state)


def _stack_registers(instruction: capstone.CsInsn) -> set[str]:
    """The stack pointer, and possible pointers into the stack, if written by the instruction."""
    return {_STACK_REGISTERS[register] for register in _written(instruction) if register in _STACK_REGISTERS}


def _written(instruction: capstone.CsInsn) -> tuple[int, ...]:
    """The registers that the instruction writes. Cached: capstone is slow here, and most instructions repeat."""
    encoding = bytes(instruction.bytes)
    if encoding not in _WRITTEN:
        _WRITTEN[encoding] = tuple(instruction.regs_access()[1])
    return _WRITTEN[encoding]


def _forgetting(instruction: capstone.CsInsn, state: StackState) -> StackState:
    """The state without the written registers."""
    written = _stack_registers(instruction)
    return replace(state, pointers={name: at for name, at in state.pointers.items() if name not in written})


def _pushed(instruction: capstone.CsInsn) -> int | None:
    """Bytes by which a push moves the stack pointer, negative for a pop. None for other instructions."""
    name = instruction.insn_name()
    if name in ("push", "vpush", "pop", "vpop"):
        size = sum(_register_bytes(instruction, operand.reg) for operand in instruction.operands)
        return size if name.endswith("push") else -size
    if name in ("stmdb", "vstmdb", "ldm", "vldmia") and instruction.op_str.startswith("sp!"):
        size = sum(_register_bytes(instruction, operand.reg) for operand in instruction.operands[1:])
        return size if "stm" in name else -size
    # Loads and stores that move the stack pointer: `str r0, [sp, #-8]!`, `ldr r0, [sp], #8`.
    moved = re.search(r"\[sp, #(-?(?:0x)?[0-9a-f]+)\]!|\[sp\], #(-?(?:0x)?[0-9a-f]+)", instruction.op_str)
    return -int(moved.group(1) or moved.group(2), 0) if moved else None


def _register_bytes(instruction: capstone.CsInsn, register: int) -> int:
    return 8 if str(instruction.reg_name(register)).startswith("d") else 4


def _moved(instruction: capstone.CsInsn, state: StackState) -> StackState | None:
    """The state after adding a constant to a pointer into the stack, or aligning one. None for other instructions."""
    parsed = _ARITHMETIC.fullmatch(_text(instruction))
    if parsed is None:
        return _aligned(instruction, state)
    operation, target, origin, constant = parsed.groups()
    base = _points_to(state, origin or target)
    if base is None:
        return None
    distance = int(constant, 0) if constant else 0
    return _pointing(state, target, base + distance if operation == "sub" else base - distance)


def _aligned(instruction: capstone.CsInsn, state: StackState) -> StackState | None:
    """The state after `bfc` of a pointer's n lowest bits, which moves the pointer down by at most 2^n - 4 bytes."""
    parsed = _ALIGNMENT.fullmatch(_text(instruction))
    base = _points_to(state, parsed[1]) if parsed else None
    return _pointing(state, parsed[1], base + (1 << int(parsed[2])) - _WORD) if parsed and base is not None else None


def _points_to(state: StackState, register: str) -> int | None:
    return state.depth if register == "sp" else state.pointers.get(_plain(register))


def _pointing(state: StackState, register: str, depth: int) -> StackState:
    if register == "sp":
        return replace(state, depth=depth)
    return replace(state, pointers={**state.pointers, _plain(register): depth})


def _plain(register: str) -> str:
    return "r11" if register == "fp" else register


_REGISTER = "(sp|r4|r7|fp|r11)"
_ARITHMETIC = re.compile(rf"(add|sub|mov)w? {_REGISTER}(?:, {_REGISTER})?(?:, #(0x[0-9a-f]+|[0-9]+))?")
_ALIGNMENT = re.compile(r"bfc (r4|r7|fp|r11), #0, #([0-9]+)")
_WORD = 4
"""The alignment of the stack pointer in bytes."""


def _successors(walk: FunctionWalk, instruction: capstone.CsInsn, state: StackState) -> list[int]:
    """The addresses inside the function that follow in control flow. Notes calls."""
    following = instruction.address + instruction.size
    name = instruction.insn_name()
    if name in ("tbb", "tbh"):
        return list(_table_targets(walk.elf, instruction))
    if name == "ldr" and re.fullmatch(r"pc, \[\w+, \w+, lsl #2\]", instruction.op_str):
        return list(_listed_targets(walk, instruction))
    if name in ("bl", "blx"):
        returned = [following] if walk.comes_back(following) else []
        return [*_called_inside(walk, instruction, state), *returned]
    if name in ("cbz", "cbnz"):
        return [following, instruction.operands[1].imm]
    if capstone.CS_GRP_JUMP in instruction.groups or arm.ARM_REG_PC in _written(instruction):
        return [*_jump_targets(walk, instruction, state), *([following] if _conditional(instruction) else [])]
    return [] if name == "udf" else [following]


def _called_inside(walk: FunctionWalk, instruction: capstone.CsInsn, state: StackState) -> list[int]:
    """The target of a call into the middle of a function, where the walk continues. Notes other calls."""
    target = _named_target(instruction)
    if target is not None and walk.joins(target):
        return [target]
    walk.note_call(instruction.address, state.depth, target)
    return []


def _conditional(instruction: capstone.CsInsn) -> bool:
    return instruction.cc not in (arm.ARM_CC_AL, arm.ARM_CC_INVALID)


def _jump_targets(walk: FunctionWalk, instruction: capstone.CsInsn, state: StackState) -> list[int]:
    """The targets inside the function. Other jumps are tail calls, returns, or lead into another function's middle."""
    target = _named_target(instruction)
    if target is not None:
        return walk.leave(instruction.address, state.depth, target)
    if not _returns(instruction):
        if instruction.insn_name() != "bx":
            raise walk.puzzled(instruction.address, f"jumps by `{_text(instruction)}`")
        walk.note_call(instruction.address, state.depth, None)
    return []


def _returns(instruction: capstone.CsInsn) -> bool:
    """True for `bx lr`, and for a load of pc from the stack."""
    name, operands = instruction.insn_name(), instruction.op_str
    if name in ("bx", "mov"):
        return operands in ("lr", "pc, lr")
    return (
        name == "pop" or (name == "ldm" and operands.startswith("sp!")) or (name, operands[:8]) == ("ldr", "pc, [sp]")
    )


def _named_target(instruction: capstone.CsInsn) -> int | None:
    """The address in a branch or a call. None for one through a register."""
    operand = instruction.operands[0]
    return operand.imm & ~THUMB if operand.type == arm.ARM_OP_IMM else None


def _table_targets(elf: Elf, instruction: capstone.CsInsn) -> Iterator[int]:
    """The targets of `tbb` and `tbh`. A table of half distances follows the instruction."""
    table = instruction.address + instruction.size
    width = 2 if instruction.insn_name() == "tbh" else 1
    data = elf.read(table, elf.data_from(table) - table)
    for at in range(0, len(data) - width + 1, width):
        target = table + 2 * int.from_bytes(data[at : at + width], "little")
        if target >= table + len(data):
            yield target


def _listed_targets(walk: FunctionWalk, instruction: capstone.CsInsn) -> Iterator[int]:
    """The targets of `ldr pc, [r2, r3, lsl #2]`, GCC's jump in a `switch` with a branch before its table. The table of
    addresses follows the instruction at a multiple of four."""
    table = -(-(instruction.address + instruction.size) // _WORD) * _WORD
    data = walk.elf.read(table, walk.elf.data_from(table) - table)
    listed = [int.from_bytes(data[at : at + _WORD], "little") & ~THUMB for at in range(0, len(data), _WORD)]
    yield from (target for target in listed if target in walk.code)


def _text(instruction: capstone.CsInsn) -> str:
    return f"{instruction.insn_name()} {instruction.op_str}".strip()


_NOP = bytes.fromhex("aff30080")
_WRITTEN: dict[bytes, tuple[int, ...]] = {}
"""The registers written, by an instruction's encoding."""

_STACK_REGISTERS = {arm.ARM_REG_SP: "sp", arm.ARM_REG_R4: "r4", arm.ARM_REG_R7: "r7", arm.ARM_REG_R11: "r11"}
"""The frame pointers of both compilers, and r4, which LLVM uses to align the stack to more than 8 bytes."""


_MACHINE = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
_MACHINE.detail = True

INSTRUCTIONS = InstructionSet(_decode, _after, _successors)
