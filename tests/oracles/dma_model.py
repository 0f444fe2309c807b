"""A DMA descriptor in numpy: an independent reading of the hardware manual, section 4.2, to check the emulator."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import astuple, dataclass

import numpy as np

DESCRIPTOR_BYTES = 48
NO_FLAG = 0xFF
KIND_COPY = 1
MULTICAST = 1 << 8
DRAM = 0x8000_0000
"""Added to a chip's number in a PE field: the DRAM of this chip."""
THIS_CHIP = 0x4000_0000
"""Added to a PE's number within a chip, or to `DRAM`: on the chip of the PE that owns the DMA."""

_LAYOUT = struct.Struct("<6I 2H 2i 2BH 2I")


@dataclass(frozen=True)
class Descriptor:
    """Fields of a descriptor, in word order."""

    next: int = 0
    kind: int = KIND_COPY
    source_pe: int = 0
    source: int = 0
    destination_pe: int = 0
    destination: int = 0
    row_bytes: int = 0
    rows: int = 0
    source_stride: int = 0
    destination_stride: int = 0
    source_flag: int = NO_FLAG
    destination_flag: int = NO_FLAG

    def pack(self) -> bytes:
        return _LAYOUT.pack(*astuple(self), 0, 0, 0)


def copy(memories: Mapping[int, np.ndarray], descriptor: Descriptor) -> None:
    """Copy to one destination. `memories`: arrays of bytes by PE, modified in place."""
    columns = np.arange(descriptor.row_bytes)
    rows = np.arange(descriptor.rows)[:, None]
    taken = memories[descriptor.source_pe][descriptor.source + rows * descriptor.source_stride + columns].copy()
    for row, data in enumerate(taken):
        start = descriptor.destination + row * descriptor.destination_stride
        memories[descriptor.destination_pe][start : start + descriptor.row_bytes] = data
