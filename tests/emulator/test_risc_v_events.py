"""RISC-V cores on a mesh: the end of sleep, and forbidden accesses."""

from __future__ import annotations

import pytest

from emulator.programs import program, run_to_sleep, words
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.project.images.image import Image

CPU = "rv32imafc"
WORK_OF_THE_DMA = 12
"""Cycles from the doorbell for 16 bytes within the PE."""
HEAD = """#include "board.h"
static const _Alignas(16) uint32_t copies[24] __attribute__((used)) = {
    0, 1 | 9U << 16, 0, 0, 0, 0x11000, 16 | 1U << 16, 0, 0, 0x05FF, 0, 0, /* of its code, to itself, flag 5 */
    0, 1 | 9U << 16, 0, 0, 0, 0x11000, 16 | 1U << 16, 0, 0, 0x06FF, 0, 0, /* flag 6 */
};
"""


def ran(body: str, *, strict: bool = False) -> list[int]:
    """Results of a program on PE 0. A strict emulator shows a flag's count late."""
    image = Image(program(f"{HEAD} int main(void) {{ {body} return 0; }}", CPU), (0,))
    with Emulator(load_board("pe-mesh-rv"), [image], strict=strict) as emulator:
        run_to_sleep(emulator)
        return words(emulator, 0, 8)


def fault_of(body: str) -> str:
    with pytest.raises(CoreFault) as raised:
        ran(body, strict=True)
    return raised.value.message


def test_an_event_ends_wfi_and_stays_until_it_is_taken_back() -> None:
    results = ran("""
        RESULTS[0] = TIMER_SLEEP;
        DMA_DOORBELL = (uint32_t)&copies[0];
        __asm volatile("wfi" ::: "memory");
        RESULTS[1] = TIMER_SLEEP;
        RESULTS[2] = DMA_FLAG(5);
        __asm volatile("wfi" ::: "memory");
        RESULTS[3] = TIMER_SLEEP;
        EVENTS_TAKE = 0;
        DMA_DOORBELL = (uint32_t)&copies[12];
        wait_for_event();
        RESULTS[4] = TIMER_SLEEP;
        RESULTS[5] = DMA_FLAG(6);
    """)
    assert results[0] == 0
    assert WORK_OF_THE_DMA / 2 < results[1] == results[3] < results[4]
    assert (results[2], results[5]) == (1, 1)


def test_an_event_before_it_is_taken_back_ends_no_later_wfi() -> None:
    results = ran("""
        DMA_DOORBELL = (uint32_t)&copies[0];
        while (DMA_FLAG(5) == 0) {
        }
        EVENTS_TAKE = 0;
        DMA_DOORBELL = (uint32_t)&copies[12];
        __asm volatile("wfi" ::: "memory");
        RESULTS[0] = DMA_FLAG(6);
        RESULTS[1] = TIMER_SLEEP;
    """)
    assert results[0] == 1
    assert results[1] > 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("RESULTS[0] = 1; REGISTER(0xE2000000U) = (uint32_t)copies;", "a doorbell without a barrier"),
        (
            'RESULTS[0] = 1; __asm volatile("fence r, iorw" ::: "memory"); REGISTER(0xE2000000U) = (uint32_t)copies;',
            "a doorbell without a barrier",
        ),
        ('__asm volatile("csrw mie, zero\\n\\twfi");', "a WFI that nothing ends"),
        ('__asm volatile("csrsi mstatus, 8\\n\\twfi");', "something the emulated core cannot do"),
        ('__asm volatile("csrw mstatus, zero\\n\\tfmv.w.x fa0, zero");', "an undefined instruction"),
        ("REGISTER(0xE000ED88U) = 0;", "a store to address 0xe000ed88, where nothing is"),
        ("*(volatile uint32_t *)0x40 = 0;", "a store to address 0x00000040 in its own code"),
        ("*(volatile uint8_t *)0xE2000100U = 1;", "register that is not an aligned word (offset 0x100)"),
    ],
)
def test_a_fault_is_told(body: str, told: str) -> None:
    assert told in fault_of(body)
