"""Constants of the network-on-chip, equal on all boards: hardware manual, section 4.2."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from npukit.structs import bytes_of

DRAM = 0x8000_0000
"""Number of the first chip's DRAM, where descriptors and notes expect a PE. Chip n's DRAM is `DRAM + n`."""

NO_FLAG = 0xFF
"""Flag of a message that increments none, as in DRAM."""

FLIT_BYTES = 16
"""Bytes that cross a link per cycle. The MAC array and the DMA read and write as many at a time."""

LARGEST_COPY = 0xFFFF
"""Limit of a descriptor: rows, and bytes per row."""

DESCRIPTOR_BYTES = bytes_of("noc_descriptor")

DESTINATION_BYTES = bytes_of("noc_destination")
"""Bytes of an entry in a multicast's list of destinations."""

INNER_CYCLES = 2
"""Cycles between a router and its own PE or DRAM."""

ENTRIES_OF_A_FLIT = 4
"""Destinations in a flit of a multicast's list."""

MOST_DESTINATIONS = 60
"""Destinations of a packet. A longer list is sent in groups."""

REQUEST_FLITS = 2


@dataclass(frozen=True)
class Packets:
    """The packets of a copy of rows: hardware manual, section 4.3. `data`: flits of data. `lists`: flits of the list of
    destinations in each packet. `address`, `stride`: the rows' place in DRAM."""

    data: int
    count: int
    lists: int
    rows: int
    row_bytes: int
    address: int = 0
    stride: int = 0

    @property
    def flits(self) -> int:
        return self.data + self.count * (1 + self.lists)

    @property
    def longest(self) -> int:
        """Flits of a packet of the average length."""
        return -(-self.flits // self.count)


@lru_cache(maxsize=1 << 16)
def packets_of(flit: int, packet: int, rows: int, row_bytes: int, destinations: int) -> Packets:
    """The packets of a copy. `flit`: bytes. `packet`: most flits. `destinations`: entries of a list, or 1."""
    groups = -(-destinations // MOST_DESTINATIONS)
    lists = -(-min(destinations, MOST_DESTINATIONS) // ENTRIES_OF_A_FLIT) if destinations > 1 else 0
    room, row = packet - 1 - lists, -(-row_bytes // flit)
    if rows * row == 0:
        return Packets(0, groups, lists, 0, 0)
    count = -(-rows // (room // row)) if row <= room else rows * -(-row // room)
    return Packets(groups * rows * row, groups * count, lists, rows, row_bytes)
