"""The stack bound of images written for these tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers import toolchain
from npukit.board.cores import CORES
from npukit.errors import NpukitError
from npukit.project.images.stack import StackReport, stack_bound
from npukit.project.toolchain import target_flags

HEAD = """
    .syntax unified
    .thumb
    .section .text.all, "ax"
    .macro function name
    .global \\name
    .type \\name, %function
    .thumb_func
    \\name:
    .endm
"""
FAULT = "function fault_handler\n    b .\n    .size fault_handler, . - fault_handler\n"

CORE = CORES["cortex-m4f"]
LINK = "SECTIONS { .text 0 : { *(.text.all) } .rodata : { *(.rodata.all) } }"


def bound(folder: Path, body: str) -> StackReport:
    """The report for assembly in which `end` marks the end of each function."""
    (folder / "code.S").write_text(HEAD + body + FAULT)
    (folder / "link.ld").write_text(LINK)
    compiler = toolchain("zig")
    target = target_flags(CORE)["zig"].split()
    link = ["-nostdlib", "-Wl,-e,reset_handler", "-T", "link.ld", "code.o", "-o", "code.elf"]
    for step in (["-g", "-c", "code.S", "-o", "code.o"], link):
        subprocess.run([*compiler.command, *target, *step], cwd=folder, check=True, timeout=120)
    return stack_bound(folder / "code.elf", [folder / "code.o"], CORE)


def end(name: str) -> str:
    return f"    .size {name}, . - {name}\n"


def test_frames_add_up_along_the_deepest_path(tmp_path: Path) -> None:
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, lr}}
    bl shallow
    bl deep
    pop {{r4, pc}}
{end("reset_handler")}
function shallow
    sub sp, #64
    add sp, #64
    bx lr
{end("shallow")}
function deep
    push {{r4-r7, lr}}
    vpush {{d8-d9}}
    sub sp, #12
    bl shallow
    str r0, [sp, #-8]!
    ldr r0, [sp], #8
    add sp, #12
    vpop {{d8-d9}}
    pop {{r4-r7, pc}}
{end("deep")}
""",
    )
    assert report.program_bytes == 8 + (20 + 16 + 12) + 64
    assert report.deepest == ("reset_handler", "deep", "shallow")
    assert report.functions["deep"] == 20 + 16 + 12 + 8
    assert report.bytes == -(-(report.program_bytes + CORE.exception_bytes) // 8) * 8


def test_a_tail_call_has_given_its_frame_back(tmp_path: Path) -> None:
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4-r7, lr}}
    pop {{r4-r7, lr}}
    b next
{end("reset_handler")}
function next
    push {{r0-r3}}
    add sp, #16
    bx lr
{end("next")}
""",
    )
    assert report.program_bytes == 20


def test_a_call_that_never_returns_may_be_followed_by_what_aligns_literals(tmp_path: Path) -> None:
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, lr}}
    ldr r0, literal
    movs r1, #0
    bl restart
    mov r8, r8
literal:
    .word 0xFFFFFFFF
{end("reset_handler")}
function restart
    b restart
{end("restart")}
""",
    )
    assert report.program_bytes == 8


def test_a_jump_into_the_middle_of_another_function_goes_on_there(tmp_path: Path) -> None:
    """GNU's `__aeabi_ui2d` jumps into `__adddf3`, whose epilogue pops the frames of both."""
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, lr}}
    bl convert
    bl sum
    pop {{r4, pc}}
{end("reset_handler")}
function sum
    push {{r4, r5, lr}}
    nop
shared:
    sub sp, #40
    bl pack
    add sp, #40
    pop {{r4, r5, pc}}
{end("sum")}
function convert
    push {{r4, r5, lr}}
    b.w shared
{end("convert")}
function pack
    push {{r4, lr}}
    pop {{r4, pc}}
{end("pack")}
""",
    )
    assert report.functions["convert"] == report.functions["sum"] == 12 + 40
    assert report.program_bytes == 8 + 12 + 40 + 8


def test_a_call_into_the_middle_of_a_function_is_followed(tmp_path: Path) -> None:
    """`__aeabi_dmul` calls the check for infinities at the end of the same function."""
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, lr}}
    bl rare
    pop {{r4, pc}}
rare:
    sub sp, #24
    add sp, #24
    bx lr
{end("reset_handler")}
""",
    )
    assert report.program_bytes == 8 + 24


