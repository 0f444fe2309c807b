"""Devices of a PE on one bus: the order at the SRAM port, interrupts, sizes of registers, scratchpads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, run_to_sleep, words
from emulator.test_clocked import CYCLES, compiled
from emulator.test_models import DEVICE_H, DOUBLER, library
from helpers import HOST_COMPILER, needs
from npukit.board.board import Board, load_board
from npukit.data import data_folder
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.emulator.rtl import rtl_libraries
from npukit.errors import NpukitError
from npukit.project.images.image import Image

__all__ = ["library"]

DOUBLER_SLOT = '[[accelerator]]\nname = "doubler"\nbase = 0xE600_0000\n[accelerator.figures]\nslowness = 123\n'
MOVER_SLOT = """[[accelerator]]
name = "mover"
base = 0xE700_0000
register_bytes = 0x2000
interrupt = 5
scratchpad = { base = 0xE800_0000, bytes = 0x100 }
"""
MOVED = 4
"""Accesses of the SRAM port for a work of the mover."""

HEAD = """
#include "board.h"
#define DOUBLER REGISTER(0xE6000000U)
#define DOUBLER_BUSY REGISTER(0xE6000004U)
#define START REGISTER(0xE7001800U)
#define BUSY REGISTER(0xE7001804U)
#define ENDED REGISTER(0xE7001808U)
#define PAD(type, at) (*(volatile type *)(0xE8000000U + (at)))
"""
SIZES = (
    HEAD
    + """
int main(void)
{
    for (unsigned i = 0; i < 64; i++) {
        PAD(uint8_t, i) = (uint8_t)i;
    }
    PAD(uint16_t, 1) = 0xABCD;
    RESULTS[0] = PAD(uint32_t, 0);
    RESULTS[1] = PAD(uint16_t, 6);
    RESULTS[2] = PAD(uint8_t, 63);
    __asm volatile("dsb");
    START = 0x11000;
    while (BUSY) {
        wait_for_event();
    }
    return 0;
}
"""
)
BOTH = (
    HEAD
    + """
int main(void)
{
    RESULTS[0] = 21;
    __asm volatile("dsb");
    DOUBLER = 0x10000U;
    START = 0x11000;
    while (DOUBLER_BUSY | BUSY) {
    }
    return 0;
}
"""
)
POOL = (
    HEAD
    + """
static uint32_t pool[24] __attribute__((aligned(16))) = {0};
int main(void)
{
    pool[1] = 4;
    pool[2] = 0x12000;
    pool[5] = 0x14000;
    pool[6] = 20 | 20 << 16;
    pool[7] = 20;
    pool[8] = 1;
    pool[9] = 1 | 1 << 16;
    pool[10] = pool[11] = 1;
    pool[12] = 1 | 1 << 16;
    pool[13] = 0x01011414;
    pool[14] = 0x0101;
    pool[15] = 0x7F800000;
    ARRAY_DOORBELL = (uint32_t)pool;
    for (int i = 0; i < MOVES; i++) {
        START = 0x11000;
        while (BUSY) {
        }
    }
    while (ARRAY_STATUS & 1) {
    }
    RESULTS[0] = ARRAY_BUSY_CYCLES;
    return 0;
}
"""
)
POOL_CYCLES = 28 + 401 + 12
"""Cycles of the maximum of 20 x 20 values in `POOL`."""
INTERRUPTED = (
    HEAD
    + """
