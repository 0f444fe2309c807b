"""Cycles of a DRAM by the manual's rules, counted by hand, and bursts of random copies, counted byte by byte."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.board.noc import Packets
from npukit.plan.predict.dram import DramTiming, bursts_and_rows

BOARD = load_board("pe-mesh")
assert BOARD.noc is not None
NOC = BOARD.noc
CALM = NOC.model_copy(update={"dram_refresh_interval": 0})
BURST, ROW, OPENS = NOC.dram_burst_bytes, NOC.dram_row_bytes, NOC.dram_row_cycles
PACKET = (NOC.packet_flits - 1) * 16


def copy_of(address: int, row_bytes: int, rows: int = 1, stride: int = 0, destinations: int = 1) -> Packets:
    return replace(NOC.packets(rows, row_bytes, destinations), address=address, stride=stride)


def bursts(load: Packets) -> int:
    return bursts_and_rows(BURST, ROW, NOC.packet_flits - 1, load)[0]


@given(st.integers(0, 9000), st.integers(1, 2000), st.integers(1, 20), st.integers(0, 5000))
def test_each_piece_takes_the_bursts_that_hold_its_bytes(address: int, row_bytes: int, rows: int, stride: int) -> None:
    expected, order = 0, list[int]()
    for row in range(rows):
        bytes_of_row = [*range(address + row * stride, address + row * stride + row_bytes)]
        for begin in range(0, row_bytes, PACKET):
            expected += len({byte // BURST for byte in bytes_of_row[begin : begin + PACKET]})
        order += [byte // ROW for byte in bytes_of_row]
    found, touched = bursts_and_rows(BURST, ROW, NOC.packet_flits - 1, copy_of(address, row_bytes, rows, stride))
    assert found == expected
    assert [*touched] == [row for i, row in enumerate(order) if i == 0 or order[i - 1] != row]


def test_a_multicast_in_groups_reads_once_per_group() -> None:
    assert bursts(copy_of(0, 64, destinations=60)) == 1
    assert bursts(copy_of(0, 64, destinations=61)) == 2


def test_a_signal_takes_no_burst() -> None:
    assert DramTiming(CALM).access(50, 50, copy_of(0, 0, 0)) == (50, 50)


def test_a_row_opens_once() -> None:
    dram = DramTiming(CALM)
    assert dram.access(100, 100, copy_of(0, 64)) == (100 + OPENS, 104 + OPENS)
    assert dram.access(200, 200, copy_of(128, 64)) == (200, 204)


def test_a_row_opens_while_another_bank_is_read() -> None:
    dram = DramTiming(CALM)
    _, end = dram.access(0, 0, copy_of(0, 496))
    assert dram.access(5, 5, copy_of(ROW, 64)) == (end, end + 4)


def test_a_bank_opens_another_row_behind_its_last_burst() -> None:
    dram = DramTiming(CALM)
    _, end = dram.access(0, 0, copy_of(0, 496))
    assert dram.access(5, 5, copy_of(ROW * NOC.dram_banks, 64)) == (end + OPENS, end + OPENS + 4)


def test_refresh_takes_its_share_of_a_long_copy_and_of_many_short_ones() -> None:
    share = (NOC.dram_refresh_cycles + OPENS) / (NOC.dram_refresh_interval - NOC.dram_refresh_cycles)
    long, calm = (DramTiming(noc).access(0, 0, copy_of(0, 60_000))[1] for noc in (NOC, CALM))
    assert abs(long - calm * (1 + share)) < 2
    dram = DramTiming(NOC)
    end = [dram.access(0, 0, copy_of(0, 64))[1] for _ in range(1000)][-1]
    assert abs(end - 4000 * (1 + share)) < 20
