"""Devices called in each cycle, alone and beside a C model that works by events."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, words
from emulator.test_models import DEVICE_H, DOUBLER, PROGRAM, board_with_doubler, library
from helpers import HOST_COMPILER
from npukit.emulator.builtin import Emulator
from npukit.emulator.schedule import Schedule
from npukit.errors import NpukitError
from npukit.project.images.image import Image

__all__ = ["library"]

CLOCKED = DOUBLER.with_name("clocked_doubler.c")
CYCLES = 123
PORT = 9
"""Cycles of the DMA at the port meanwhile: the end of the fetch, four flits read, four written."""

COPIES = """
#include "board.h"
#define DOUBLER REGISTER(0xE6000000U)
#define DOUBLER_BUSY REGISTER(0xE6000004U)
static uint32_t descriptor[12] __attribute__((aligned(16)));
int main(void)
{
    descriptor[1] = 1;
    descriptor[3] = 0x11000;
    descriptor[5] = 0x12000;
    descriptor[6] = 64 | 1 << 16;
    descriptor[9] = 0xFFFF;
    RESULTS[0] = 21;
    __asm volatile("dsb");
    REGISTER(0xE2000000U) = (uint32_t)descriptor;
    DOUBLER = 0x10000U;
    while (DOUBLER_BUSY) {
        wait_for_event();
    }
    return 0;
}
"""
"""The DMA copies 64 bytes within the PE, in 8 cycles of the SRAM port, while the device works."""


def compiled(folder: Path, defect: int = 0) -> Path:
    made = folder / f"clocked-{defect}.so"
    command = [*HOST_COMPILER, "-shared", "-fPIC", f"-DDEFECT={defect}", f"-I{DEVICE_H}", str(CLOCKED), "-o", str(made)]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="module")
def clocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("clocked"))


def test_a_clocked_device_takes_its_cycles_and_wakes_the_core(tmp_path: Path, clocked: Path) -> None:
    with Emulator(board_with_doubler(tmp_path), [Image(program(PROGRAM), (0,))], {"doubler": clocked}) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 2, RESULTS) == [42, 21]
        assert emulator.counters(0).npu_busy == CYCLES


@pytest.mark.parametrize("rtl", [False, True])
def test_dma_at_the_port_delays_a_clocked_device_as_it_delays_a_model(
    tmp_path: Path, clocked: Path, library: Path, *, rtl: bool
) -> None:
    models = {"doubler": library if rtl else clocked}
    board, image = board_with_doubler(tmp_path), Image(program(COPIES), (0,))
    with Emulator(board, [image], models, rtl={"doubler": clocked} if rtl else {}) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1, RESULTS) == [42]
        assert emulator.counters(0).npu_busy == CYCLES + PORT
        assert emulator.compared().works == rtl


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_disturbed_schedule_delays_both_alike(tmp_path: Path, clocked: Path, library: Path, seed: int) -> None:
    board, image = board_with_doubler(tmp_path), Image(program(COPIES), (0,))
    with Emulator(board, [image], {"doubler": library}, rtl={"doubler": clocked}) as emulator:
        emulator.disturb(Schedule(seed))
        run_to_sleep(emulator)
        assert words(emulator, 0, 1, RESULTS) == [42]
        assert emulator.compared().works == 1


@pytest.mark.parametrize(
    ("defect", "told"),
    [
        (1, "address 0x10000 holds 0x2b by the RTL, 0x2a by the model"),
        (2, f"after {CYCLES + 1} cycles, the model in cycle .* after {CYCLES}"),
        (3, "its register 0x4 reads as 0x3 in RTL, as 0x1 by the model"),
        (4, "the RTL has not ended by cycle"),
    ],
)
def test_a_device_that_differs_from_its_model_is_named(tmp_path: Path, library: Path, defect: int, told: str) -> None:
    rtl = {"doubler": compiled(tmp_path, defect)}
    source = PROGRAM if defect == 3 else PROGRAM.replace("DOUBLER_BUSY) {", "RESULTS[0] == 21) {")
    board, image = board_with_doubler(tmp_path), Image(program(source), (0,))
    with (
        Emulator(board, [image], {"doubler": library}, rtl=rtl) as emulator,
        pytest.raises(NpukitError, match=f"PE 0 stopped: the RTL of doubler differs from its model.*{told}"),
    ):
        run_to_sleep(emulator)