static volatile uint32_t taken, at;
static void on_mover(void)
{
    at = TIMER_CYCLES;
    taken++;
}
static void (*const table[48])(void) __attribute__((aligned(512))) = {[16 + 5] = on_mover};
int main(void)
{
    REGISTER(0xE000ED08U) = (uint32_t)table;
    REGISTER(0xE000E100U) = 1U << 5;
    __asm volatile("dsb\\n\\tisb" ::: "memory");
    START = 0x11000;
    WAIT;
    RESULTS[0] = taken;
    RESULTS[1] = at - ENDED;
    return 0;
}
"""
)


@pytest.fixture(scope="module")
def mover(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mover") / "mover.so"
    source = DOUBLER.with_name("mover.c")
    subprocess.run([*HOST_COMPILER, "-shared", "-fPIC", f"-I{DEVICE_H}", str(source), "-o", str(made)], check=True)
    return made


def board_with(folder: Path, *slots: str, like: str = "pe-mesh") -> Board:
    path = folder / "devices.toml"
    path.write_text("\n".join(((data_folder("boards") / f"{like}.toml").read_text(), *slots)))
    return load_board(str(path))


def test_the_core_reaches_a_scratchpad_in_all_sizes_and_registers_above_4_kb(tmp_path: Path, mover: Path) -> None:
    board = board_with(tmp_path, MOVER_SLOT)
    with Emulator(board, [Image(program(SIZES), (0,))], {"mover": mover}) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 3, RESULTS) == [0x03ABCD00, 0x0706, 63]
        assert emulator.read_memory(0, 0x11000, 64) == bytes((0, 0xCD, 0xAB, *range(3, 64)))


def test_on_a_risc_v_core_an_interrupt_is_an_event(tmp_path: Path, mover: Path) -> None:
    """The core sleeps in `wait_for_event` until the work ends."""
    board = board_with(tmp_path, MOVER_SLOT, like="pe-mesh-rv")
    image = Image(program(SIZES.replace('__asm volatile("dsb");', ""), "rv32imafc"), (0,))
    with Emulator(board, [image], {"mover": mover}) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 3, RESULTS) == [0x03ABCD00, 0x0706, 63]
        assert emulator.read_memory(0, 0x11000, 64) == bytes((0, 0xCD, 0xAB, *range(3, 64)))


def test_an_access_behind_the_scratchpad_is_a_fault(tmp_path: Path, mover: Path) -> None:
    source = SIZES.replace("PAD(uint8_t, 63);", "PAD(uint8_t, 0x100);")
    with (
        Emulator(board_with(tmp_path, MOVER_SLOT), [Image(program(source), (0,))], {"mover": mover}) as emulator,
        pytest.raises(CoreFault, match="where nothing is"),
    ):
        run_to_sleep(emulator)


def test_a_scratchpad_without_place_is_refused(tmp_path: Path, mover: Path) -> None:
    board = board_with(tmp_path, MOVER_SLOT.replace("0xE800_0000", "0xE800_0010"))
    with pytest.raises(NpukitError, match="scratchpad of an accelerator lies at no multiple"):
        Emulator(board, [Image(program(SIZES), (0,))], {"mover": mover})


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["events", "clocked", "beside a model"])
def test_devices_contend_for_the_port_in_their_order(
    tmp_path: Path, library: Path, mover: Path, kind: str, *, first: bool
) -> None:
    """The doubler stands still in cycles in which the port is not free. By events, or beside such a model, the doubler
    comes last; clocked and first in the board file, it loses no cycle."""
    clocked = compiled(tmp_path)
    slots = (DOUBLER_SLOT, MOVER_SLOT) if first else (MOVER_SLOT, DOUBLER_SLOT)
    models = {"mover": mover, "doubler": clocked if kind == "clocked" else library}
    rtl = {"doubler": clocked} if kind == "beside a model" else {}
    with Emulator(board_with(tmp_path, *slots), [Image(program(BOTH), (0,))], models, rtl=rtl) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1, RESULTS) == [42]
        lost = 0 if kind == "clocked" and first else MOVED
        assert emulator.counters(0).npu_busy == CYCLES + lost + MOVED
        assert emulator.compared().works == (kind == "beside a model")


@pytest.mark.parametrize("moves", [0, 1, 5])
@pytest.mark.parametrize("rtl", [False, pytest.param(True, marks=needs("verilator"))])
def test_the_mac_array_stands_still_while_other_devices_have_the_port(
    tmp_path: Path, mover: Path, moves: int, *, rtl: bool
) -> None:
    board = board_with(tmp_path, MOVER_SLOT)
    libraries = rtl_libraries(board, {}) if rtl else {}
    image = Image(program(POOL.replace("MOVES", str(moves))), (0,))
    with Emulator(board, [image], {"mover": mover}, rtl=libraries) as emulator:
        run_to_sleep(emulator)
        assert words(emulator, 0, 1, RESULTS) == [POOL_CYCLES + moves * MOVED]
        assert emulator.compared().works == rtl


@pytest.mark.parametrize(
    ("wait", "latest"),
    [('__asm volatile("wfi")', 20), ("while (!taken) { }", 30), ("while (!taken) { wait_for_event(); }", 20)],
)
def test_a_device_interrupts_the_core(tmp_path: Path, mover: Path, wait: str, latest: int) -> None:
    source = INTERRUPTED.replace("WAIT", wait)
    with Emulator(board_with(tmp_path, MOVER_SLOT), [Image(program(source), (0,))], {"mover": mover}) as emulator:
        run_to_sleep(emulator)
        taken, after = words(emulator, 0, 2, RESULTS)
        assert taken == 1
        assert 0 <= after <= latest


def test_without_a_number_in_the_board_file_the_event_register_is_set(tmp_path: Path, mover: Path) -> None:
    board = board_with(tmp_path, MOVER_SLOT.replace("interrupt = 5\n", ""))
    with Emulator(board, [Image(program(SIZES), (0,))], {"mover": mover}) as emulator:
        run_to_sleep(emulator)
    with (
        Emulator(
            board, [Image(program(INTERRUPTED.replace("WAIT", '__asm volatile("wfi")')), (0,))], {"mover": mover}
        ) as emulator,
        pytest.raises(CoreFault, match="a WFI that nothing ends"),
    ):
        run_to_sleep(emulator)
