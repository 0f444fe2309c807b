"""Trace records: what the built-in emulator wrote down of a run, to the cycle."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

RECORD = np.dtype(
    [(name, "<u8") for name in ("start", "end")] + [(name, "<u4") for name in ("kind", "pe", "a", "b", "c", "queued")]
)
"""`struct trace_record` of the worker."""


class RecordKind(IntEnum):
    """The kind of a record, and the meaning of its numbers `a`, `b`, `c`."""

    MARK = 1
    """A PE comes to instruction `a`."""
    SLEEP = 2
    """A PE's core sleeps."""
    WORK = 3
    """A PE's accelerator `a` does one command."""
    TRANSFER = 4
    """A descriptor of a PE moves `c` bytes from place `a` to place `b`, from leaving to arriving, `queued` before."""
    LINK = 5
    """A link from a PE to the PE `a` is taken by `c` bytes; `b` counts the links of a border of chips."""
    DRAM = 6
    """The DRAM of chip `pe` is taken."""


@dataclass(frozen=True, eq=False)
class TraceRecords:
    """Records in the order in which they became known, which is not the order of time."""

    records: np.ndarray

    @classmethod
    def from_bytes(cls, data: bytes) -> TraceRecords:
        return cls(np.frombuffer(data, RECORD))

    def of_pes(self, first: int, end: int) -> TraceRecords:
        """The records of PEs from `first` up to before `end`, and none of DRAMs."""
        pes, is_dram = self.records["pe"], self.records["kind"] == RecordKind.DRAM
        return TraceRecords(self.records[(first <= pes) & (pes < end) & ~is_dram])

    def of(self, kind: RecordKind) -> np.ndarray:
        """The records of one kind, by time."""
        chosen = self.records[self.records["kind"] == kind]
        return chosen[np.argsort(chosen["start"], kind="stable")]
