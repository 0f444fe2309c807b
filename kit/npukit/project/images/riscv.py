"""RISC-V instructions: their effect on the stack pointer, and their branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import capstone

from npukit.project.images.walk import FunctionWalk, InstructionSet, StackState

_PAGE_SHIFT = 12
_WORD_BITS = 32
_PAIR_BYTES = 4
"""Bytes of `auipc`, the first instruction of a far call."""
_VECTOR_BYTES = 4
_OP_V, _FLOAT_ACCESSES, _WIDTHS = 0x57, (0x07, 0x27), (0, 5, 6)
_SUMS = frozenset(("addi", "addi16sp", "addi4spn"))
_NO_RESULT = frozenset(("sb", "sh", "sw", "swsp", "fsw", "fswsp", "j", "jr", "ret"))
_ENDS = frozenset(("ebreak", "unimp", "mret"))


@dataclass(frozen=True)
class RiscvInstruction:
    """An instruction. `name`: without the prefix of a compressed form."""

    address: int
    size: int
    name: str
    text: str

    @cached_property
    def operands(self) -> list[str]:
        return self.text.split(", ") if self.text else []

    @property
    def target(self) -> int:
        """The target of a branch or a jump."""
        return self.address + int(self.operands[-1], 0)


def _decode(code: bytes, address: int) -> Iterator[RiscvInstruction]:
    """Instructions up to the first invalid one. Vector instructions are placeholders: capstone may lack them."""
    at = 0
    while at < len(code):
        if _is_of_vectors(code[at : at + _VECTOR_BYTES]):
            yield RiscvInstruction(address + at, _VECTOR_BYTES, "vector", "")
            at += _VECTOR_BYTES
            continue
        each = next(_MACHINE.disasm(code[at : at + _VECTOR_BYTES], address + at), None)
        if each is None:
            return
        yield RiscvInstruction(each.address, each.size, each.mnemonic.removeprefix("c."), each.op_str)
        at += each.size


def _is_of_vectors(code: bytes) -> bool:
    """True for vector instructions. Those in kernels write vector registers only."""
    word = int.from_bytes(code, "little")
    width, opcode = word >> 12 & 7, word & 0x7F
    return opcode == _OP_V or (opcode in _FLOAT_ACCESSES and width in _WIDTHS)


def _after(walk: FunctionWalk, instruction: RiscvInstruction, state: StackState) -> StackState:
    """The stack after the instruction."""
    if not instruction.operands or instruction.name in _NO_RESULT or instruction.name.startswith("b"):
        return state
    target = instruction.operands[0]
    pointer, number = _result(instruction, state)
    if target == "sp":
        if pointer is None:
            raise walk.puzzled(
                instruction.address, f"sets the stack pointer by `{instruction.name} {instruction.text}`"
            )
        return replace(state, depth=pointer)
    pointers = {name: at for name, at in state.pointers.items() if name != target}
    numbers = {name: value for name, value in state.numbers.items() if name != target}
    pointers |= {} if pointer is None else {target: pointer}
    numbers |= {} if number is None else {target: number}
    return replace(state, pointers=pointers, numbers=numbers)


def _result(instruction: RiscvInstruction, state: StackState) -> tuple[int | None, int | None]:
    """The stack position that the result points to, or the result as a number."""
    name, operands = instruction.name, instruction.operands
    if name in ("li", "lui"):
        return None, _signed(int(operands[1], 0) << (_PAGE_SHIFT if name == "lui" else 0))
    if name == "mv":
        return _points_to(state, operands[1]), state.numbers.get(operands[1])
    if name in _SUMS:
        return _sum(state, operands[-2], int(operands[-1], 0))
    if name in ("add", "sub") and operands[-1] in state.numbers:
        number = state.numbers[operands[-1]]
        return _sum(state, operands[-2], -number if name == "sub" else number)
    return None, None


def _sum(state: StackState, register: str, added: int) -> tuple[int | None, int | None]:
    depth, number = _points_to(state, register), state.numbers.get(register)
    return None if depth is None else depth - added, None if number is None else _signed(number + added)


def _points_to(state: StackState, register: str) -> int | None:
    return state.depth if register == "sp" else state.pointers.get(register)


def _signed(value: int) -> int:
    value %= 1 << _WORD_BITS
    return value - (value >> (_WORD_BITS - 1) << _WORD_BITS)


def _successors(walk: FunctionWalk, instruction: RiscvInstruction, state: StackState) -> list[int]:
    """The addresses inside the function that follow in control flow. Notes calls."""
    following, name = instruction.address + instruction.size, instruction.name
    if name == "jal":
        walk.note_call(instruction.address, state.depth, instruction.target)
        return [following] if walk.comes_back(following) else []
    if name == "j" or name.startswith("b"):
        targets = walk.leave(instruction.address, state.depth, instruction.target)
        return targets if name == "j" else [following, *targets]
    if name in ("jr", "jalr", "ret"):
        return _through_a_register(walk, instruction, state, following)
    return [] if name in _ENDS else [following]


def _through_a_register(
    walk: FunctionWalk, instruction: RiscvInstruction, state: StackState, following: int
) -> list[int]:
    """Successors of a return, of a far call or jump, or of a call or jump through a pointer."""
    operands = instruction.operands
    links = instruction.name == "jalr" and (len(operands) < 2 or operands[0] != "zero")
    base = operands[1] if len(operands) > 1 and instruction.name == "jalr" else (operands or ["ra"])[0]
    target = _far(walk, instruction, base)
    if links:
        walk.note_call(instruction.address, state.depth, target)
        return [following] if walk.comes_back(following) else []
    if target is not None:
        return walk.leave(instruction.address, state.depth, target)
    if base != "ra":
        walk.note_call(instruction.address, state.depth, None)
    return []


def _far(walk: FunctionWalk, instruction: RiscvInstruction, base: str) -> int | None:
    """The target of a far call or jump, given the second instruction."""
    first = walk.code.get(instruction.address - _PAIR_BYTES)
    if first is None or first.name != "auipc" or first.operands[0] != base:
        return None
    last = instruction.operands[-1]
    low = int(last, 0) if last != base else 0
    return first.address + _signed(int(first.operands[1], 0) << _PAGE_SHIFT) + low


_MACHINE = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC)

INSTRUCTIONS = InstructionSet(_decode, _after, _successors)
