"""A strict emulator detects functions that change registers preserved by the procedure call standard."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.programs import program, words
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.project.images.image import Image

GUILTY = {
    "r4": "mov r4, #1\n bx lr",
    "r11": "push {r4, lr}\n mov r11, r0\n pop {r4, pc}",
    "s16": "vmov s16, r0\n bx lr",
    "s31": "vmov s31, r0\n bx lr",
    "sp": "push {r4, r5}\n pop {r4}\n bx lr",
}
INNOCENT = {
    "what_saves": "push {r4-r11, lr}\n vpush {s16-s31}\n mov r4, #9\n vmov s17, r4\n vpop {s16-s31}\n pop {r4-r11, pc}",
    "what_leaves_through_another": "push {r4, lr}\n mov r4, #7\n pop {r4, lr}\n b what_saves",
    "what_loops": "1: subs r0, #1\n bne 1b\n mov r12, lr\n bl what_saves\n bx r12",
}


def source(functions: dict[str, str], calls: str, thumb: str = ".syntax unified\\n.thumb_func") -> str:
    """A program with functions in assembly, and calls of some of them."""
    assembly = "\n".join(
        f".global {name}\n.type {name}, %function\n{thumb}\n{name}:\n {code}\n.size {name}, . - {name}"
        for name, code in functions.items()
    )
    lines = "\n".join(f'"{line}\\n"' for line in assembly.splitlines())
    declared = "".join(f"void {name}(uint32_t);\n" for name in functions)
    body = f"{calls}\n RESULTS[0] = 5; wait_for_event();\n return 0;"
    return f'#include "board.h"\n{declared}__asm(".text\\n.balign 4\\n" {lines});\nint main(void)\n{{\n{body}\n}}'


def run(elf: Path, board: str = "pe-mesh", *, strict: bool = True) -> list[int]:
    with Emulator(load_board(board), [Image(elf, (0,))], strict=strict) as emulator:
        emulator.read(20)
        return words(emulator, 0, 1)


@pytest.mark.parametrize("register", GUILTY)
def test_a_register_that_is_not_left_as_it_was_is_named_with_its_function(register: str) -> None:
    elf = program(source({"guilty": GUILTY[register], **INNOCENT}, "what_saves(3); guilty(3);"))
    told = rf"in main\+0x\w+ .*the function at 0x\w+, guilty\+0x0.*, returned with {register} changed"
    with pytest.raises(CoreFault, match=told):
        run(elf)


def test_the_outermost_function_is_named() -> None:
    functions = {"guilty": GUILTY["r4"], "leaves_through": "b guilty"}
    with pytest.raises(CoreFault, match=r"leaves_through\+0x0.*, returned with r4 changed"):
        run(program(source(functions, "leaves_through(1);")))


def test_what_keeps_to_the_standard_goes_on() -> None:
    calls = "for (uint32_t i = 1; i < 40; i++) { what_saves(i); what_leaves_through_another(i); what_loops(i); }"
    assert run(program(source(INNOCENT, calls))) == [5]


@pytest.mark.parametrize(("register", "code"), [("s3", "mv s3, a0"), ("s11", "mv s11, a0"), ("sp", "addi sp, sp, -16")])
def test_risc_v_has_registers_to_leave_too(register: str, code: str) -> None:
    elf = program(source({"guilty": f"{code}\n ret"}, "guilty(3);", thumb=""), "rv32imafc")
    with pytest.raises(CoreFault, match=rf"guilty\+0x0.*, returned with {register} changed"):
        run(elf, "pe-mesh-rv")


def test_only_a_strict_board_looks() -> None:
    assert run(program(source({"guilty": GUILTY["r11"]}, "guilty(3);")), strict=False) == [5]
