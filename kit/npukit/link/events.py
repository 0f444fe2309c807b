"""Events of a PE and their cycles, recorded by the firmware of a build with `--trace`."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from npukit.link.messages import Malformed, Request


@dataclass(frozen=True)
class Event:
    """A step of a PE's frame began at `cycle` since reset, or (`FRAME_END`) the frame ended."""

    cycle: int
    step: int


FRAME_END = 0xFFFF


@dataclass(frozen=True)
class PeEvents:
    """Events of a PE from number `first` on. `written`: number of events since reset, with overwritten ones."""

    written: int
    first: int
    events: tuple[Event, ...]


@dataclass(frozen=True)
class ReadEvents(Request[PeEvents]):
    """Reads a PE's events from number `first` on, except overwritten ones. A reply holds as many as fit a packet."""

    kind, does = 15, "read its events"
    layout, told = "<I", ("first",)
    first: int

    def parse(self, payload: bytes) -> PeEvents:
        written, first = struct.unpack_from("<II", payload)
        found = tuple(Event(high << 32 | low, step) for low, high, step in struct.iter_unpack("<IHH", payload[8:]))
        if not min(self.first, written) <= first <= first + len(found) <= written:
            raise Malformed(f"events {first} to {first + len(found)} of {written}, when asked for {self.first} and on")
        return PeEvents(written, first, found)
