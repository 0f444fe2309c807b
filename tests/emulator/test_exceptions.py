"""Exceptions of the core: one program with interrupts, priorities, stacks, SysTick and WFI gives the same here and on
QEMU."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, running, words
from emulator.qemu_memory import memory_on_qemu
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.project.images.image import Image

DONE, DONE_AT, LOG = 0x600D, RESULTS + 0x400, 64
HEAD = """#include "board.h"
#define SYSTEM(offset) REGISTER(0xE000E000U + (offset))
#define ICSR SYSTEM(0xD04U)
#define VTOR SYSTEM(0xD08U)
#define TICK_CONTROL SYSTEM(0x10U)
#define TICK_RELOAD SYSTEM(0x14U)
#define TICK_VALUE SYSTEM(0x18U)
#define ENABLE SYSTEM(0x100U)
#define PEND SYSTEM(0x200U)
#define PRIORITY(n) (*(volatile uint8_t *)(0xE000E400U + (n)))
#define BARRIER __asm volatile("dsb\\n\\tisb" ::: "memory")
enum { LOW = 3, HIGH = 4, PENDSV = 1 << 28 };
static volatile uint32_t count, ticks;
static void note(uint32_t value) { RESULTS[count++] = value; }
static uint32_t ipsr(void) { uint32_t n; __asm volatile("mrs %0, ipsr" : "=r"(n)); return n; }
static void on_high(void) { note(0x400 | ipsr()); }
static void on_low(void)
{
    note(0x300 | ipsr());
    PEND = 1U << HIGH;
    BARRIER;
    note(0x3FF);
}
static void on_pendsv(void)
{
    float zero = 0;
    __asm volatile("vmov s0, %0\\n\\tvmov s15, %0\\n\\tvmov s16, s16" :: "r"(zero) : "s0", "s15");
    note(0x100 | ipsr());
    __asm volatile("mrs r0, psp\\n\\tmsr psp, r0" ::: "r0"); /* as a switch of tasks does */
}
static void on_tick(void) { ticks++; }
static void (*const table[48])(void) __attribute__((aligned(512))) = {
    [14] = on_pendsv, [15] = on_tick, [16 + LOW] = on_low, [16 + HIGH] = on_high,
};
__attribute__((unused)) static void start(void)
{
    VTOR = (uint32_t)(uintptr_t)table;
    PRIORITY(LOW) = 0xC0;
    PRIORITY(HIGH) = 0x40;
    SYSTEM(0xD20U) = 0x80E00000U; /* SysTick 0x80, PendSV 0xE0 */
    ENABLE = 1U << LOW | 1U << HIGH;
}
"""
PROGRAM = (
    HEAD
    + """
