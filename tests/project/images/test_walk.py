"""Facts read from a function's instructions."""

from __future__ import annotations

import subprocess
from pathlib import Path

from helpers import toolchain
from npukit.board.cores import CORES
from npukit.project.images.elf import Elf
from npukit.project.images.walk import frame_of
from npukit.project.toolchain import target_flags

RISC_V = """
    .section .text.all, "ax"
    .type caller, %function
    .globl caller
caller:
    .insn 0x2021  # c.jal callee
    .insn 0x006000ef  # jal callee
    c.jr ra
    .size caller, . - caller
    .type callee, %function
    .globl callee
callee:
    c.jr ra
    .size callee, . - callee
"""


def test_a_call_returns_behind_its_instruction_whatever_its_size(tmp_path: Path) -> None:
    (tmp_path / "code.S").write_text(RISC_V)
    (tmp_path / "link.ld").write_text("SECTIONS { .text 0 : { *(.text.all) } }")
    command = [*toolchain("zig").command, *target_flags(CORES["rv32imc"])["zig"].split(), "-nostdlib"]
    link = [*command, "-Wl,-e,caller", "-T", "link.ld", "code.S", "-o", "code.elf"]
    subprocess.run(link, cwd=tmp_path, check=True, timeout=120)
    elf = Elf(tmp_path / "code.elf")
    (caller,) = elf.addresses_of("caller")
    assert [(call.site, call.after) for call in frame_of(elf, elf.functions[caller]).calls] == [(0, 2), (2, 6)]
