"""STM32F4 registers as the firmware sets them, in memory of this machine at the board's addresses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers import CHECKOUT, HOST_COMPILER
from npukit.board.board import load_board
from npukit.project.render import render_board_header

REGISTERS = """
#include "hal/stm32f4.c"
#include <stdio.h>
#include <sys/mman.h>

static const uintptr_t pages[] = {0x40000000, 0x40004000, 0x40011000, 0x40020000, 0x40023000, 0xE0001000, 0xE000E000};

void clock_begin(void)
{
}

int main(int count, char **words)
{
    (void)words;
    for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (mmap((void *)pages[i], 0x1000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED) {
            return 1;
        }
    }
    RCC->control = count > 1 ? PLL_READY : 0;
    hal_init();
    printf("%x %x %x %u\\n", FLASH_ACCESS, RCC->pll, RCC->configuration, USART->baud);
    return 0;
}
"""


def registers(folder: Path, board: str, *words: str) -> list[str]:
    """Registers of flash, PLL and clock configuration in hexadecimal, and the UART's divisor."""
    render_board_header(load_board(board), folder / "board.h")
    (folder / "registers.c").write_text(REGISTERS)
    firmware = CHECKOUT / "firmware"
    include = [f"-I{path}" for path in (folder, firmware, firmware / "include", firmware / "hal")]
    command = [
        *HOST_COMPILER,
        "-std=gnu11",
        "-w",
        *include,
        str(folder / "registers.c"),
        "-o",
        str(folder / "registers"),
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([folder / "registers", *words], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_at_full_speed_flash_waits_and_the_buses_are_slower(tmp_path: Path) -> None:
    """16 MHz / 8 * 168 / 2 are 168 MHz. USART 2 gets 42 MHz, and its divisor gives 115068 baud."""
    pll, clocks = 8 | 168 << 6 | 7 << 24, 5 << 10 | 4 << 13 | 2
    found = registers(tmp_path, "stm32f4-disco", "the PLL locks")
    assert found == [f"{5 | 1 << 8 | 3 << 9:x}", f"{pll:x}", f"{clocks:x}", "365"]


def test_a_pll_that_is_not_there_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    assert registers(tmp_path, "stm32f4-disco")[2] == "0"


@pytest.mark.parametrize("words", [(), ("the PLL could",)])
def test_qemus_board_stays_as_it_comes_out_of_reset(words: tuple[str, ...], tmp_path: Path) -> None:
    assert registers(tmp_path, "netduinoplus2", *words) == ["0", "0", "0", "139"]