static void pended_while_masked(void)
{
    __asm volatile("cpsid i");
    PEND = 1U << LOW;
    SYSTEM(0xF00U) = HIGH;
    ICSR = PENDSV;
    BARRIER;
    note(ICSR >> 12 & 0x1FF);
    __asm volatile("cpsie i\\n\\tisb" ::: "memory");
    note(0x11);
}
static void masked_by_priority(void)
{
    __asm volatile("msr basepri, %0" :: "r"(0xC0));
    PEND = 1U << LOW;
    BARRIER;
    note(0x20);
    PEND = 1U << HIGH;
    BARRIER;
    note(0x21);
    __asm volatile("msr basepri, %0\\n\\tisb" :: "r"(0));
    note(0x22);
}
static void float_registers_survive(void)
{
    uint32_t first, last;
    __asm volatile("vmov s0, %2\\n\\tvmov s15, %3\\n\\tstr %4, [%5]\\n\\tdsb\\n\\tisb\\n\\t"
        "vmov %0, s0\\n\\tvmov %1, s15"
        : "=&r"(first), "=&r"(last) : "r"(0x3F800000U), "r"(0x40000000U), "r"(PENDSV), "r"(0xE000ED04U)
        : "s0", "s15", "memory");
    note(first);
    note(last);
}
static void on_the_process_stack(void)
{
    static uint64_t stack[64];
    uint32_t before, after;
    __asm volatile(
        "msr psp, %2\\n\\tmrs %0, control\\n\\torr %0, #2\\n\\tmsr control, %0\\n\\tisb\\n\\tpush {r0-r2}\\n\\t"
        "str %3, [%4]\\n\\tdsb\\n\\tisb\\n\\tmov %1, sp\\n\\tpop {r0-r2}\\n\\tbic %0, #2\\n\\tmsr control, %0\\n\\tisb"
        : "=&r"(before), "=&r"(after) : "r"(stack + 64), "r"(1U << HIGH), "r"(0xE000E200U) : "memory");
    note((uint32_t)(uintptr_t)(stack + 64) - after);
}
static void ticks_and_sleep(void)
{
    TICK_RELOAD = 9999;
    TICK_VALUE = 0;
    TICK_CONTROL = 7;
    while (ticks < 3) {
    }
    note(ticks >= 3);
    __asm volatile("cpsid i");
    const uint32_t before = ticks;
    while ((ICSR >> 26 & 1) == 0) {
        __asm volatile("wfi");
    }
    note(ticks - before); /* it woke, and the handler has not run */
    __asm volatile("cpsie i\\n\\tisb" ::: "memory");
    note(ticks - before);
    __asm volatile("wfi");
    note(ticks - before >= 2);
    TICK_CONTROL = 0;
    note(TICK_RELOAD);
}
int main(void)
{
    start();
    PEND = 1U << LOW;
    BARRIER;
    note(0x10);
    pended_while_masked();
    masked_by_priority();
    float_registers_survive();
    on_the_process_stack();
    ticks_and_sleep();
    REGISTER(0x10400U) = 0x600DU;
    return 0;
}
"""
)
NESTED = [0x300 | 19, 0x400 | 20, 0x3FF]
WANTED = [
    *NESTED, 0x10,
    20, 0x400 | 20, *NESTED, 0x100 | 14, 0x11,
    0x20, 0x400 | 20, 0x21, *NESTED, 0x22,
    0x100 | 14, 0x3F800000, 0x40000000,
    0x400 | 20, 12,
    1, 0, 1, 1, 9999,
]  # fmt: skip


def test_interrupts_nest_by_priority_and_leave_everything_as_it_was() -> None:
    with running((program(PROGRAM), (0,))) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1, DONE_AT) == [DONE]
        assert words(emulator, 0, len(WANTED)) == WANTED


def test_qemu_agrees(tmp_path: Path) -> None:
    data = memory_on_qemu(program(PROGRAM), (RESULTS, DONE_AT + 4), (DONE_AT, DONE), tmp_path)
    assert [int.from_bytes(data[4 * i : 4 * i + 4], "little") for i in range(len(WANTED))] == WANTED


@pytest.mark.parametrize("workers", [1, 2])
def test_ticks_come_at_their_cycles_on_every_pe(workers: int) -> None:
    """A period is `reload` + 1 cycles, whether PEs run side by side or not."""
    source = (
        HEAD
        + """
static void each(void) { RESULTS[ticks++] = TIMER_CYCLES; }
static void (*const own[16])(void) __attribute__((aligned(128))) = {[15] = each};
int main(void)
{
    VTOR = (uint32_t)(uintptr_t)own;
    TICK_RELOAD = 4999;
    TICK_VALUE = 0;
    TICK_CONTROL = 7;
    while (ticks < 10) {
        __asm volatile("wfi");
    }
    TICK_CONTROL = 0;
    return 0;
}
"""
    )
    image = Image(program(source), (0, 5))
    with Emulator(load_board("pe-mesh"), [image], workers=workers) as emulator:
        run_to_sleep(emulator)
        found = [words(emulator, pe, 10) for pe in (0, 5)]
    assert found[0] == found[1]
    assert {later - earlier for earlier, later in zip(found[0], found[0][1:], strict=False)} == {5000}


def test_wfe_and_wfi_are_not_the_same() -> None:
    """An event does not end WFI. An interrupt masked by PRIMASK does not end WFE. A WFI without any end is a fault."""
    source = (
        HEAD
        + """
int main(void)
{
    start();
    __asm volatile("cpsid i\\n\\tsev");
    TICK_RELOAD = 999;
    TICK_CONTROL = 7;
    const uint32_t before = TIMER_SLEEP;
    __asm volatile("wfi");
    note(TIMER_SLEEP - before > 900);
    __asm volatile("wfe");
    note(1);
    TICK_CONTROL = 0;
    ICSR = 1U << 25;
    __asm volatile("wfi");
    note(2);
    return 0;
}
"""
    )
    with running((program(source), (0,))) as emulator:
        with pytest.raises(CoreFault, match=r"in main.*a WFI that nothing ends"):
            emulator.read(20)
        assert words(emulator, 0, 3) == [1, 1, 0]
