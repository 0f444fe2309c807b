"""Trace records: events of a run on the built-in emulator, exact to the cycle."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

RECORD = np.dtype(
    [(name, "<u8") for name in ("start", "end")] + [(name, "<u4") for name in ("kind", "pe", "a", "b", "c", "queued")]
)
"""`struct trace_record` of the worker."""


class RecordKind(IntEnum):
    """Kinds of records, and the meaning of their numbers `a`, `b`, `c`."""

    MARK = 1
    """A PE reaches instruction `a`."""
    SLEEP = 2
    """A PE's core sleeps."""
    WORK = 3
    """A PE's accelerator `a` executes one command."""
    TRANSFER = 4
    """A descriptor of a PE moves `c` bytes from place `a` to place `b`, after `queued` cycles in the queue. The record
    lasts from departure to arrival."""
    LINK = 5
    """A link from a PE to the PE `a` carries `c` bytes; `b` counts the links of a border of chips."""
    DRAM = 6
    """The DRAM of chip `pe` is busy."""


@dataclass(frozen=True, eq=False)
class TraceRecords:
    """Records in the order of recording, which is not the order of time."""

    records: np.ndarray

    @classmethod
    def from_bytes(cls, data: bytes) -> TraceRecords:
        return cls(np.frombuffer(data, RECORD))

    def of_pes(self, first: int, end: int) -> TraceRecords:
        """Records of PEs from `first` up to before `end`, without DRAMs."""
        pes, is_dram = self.records["pe"], self.records["kind"] == RecordKind.DRAM
        return TraceRecords(self.records[(first <= pes) & (pes < end) & ~is_dram])

    def of(self, kind: RecordKind) -> np.ndarray:
        """Records of one kind, by time."""
        chosen = self.records[self.records["kind"] == kind]
        return chosen[np.argsort(chosen["start"], kind="stable")]
