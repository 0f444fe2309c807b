"""Instruction counts and cycles, against Arm's Cortex-M4 TRM (100166, tables 3-1 and 7-1), measured from inside.

P, the refill after a taken branch, is 1 here; a division takes 6, a barrier 2, as in the board's manual.
"""

from __future__ import annotations

import pytest

from emulator.programs import program, run_to_sleep, running, words
from npukit.board.cores import CORES
from npukit_emulator import riscv
from npukit_emulator.blocks import block_costs

P = 1
SNIPPETS: dict[str, tuple[int, int]] = {
    "nop": (1, 1),
    "movs r2, #1": (1, 1),
    "adds r2, r2, r3": (1, 1),
    "mul r2, r2, r3": (1, 1),
    "mla r2, r2, r3, r2": (1, 1),
    "smull r2, r3, r2, r3": (1, 1),
    "smlad r2, r2, r3, r2": (1, 1),
    "ssat r2, #8, r3": (1, 1),
    "udiv r2, r2, r3": (1, 6),
    "dsb": (1, 2),
    "mrs r2, primask": (1, 2),
    "ldr r2, [r1]": (1, 2),
    "ldr r2, [r1]; nop": (2, 3),
    "ldr r2, [r1]; ldr r3, [r1]": (2, 3),
    "ldr r2, [r1]; ldr r3, [r1]; ldr r2, [r1, #4]": (3, 4),
    "mov r2, r1; ldr r2, [r2]": (2, 3),
    "str r1, [r1]; ldr r2, [r1]; mov r2, r1; ldr r3, [r2]": (4, 6),
    "str r2, [r1]": (1, 1),
    "movs r3, #4; str r2, [r1, r3]": (2, 3),
    "movs r3, #4; ldr r2, [r1]; str r2, [r1, r3]": (3, 4),
    "ldrd r2, r3, [r1]": (1, 3),
    "strd r2, r3, [r1]": (1, 3),
    "ldm r1, {r2, r3, r4}": (1, 4),
    "stm r1, {r2, r3}": (1, 3),
    "push {r2, r3, r4}; pop {r2, r3, r4}": (2, 8),
    "b 1f; nop; 1: nop": (2, 2 + P),
    "cmp r1, #0; beq 1f; nop; 1: nop": (4, 4),
    "cmp r1, r1; beq 1f; nop; 1: nop": (3, 3 + P),
    "cbz r1, 1f; nop; 1:": (2, 2),
    "movs r2, #10; 1: subs r2, #1; bne 1b": (21, 21 + 9 * P),
    "cmp r1, r1; ite eq; addeq r2, #1; addne r3, #1": (4, 4),
    "vadd.f32 s0, s1, s2": (1, 1),
    "vmul.f32 s0, s1, s2": (1, 1),
    "vfma.f32 s0, s1, s2": (1, 3),
    "vdiv.f32 s0, s1, s2": (1, 14),
    "vsqrt.f32 s0, s1": (1, 14),
    "vldr s0, [r1]": (1, 2),
    "vstr s0, [r1]": (1, 2),
    "vldm r1, {s0-s3}": (1, 5),
    "vmov r2, s0": (1, 1),
    "vmov r2, r3, s0, s1": (1, 2),
}


def _measured(number: int, snippet: str) -> str:
    """A C function that records instructions and cycles with the snippet and without it."""
    body = "\\n\\t".join(snippet.split("; "))
    return f"""
static void measure_{number}(void)
{{
    uint32_t before, after, first, second;
    /* A nop after the timer's load keeps the snippet's first load from being pipelined behind it. */
    __asm volatile("mov r1, %[work]\\n\\tdsb\\n\\t"
        "ldr %[before], [%[timer]]\\n\\tnop\\n\\t{body}\\n\\tnop\\n\\tldr %[after], [%[timer]]"
        : [before] "=&r"(before), [after] "=&r"(after) : [timer] "r"(0xE1000000U), [work] "r"(WORK)
        : "r1", "r2", "r3", "r4", "s0", "s1", "s2", "s3", "cc", "memory");
    __asm volatile("mov r1, %[work]\\n\\tdsb\\n\\t"
        "ldr %[before], [%[timer]]\\n\\tnop\\n\\t{body}\\n\\tnop\\n\\tldr %[after], [%[timer]]"
        : [before] "=&r"(first), [after] "=&r"(second) : [timer] "r"(0xE1000008U), [work] "r"(WORK)
        : "r1", "r2", "r3", "r4", "s0", "s1", "s2", "s3", "cc", "memory");
    RESULTS[{2 * number}] = second - first;
    RESULTS[{2 * number + 1}] = after - before;
}}
"""


