"""Renode's flash in C#, against section 7 of the hardware manual."""

from __future__ import annotations

import struct

import pytest

from emulator.renode.devices import Devices
from npukit.board.board import Board

ERASE, ADDRESS, DATA, STATUS, ERROR, CAUSE, START, RESTART, WATCHDOG = 0, 4, 8, 0xC, 0x10, 0x14, 0x1C, 0x20, 0x24


def flash_words(devices: Devices, offset: int, count: int) -> list[int]:
    return list(struct.unpack(f"<{count}I", devices.read(devices.flash_memory, offset, 4 * count)))


def program_words(devices: Devices, offset: int, *words: int) -> None:
    devices.set_flash(ADDRESS, offset)
    for word in words:
        devices.set_flash(DATA, word)
        devices.let_time_pass()


def test_the_flash_clears_bits_and_erases_pages(devices: Devices, board: Board) -> None:
    assert board.flash is not None
    page = board.flash.slot_offset(0)
    assert flash_words(devices, page, 2) == [0xFFFF_FFFF] * 2
    program_words(devices, page, 0x1234_5678, 0x0000_FFFF)
    assert flash_words(devices, page, 3) == [0x1234_5678, 0x0000_FFFF, 0xFFFF_FFFF]
    assert (devices.flash(ADDRESS), devices.flash(ERROR)) == (page + 8, 0)
    devices.set_flash(ERASE, page)
    assert devices.flash(STATUS) == 1
    assert flash_words(devices, page, 1) == [0x1234_5678]
    devices.let_time_pass()
    assert devices.flash(STATUS) == 0
    assert flash_words(devices, page, 2) == [0xFFFF_FFFF] * 2
    times = [board.flash.program_cycles] * 2 + [board.flash.erase_cycles]
    assert devices.events(0) == times


@pytest.mark.parametrize(
    ("writes", "error"),
    [
        ([(ERASE, 0x20000), (ERASE, 0x21000)], 1),
        ([(ERASE, 0x20004)], 2),
        ([(ERASE, 0x4000_0000)], 2),
        ([(ADDRESS, 0x20002), (DATA, 0)], 2),
        ([(ADDRESS, 0xFBFC), (DATA, 0)], 4),
        ([(ERASE, 0)], 4),
        ([(START, 0x100)], 6),
    ],
)
def test_what_the_flash_refuses(devices: Devices, writes: list[tuple[int, int]], error: int) -> None:
    for register, value in writes:
        devices.set_flash(register, value)
    assert devices.flash(ERROR) == error
    devices.set_flash(ERROR, 0)
    assert devices.flash(ERROR) == 0


def test_a_bit_that_is_0_cannot_become_1(devices: Devices) -> None:
    program_words(devices, 0x2_0000, 0xFFFF_00FF)
    program_words(devices, 0x2_0000, 0xFFFF_01FF)
    assert devices.flash(ERROR) == 3
    assert flash_words(devices, 0x2_0000, 1) == [0xFFFF_00FF]


def test_a_restart_ends_what_the_flash_does(devices: Devices) -> None:
    assert devices.flash(CAUSE) == 0
    devices.set_flash(ADDRESS, 0x2_0000)
    devices.set_flash(DATA, 0)
    devices.set_flash(RESTART, 1)
    devices.let_time_pass()
    assert (devices.flash(CAUSE), devices.flash(STATUS)) == (2, 0)
    assert flash_words(devices, 0x2_0000, 1) == [0xFFFF_FFFF]


def test_the_end_of_the_loader_area_is_programmed_and_never_erased(devices: Devices, board: Board) -> None:
    assert board.flash is not None
    once = board.flash.loader_bytes - board.flash.once_bytes
    program_words(devices, once, 0x1234_5678)
    assert flash_words(devices, once, 2) == [0x1234_5678, 0xFFFF_FFFF]
    assert devices.flash(ERROR) == 0
    devices.set_flash(ERASE, board.flash.loader_bytes - board.flash.page_bytes)
    assert devices.flash(ERROR) == 4


def test_the_watchdog_restarts_the_board_unless_it_is_told_not_to(devices: Devices) -> None:
    devices.set_flash(WATCHDOG, 5000)
    assert devices.flash(WATCHDOG) == 5000
    devices.set_flash(WATCHDOG, 0)
    devices.let_time_pass()
    assert (devices.flash(WATCHDOG), devices.flash(CAUSE)) == (0, 0)
    devices.set_flash(WATCHDOG, 5000)
    devices.let_time_pass()
    assert (devices.flash(WATCHDOG), devices.flash(CAUSE)) == (0, 3)
