"""The calls in the code of a frame, read from an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from npukit.host.budget import BUILD
from npukit.host.parallel import apart
from npukit.project.images.elf import Elf
from npukit.project.images.image import Image
from npukit.project.images.walk import frame_of

FRAME = "net_run"
_OBSERVED = "net_observe"
"""The part of an observed frame that a program in the form of a table calls from its loop."""
_FRAME_CALLER = "net_frame"
_RUNS = ("run", "rpc_run", "rpc_run_frame")
"""Functions that run frames and count their cost. A compiler may inline the first into the second."""
_COUNT = "hal_count"


@dataclass(frozen=True)
class CallSites:
    """The call of the frame, and the calls within it: the callee's name by the address of the call."""

    callees: Mapping[int, str]
    after: Mapping[int, int]
    """The return address of each call."""
    count_begins: frozenset[int] = frozenset()
    """Addresses after reading the counters before the first frame of a run."""
    count_ends: frozenset[int] = frozenset()
    """Addresses after reading the counters at the end of each frame. A frame lasts from one reading to the next."""

    def marks(self) -> list[int]:
        """All addresses to record with a time stamp."""
        return sorted({*self.callees, *self.after.values(), *self.count_begins, *self.count_ends})


def call_sites(image: Image) -> CallSites:
    """The calls by branch-and-link. A call without a return has no visible end."""
    return apart(partial(_call_sites, image.elf), str(image.elf), BUILD, image.elf.stat().st_size)


def _call_sites(path: Path) -> CallSites:
    elf = Elf(path)
    within = [each for name in (FRAME, _OBSERVED) for each in _calls_of(elf, name) if each.name != _OBSERVED]
    calls = [*within, *_only(FRAME, _calls_of(elf, _FRAME_CALLER))]
    begins = [each for name in _RUNS for each in _only(_COUNT, _calls_of(elf, name))]
    ends = _only(_COUNT, _calls_of(elf, _FRAME_CALLER))
    return CallSites(
        {each.site: each.name for each in calls},
        {each.site: each.after for each in calls},
        frozenset(each.after for each in begins),
        frozenset(each.after for each in ends),
    )


class _Call(NamedTuple):
    site: int
    after: int
    name: str


def _calls_of(elf: Elf, caller: str) -> list[_Call]:
    frames = [frame_of(elf, elf.functions[address]) for address in elf.addresses_of(caller)]
    calls = [(call, call.callee) for frame in frames for call in frame.calls]
    return [_Call(call.site, call.after, elf.functions[to].name) for call, to in calls if to is not None]


def _only(callee: str, calls: Iterable[_Call]) -> list[_Call]:
    return [each for each in calls if each.name == callee]
