"""Constants of the network-on-chip, equal on all boards: hardware manual, section 4.2."""

from __future__ import annotations

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
