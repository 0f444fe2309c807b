"""Timing model of a chip's DRAM: bursts, open rows of banks, refresh. Hardware manual, section 4.7."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from npukit.board.board import Noc
from npukit.board.noc import FLIT_BYTES, Packets


class DramTiming:
    """The data bus and the banks of a DRAM."""

    def __init__(self, noc: Noc) -> None:
        self._noc = noc
        self._free, self._refresh = 0, 0
        self._rows: list[int | None] = [None] * noc.dram_banks
        self._banks = [0] * noc.dram_banks

    def access(self, at: int, known: int, load: Packets) -> tuple[int, int]:
        """The begin of a copy's first burst and the end of its last. `at`: earliest begin. `known`: the cycle from
        which its rows may be opened."""
        noc = self._noc
        bursts, rows = bursts_and_rows(noc.dram_burst_bytes, noc.dram_row_bytes, noc.packet_flits - 1, load)
        cycles = -(-bursts * noc.dram_burst_bytes // noc.dram_bytes_per_cycle)
        time = begin = max(at, self._free)
        for i, row in enumerate(rows):
            bank = row % noc.dram_banks
            if self._rows[bank] != row:
                time = max(time, max(self._banks[bank], known) + noc.dram_row_cycles)
                self._rows[bank] = row
            begin = begin if i else time
            time += cycles * (i + 1) // len(rows) - cycles * i // len(rows)
            self._banks[bank] = time
        self._free = time + self._refreshed(time - begin)
        return begin, self._free

    def _refreshed(self, busy: int) -> int:
        """Cycles of refresh and of rows opened again, as a share of busy cycles."""
        interval, cycles = self._noc.dram_refresh_interval, self._noc.dram_refresh_cycles
        if not interval:
            return 0
        self._refresh += busy * (cycles + self._noc.dram_row_cycles)
        taken, self._refresh = divmod(self._refresh, interval - cycles)
        return taken


@lru_cache(maxsize=1 << 16)
def bursts_and_rows(burst: int, row: int, packet: int, load: Packets) -> tuple[int, tuple[int, ...]]:
    """The number of bursts of a copy, and the rows of the memory in order. `burst`, `row`: bytes. `packet`: flits of a
    packet behind its header."""
    bursts, rows = 0, list[int]()
    for begin, end in _pieces(packet, load):
        bursts += (end - 1) // burst - begin // burst + 1
        touched = range(begin // row, (end - 1) // row + 1)
        rows += touched[1:] if rows and rows[-1] == touched[0] else touched
    return bursts, tuple(rows)


def _pieces(packet: int, load: Packets) -> Iterator[tuple[int, int]]:
    """First address and end of each row, or of a row's pieces in packets. A multicast in groups reads per group."""
    room, flits = (packet - load.lists) * FLIT_BYTES, load.rows * -(-load.row_bytes // FLIT_BYTES)
    for i in list(range(load.rows)) * (load.data // flits if flits else 0):
        begin = load.address + i * load.stride
        for at in range(0, load.row_bytes, room):
            yield begin + at, begin + min(at + room, load.row_bytes)
