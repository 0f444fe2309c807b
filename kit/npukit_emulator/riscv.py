# SPDX-License-Identifier: GPL-2.0-only
"""Decoded blocks of RISC-V instructions: cycles of OpenHW's CV32E40P ("Pipeline Details" of its user manual).

A load costs a cycle more if the next instruction uses the result. A taken branch or a jump costs `refill_cycles` in
addition to the cycles here. A division takes 3 to 35 cycles, depending on the operands; a single value stands for all.
"""

from __future__ import annotations

from collections.abc import Mapping

import capstone

from npukit_emulator.blocks import BlockCosts, Remark

_DIVIDE, _HIGH_PRODUCT, _CONTROL_REGISTER = 35, 5, 4
_STALL = 1
_BYTES = (2, 4)
_CYCLES = {
    **dict.fromkeys(("div", "divu", "rem", "remu"), _DIVIDE),
    **dict.fromkeys(("mulh", "mulhu", "mulhsu"), _HIGH_PRODUCT),
    **dict.fromkeys(("csrrw", "csrrs", "csrrc", "csrrwi", "csrrsi", "csrrci"), _CONTROL_REGISTER),
    # Two cycles with the refill.
    **dict.fromkeys(("jal", "j", "jalr", "jr"), 0),
    **dict.fromkeys(("fdiv.s", "fsqrt.s"), 12),
}
_STORES_BEFORE_DEVICES = 1 << 24 | 1 << 22
"""Bits of a FENCE that orders earlier stores to memory before later accesses of devices."""
_LOADS = frozenset(("lb", "lh", "lw", "lbu", "lhu", "lwsp", "flw", "flwsp"))
_STORES = frozenset(("sb", "sh", "sw", "swsp", "fsw", "fswsp"))
_ATOMIC_STORES = ("sc.", "amo")
_PUSH = ("addi", "addi16sp")

_decoder = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC)


def block_costs(code: bytes, address: int, others: Mapping[str, int]) -> BlockCosts:
    """The costs of a block. `others`: cycles of instructions, by name, that differ from a CV32E40P's."""
    progress: list[tuple[int, int, int]] = [(0, 0, Remark.NONE)] * (len(code) // 2 + 1)
    count = cycles = offset = deepest = deepest_at = 0
    loaded = ""
    while offset < len(code):
        size = _BYTES[code[offset] & 3 == 3]
        name, operands = _read(code[offset : offset + size], address + offset)
        progress[offset // 2] = (count, cycles, _remark(name, code[offset : offset + size]))
        stalls = loaded != "" and loaded in operands
        count, cycles = count + 1, cycles + others.get(name, _CYCLES.get(name, 1)) + (_STALL if stalls else 0)
        loaded = operands[0] if name in _LOADS and operands else ""
        grown = _stack_growth(name, operands)
        deepest, deepest_at = (grown, offset) if grown > deepest else (deepest, deepest_at)
        offset += size
        for halfword in range(offset // 2 - size // 2 + 1, min(offset // 2, len(progress) - 1) + 1):
            progress[halfword] = (count, cycles, Remark.NONE)
    return BlockCosts(progress, False, 0, 0, deepest, deepest_at, None, [], True)


def _read(code: bytes, address: int) -> tuple[str, list[str]]:
    """An instruction's name, without the prefix of a compressed form, and the registers and numbers."""
    decoded = next(_decoder.disasm(code, address, 1), None)
    if decoded is None:
        return "", []
    names = decoded.op_str.replace("(", ", ").replace(")", "")
    return str(decoded.insn_name()).removeprefix("c."), names.split(", ")


def _remark(name: str, code: bytes) -> Remark:
    if name in _STORES or name.startswith(_ATOMIC_STORES):
        return Remark.STORES
    orders = name == "fence" and int.from_bytes(code, "little") & _STORES_BEFORE_DEVICES == _STORES_BEFORE_DEVICES
    return Remark.BARRIER if orders else Remark.NONE


def _stack_growth(name: str, operands: list[str]) -> int:
    """Bytes by which `addi sp, sp, -n` moves the stack pointer down."""
    grows = name in _PUSH and operands[0] == "sp" and all(each == "sp" for each in operands[:-1])
    return max(-int(operands[-1], 0), 0) if grows else 0
