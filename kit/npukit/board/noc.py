"""Facts of the network-on-chip that no board file changes: hardware manual, section 4.2."""

from __future__ import annotations

DRAM = 0x8000_0000
"""Added to a chip's number: its DRAM, where descriptors and notes ask for a PE. By itself the first chip's."""

DESCRIPTOR_BYTES = 48

DESTINATION_BYTES = 8
"""An entry of the list of destinations of a multicast."""
