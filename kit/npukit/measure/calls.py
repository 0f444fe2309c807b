"""Calls: where the code of a frame calls what, read from an image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npukit.project.disassembly import frame_of
from npukit.project.elf import Elf
from npukit.project.image import Image

FRAME = "net_run"
_FRAME_CALLER = "net_frame"


@dataclass(frozen=True)
class CallSites:
    """The calls that a frame makes and the call of the frame itself: the callee's name by the address of the call."""

    callees: Mapping[int, str]
    after: Mapping[int, int]
    """Where each call comes back to."""

    def marks(self) -> list[int]:
        """Every instruction worth knowing the time of."""
        return sorted({*self.callees, *self.after.values()})


def call_sites(image: Image) -> CallSites:
    """The calls by branch-and-link: one that does not come back has no end to see."""
    elf = Elf(image.elf)
    callees: dict[int, str] = {}
    after: dict[int, int] = {}
    for name in (FRAME, _FRAME_CALLER):
        for address in elf.addresses_of(name):
            for call in frame_of(elf, elf.functions[address]).calls:
                if call.callee is not None and name_matters(name, elf.functions[call.callee].name):
                    callees[call.site] = elf.functions[call.callee].name
                    after[call.site] = call.site + _BRANCH_AND_LINK_BYTES
    return CallSites(callees, after)


_BRANCH_AND_LINK_BYTES = 4


def name_matters(caller: str, callee: str) -> bool:
    """Of the frame's caller only the call of the frame."""
    return caller == FRAME or callee == FRAME
