"""A race in words: two unordered accesses to a byte, each with its PE, place and purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npukit.board.noc import DESCRIPTOR_BYTES
from npukit.emulator.messages import message, place
from npukit.emulator.program import object_at, where

_CORE, _FETCH, _LANDING, _WORK, _WINDOW_LOAD, _WINDOW_STORE = range(1, 7)
"""`enum deed_kind` in npukit_emulator/core/races.h."""


@dataclass(frozen=True)
class AddressNames:
    """AddressNames of addresses in a board's programs and accelerators."""

    elf: Callable[[int], Path | None]
    """ELF file of each PE."""
    accelerators: Sequence[str]

    def object(self, pe: int, address: int) -> str:
        elf = self.elf(pe)
        return (object_at(elf, address) if elf else "") or f"{address:#x}"

    def instruction(self, pe: int, pc: int) -> str:
        elf = self.elf(pe)
        return f"pc {pc:#x} {where(elf, pc) if elf else ''}".rstrip()


def race_text(race: Mapping[str, Any], names: AddressNames) -> str:
    """A sentence with both accesses, the earlier first."""
    spot = f"address {race['address']:#x} of {place(race['place'])}"
    first, second = (_side(side, race["address"], names) for side in race["sides"])
    return f"a race on {spot}: {first}, then {second}, and nothing orders the two"


def _side(side: Mapping[str, int], address: int, names: AddressNames) -> str:
    pe, at = side["pe"], side["address"]
    does = "stores" if side["stores"] else "loads"
    if side["kind"] in (_CORE, _WINDOW_LOAD, _WINDOW_STORE):
        return f"the core of PE {pe} {does} it at {names.instruction(pe, at)}"
    if side["kind"] == _WORK:
        return f"{names.accelerators[side['device']]} of PE {pe} {does} it for the command {names.object(pe, at)}"
    part = "its descriptor" if side["kind"] == _FETCH and 0 <= address - at < DESCRIPTOR_BYTES else "it"
    return f"the DMA of PE {pe} {does} {part} for {message(side['tag'])}, descriptor {names.object(pe, at)}"