def test_branches_and_tables_are_followed(tmp_path: Path) -> None:
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, lr}}
    cbz r0, 3f
    cmp r0, #1
    it eq
    popeq {{r4, pc}}
    tbb [pc, r1]
1:  .byte (2f - 1b) / 2, (3f - 1b) / 2
2:  sub sp, #128
    add sp, #128
3:  pop {{r4, pc}}
{end("reset_handler")}
""",
    )
    assert report.program_bytes == 8 + 128


def test_both_branches_of_a_table_of_addresses_count(tmp_path: Path) -> None:
    """GCC's form, with a branch before the table."""
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, lr}}
    b 1f
2:  sub sp, #128
    add sp, #128
3:  pop {{r4, pc}}
1:  adr r2, 4f
    ldr.w pc, [r2, r1, lsl #2]
    .balign 4
4:  .word 2b + 1, 3b + 1
{end("reset_handler")}
""",
    )
    assert report.program_bytes == 8 + 128


def test_a_frame_pointer_is_followed(tmp_path: Path) -> None:
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r7, lr}}
    mov r7, sp
    sub sp, #40
    mov sp, r7
    push {{r0}}
    pop {{r0}}
    pop {{r7, pc}}
{end("reset_handler")}
""",
    )
    assert report.program_bytes == 8 + 40


def test_a_stack_aligned_by_a_register_is_followed(tmp_path: Path) -> None:
    """LLVM's code for variables aligned to more than 8 bytes, with up to 12 bytes more."""
    report = bound(
        tmp_path,
        f"""
function reset_handler
    push {{r4, r6, r7, lr}}
    add r7, sp, #8
    sub.w r4, sp, #128
    bfc r4, #0, #4
    mov sp, r4
    mov r4, r0
    push {{r0}}
    pop {{r0}}
    sub.w r4, r7, #8
    mov sp, r4
    pop {{r4, r6, r7, pc}}
{end("reset_handler")}
""",
    )
    assert report.program_bytes == 16 + 128 + 12 + 4


POINTER_CALL = f"""
function reset_handler
    push {{r4, lr}}
    blx r0
    pop {{r4, pc}}
{end("reset_handler")}
function pointed_at
    sub sp, #48
    add sp, #48
    bx lr
{end("pointed_at")}
function never_pointed_at_though_its_address_is_a_number_in_data
    sub sp, #400
    add sp, #400
    bx lr
{end("never_pointed_at_though_its_address_is_a_number_in_data")}
    .section .rodata.all, "a"
    .word pointed_at
    .irp number, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
    .word \\number
    .endr
    .section .text.all, "ax"
"""


def test_a_pointer_may_lead_to_every_function_whose_address_is_taken(tmp_path: Path) -> None:
    assert bound(tmp_path, POINTER_CALL).program_bytes == 8 + 48


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("bl again\n    b .\nfunction again\n    push {lr}\n    bl reset_handler\n", "recursion"),
        ("1: push {r0}\n    b 1b\n", "takes more stack with each turn of a loop"),
        ("sub sp, sp, r0\n    bx lr\n", "sets the stack pointer by `sub"),
        ("mov r4, sp\n    pop {r4}\n    mov sp, r4\n    bx lr\n", "sets the stack pointer by `mov sp, r4"),
        ("ldr pc, [r0]\n", "jumps by `ldr pc"),
    ],
)
def test_what_has_no_bound_is_refused(tmp_path: Path, body: str, complaint: str) -> None:
    last = "again" if "again" in body else "reset_handler"
    with pytest.raises(NpukitError, match=complaint):
        bound(tmp_path, f"function reset_handler\n    {body}{end(last)}")
