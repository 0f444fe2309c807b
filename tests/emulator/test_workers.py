"""PEs that run side by side: the results do not depend on the number of host cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.programs import program, run_to_sleep, words
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.project.images.image import Image

WORKERS = (1, 2, 4)

RING = """
#include "board.h"
static _Alignas(16) uint32_t descriptor[12];
static uint32_t churn(uint32_t seed, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        seed = seed * 1664525U + 1013904223U;
        seed ^= seed >> (seed & 15U);
    }
    return seed;
}
int main(void)
{
    const uint32_t pe = DMA_PE, next = (pe + 1U) % 16U;
    const uint32_t fields[12] = {0, 1, pe, 0x10000U, next, 0x10800U + 4U * pe, 4U | 1U << 16, 0, 0, 0x01FFU, 0, 0};
    for (uint32_t i = 0; i < 12; i++) {
        ((volatile uint32_t *)descriptor)[i] = fields[i];
    }
    for (uint32_t round = 1; round <= 6; round++) {
        RESULTS[0] = churn(pe + round, 3000U + 997U * ((pe * round) % 7U));
        DMA_DOORBELL = (uint32_t)descriptor;
        while (DMA_FLAG(1) < round) {
            if (pe % 3U) {
                wait_for_event();
            }
        }
        RESULTS[round] = TIMER_CYCLES;
    }
    return 0;
}
"""


def everything(elf: Path, workers: int) -> list[object]:
    with Emulator(load_board("pe-mesh"), [Image(elf, tuple(range(16)))], workers=workers) as emulator:
        run_to_sleep(emulator)
        return [(emulator.counters(pe), words(emulator, pe, 600)) for pe in range(16)]


@pytest.mark.exhaustive
def test_bytes_cycles_and_instructions_are_the_same() -> None:
    elf = program(RING)
    first = everything(elf, 1)
    assert all(everything(elf, workers) == first for workers in (2, 4, 2, 4))


def test_of_several_faults_the_same_is_told() -> None:
    source = """#include "board.h"
int main(void)
{
    const uint32_t pe = DMA_PE;
    for (volatile uint32_t i = 0; i < 40U * (16U - pe); i++) {
    }
    if (pe == 3 || pe == 7 || pe == 9) {
        __asm volatile("udf #0");
    }
    return 0;
}
"""
    elf, board = program(source), load_board("pe-mesh")
    told = []
    for workers in WORKERS:
        with Emulator(board, [Image(elf, tuple(range(16)))], workers=workers) as emulator:
            with pytest.raises(CoreFault) as raised:
                emulator.read(20)
            told.append((raised.value.pe, raised.value.message, raised.value.facts))
    assert told[0][0] in (3, 7, 9)
    assert told == [told[0]] * len(WORKERS)


def test_a_stop_at_any_cycle_is_the_same() -> None:
    elf = program(RING)
    seen = []
    for workers in WORKERS:
        with Emulator(load_board("pe-mesh"), [Image(elf, tuple(range(16)))], workers=workers) as emulator:
            for cycles in (777, 12_345, 40_000):
                emulator.run(cycles)
            seen.append([(emulator.counters(pe).instructions, words(emulator, pe, 64)) for pe in range(16)])
    assert seen == [seen[0]] * len(WORKERS)
