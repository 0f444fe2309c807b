"""A check that the PEs' memories still hold what was loaded, by digests that the firmware makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from npukit.errors import DoesNotFit
from npukit.link.messages import DRAM_PE
from npukit.link.session import Session
from npukit.project.build_folder import Build
from npukit.project.digest import digest, word_of
from npukit.project.elf import Elf
from npukit.project.image import Image

_WORD = 4
_PIECE_BYTES = 1 << 20
_MOST_WORDS = 64
"""Differing words that are looked for in one region: what lost more was not hit by single bits."""
_STEP_BYTES, _PATCH, _RUN, _SUBMIT = 8, 6, 7, 8
"""Rows of `struct net_step`, and of its kinds those that write into commands."""


@dataclass(frozen=True)
class Region:
    """Bytes that a PE was loaded with and nothing changes, from an address on. The PE may stand for a chip's DRAM."""

    pe: int
    name: str
    address: int
    data: bytes

    def __str__(self) -> str:
        place = f"the DRAM of chip {self.pe - DRAM_PE}" if self.pe >= DRAM_PE else f"PE {self.pe}"
        return f"the {self.name} of {place}"

    @cached_property
    def patches(self) -> frozenset[tuple[int, int]]:
        """Words that its table of steps writes into commands, and what: such a command differs from what was loaded."""
        starts = [at for at in range(0, len(self.data) - _STEP_BYTES, _WORD) if self.data[at] == _PATCH]
        return frozenset(found for at in starts if (found := self._patch_at(at)))

    def _patch_at(self, start: int) -> tuple[int, int] | None:
        at = start
        while at + _STEP_BYTES <= len(self.data) and self.data[at] == _PATCH:
            at += _STEP_BYTES
        if at + _STEP_BYTES > len(self.data) or self.data[at] not in (_RUN, _SUBMIT):
            return None
        return self._word(at + _WORD) + _WORD * self.data[start + 1], self._word(start + _WORD)

    def _word(self, at: int) -> int:
        return int.from_bytes(self.data[at : at + _WORD], "little")


def check_memory(session: Session, build: Build) -> int:
    """Compare all that was loaded with what is there; how many bytes that was. An error names what differs."""
    checked, patches = 0, dict[int, frozenset[tuple[int, int]]]()
    for region in _regions(build):
        checked += len(region.data)
        for start in range(0, len(region.data), _PIECE_BYTES):
            piece = region.data[start : start + _PIECE_BYTES]
            if session.digest(region.address + start, len(piece), region.pe) != digest(piece):
                _explain(session, build, region, start, piece, patches)
    return checked


def _explain(
    session: Session,
    build: Build,
    region: Region,
    start: int,
    piece: bytes,
    patches: dict[int, frozenset[tuple[int, int]]],
) -> None:
    """Refuse a piece that differs, unless only in what the PE's own table has written there."""
    words = _differing(session, region, region.address + start, piece)
    if region.pe not in patches:
        all_of_pe = (each.patches for each in _regions(build) if each.pe == region.pe)
        patches[region.pe] = frozenset[tuple[int, int]]().union(*all_of_pe)
    for count, (address, got, want) in enumerate(words):
        if (address, got) not in patches[region.pe] or count == _MOST_WORDS:
            raise DoesNotFit(
                f"{region} is not what was loaded: the word at {address:#x} is {got:#010x}, and was {want:#010x}",
                facts=["what the network computed since cannot be trusted"],
                tries=["restart the board (npukit monitor --reset), which loads it again", "npukit validate"],
            )


def _differing(session: Session, region: Region, address: int, data: bytes) -> Iterator[tuple[int, int, int]]:
    """Address, content and former content of the words that differ, found by halving."""
    if session.digest(address, len(data), region.pe) == digest(data):
        return
    if len(data) <= _WORD:
        yield address, word_of(session.digest(address, len(data), region.pe)), int.from_bytes(data, "little")
        return
    half = -(-len(data) // (2 * _WORD)) * _WORD
    yield from _differing(session, region, address, data[:half])
    yield from _differing(session, region, address + half, data[half:])


def _regions(build: Build) -> Iterator[Region]:
    for image in build.images():
        yield from _regions_of(image)
    dram = build.dram()
    for chip in build.manifest.chips if dram else ():
        yield Region(DRAM_PE + chip, "constants", 0, dram or b"")


def _regions_of(image: Image) -> Iterator[Region]:
    elf = Elf(image.elf)
    for name, start, end in (
        ("code", "__code_start", "__code_end"),
        ("constants", "__constants_start", "__constants_end"),
    ):
        data = _loaded(elf, elf.symbols[start], elf.symbols[end])
        for pe in image.pes if data else ():
            yield Region(pe, name, elf.symbols[start], data)
    for overlay in image.overlays:
        yield Region(overlay.pe, "own data", overlay.address, overlay.data)


def _loaded(elf: Elf, start: int, end: int) -> bytes:
    """The image's bytes from an address on."""
    for address, data in elf.segments():
        if address <= start and end <= address + len(data):
            return data[start - address : end - address]
    return b""