@pytest.fixture(scope="module")
def measured() -> dict[str, tuple[int, int]]:
    """Instructions and cycles of each snippet, less the share of the timer's load and the two nops."""
    functions = "".join(_measured(number, snippet) for number, snippet in enumerate(SNIPPETS))
    calls = "".join(f"measure_{number}();" for number in range(len(SNIPPETS)))
    source = f'#include "board.h"\n{functions}\nint main(void) {{ {calls} return 0; }}'
    with running((program(source), (0,))) as emulator:
        run_to_sleep(emulator)
        values = words(emulator, 0, 2 * len(SNIPPETS))
    return {snippet: (values[2 * n] - 3, values[2 * n + 1] - 4) for n, snippet in enumerate(SNIPPETS)}


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_an_instruction_costs_what_the_trm_says(measured: dict[str, tuple[int, int]], snippet: str) -> None:
    assert measured[snippet] == SNIPPETS[snippet]


def test_long_code_costs_the_same_wherever_the_emulator_cuts_it() -> None:
    """Five thousand pipelined loads and as many bytes as several pages: n loads take n + 1 cycles."""
    source = """
#include "board.h"
int main(void)
{
    uint32_t before, after, value;
    __asm volatile("ldr %0, [%3]\\n\\tnop\\n\\t.rept 5000\\n\\tldr %2, [%4]\\n\\t.endr\\n\\tnop\\n\\tldr %1, [%3]"
        : "=&r"(before), "=&r"(after), "=&r"(value) : "r"(0xE1000000U), "r"(WORK));
    RESULTS[0] = after - before;
    return 0;
}
"""
    with running((program(source), (0,))) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1) == [2 + 1 + 5001 + 1]


def test_pes_in_step_wait_for_each_other_at_pipelined_loads_of_registers() -> None:
    """Loads of a register that concerns other PEs, the first of a block among them: each takes its turn."""
    source = """
#include "board.h"
int main(void)
{
    uint32_t value;
    __asm volatile(".balign 4\\n\\t.rept 520\\n\\tldr %0, [%1]\\n\\t.endr"
        : "=&r"(value) : "r"(0xE2000100U));
    RESULTS[0] = 7;
    return 0;
}
"""
    with running((program(source), (0, 1, 2))) as emulator:
        run_to_sleep(emulator)
        assert [words(emulator, pe, 1) for pe in range(3)] == [[7]] * 3


@pytest.mark.parametrize("core", ["cortex-m3", "cortex-m4f"])
def test_cores_differ_in_what_long_products_take(core: str) -> None:
    umull = bytes.fromhex("a1fb0203")
    _, cycles, _ = block_costs(umull, 0, CORES[core].cycles).progress[-1]
    assert cycles == {"cortex-m3": 5, "cortex-m4f": 1}[core]


@pytest.mark.parametrize(
    ("code", "cycles"),
    [
        ("03a50500 13068600", 2),  # lw a0, 0(a1); addi a2, a2, 8
        ("03a50500 13060500", 3),  # lw a0, 0(a1); mv a2, a0
        ("3305b502 3315b502", 1 + 5),  # mul, mulh
        ("8841 0a95", 3),  # c.lw a0, 0(a1); c.add a0, sp
    ],
)
def test_instructions_of_risc_v_cost_what_the_manual_of_the_cv32e40p_says(code: str, cycles: int) -> None:
    instructions, taken, _ = riscv.block_costs(bytes.fromhex(code), 0, {}).progress[-1]
    assert (instructions, taken) == (2, cycles)
