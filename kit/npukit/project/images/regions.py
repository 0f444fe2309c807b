"""Loaded memory that never changes, and the digests for the firmware's self test."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from struct import pack

from npukit.data import data_folder
from npukit.host.budget import BUILD
from npukit.host.parallel import apart
from npukit.project.images.elf import Elf
from npukit.project.images.image import Image, Overlay
from npukit.structs import bytes_of

CODE, CONSTANTS, OWN_DATA = REGIONS = ("code", "constants", "own data")
"""Names of the regions, in the order of the firmware's `rpc_loaded`."""
FACTOR = 0xFFFFFF4E
"""The factor of digests: the largest for which FACTOR * 2^32 - 1 is a safe prime."""
_START, _WORD = 1, 4
_LOW = 0xFFFF_FFFF
_STEP_BYTES = bytes_of("net_step")
_EXPECTED = "self_test_expected"


@lru_cache(maxsize=256)
def digest(data: bytes) -> int:
    """A polynomial of the words of `data`, padded with zeros, as in `firmware/rpc/digest.c`."""
    state = _START
    for word in array("I", data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")):
        state = FACTOR * (state & _LOW) + (state >> 32) + word
    return state


def word_of(digest: int) -> int:
    """The word with this digest."""
    return digest - FACTOR * _START


@dataclass(frozen=True)
class LoadedRegion:
    """Loaded bytes that never change, from an address on. `pe` may stand for a chip's DRAM."""

    pe: int
    place: str
    name: str
    address: int
    data: bytes

    def __str__(self) -> str:
        return f"the {self.name} of {self.place}"

    @property
    def patches(self) -> frozenset[tuple[int, int]]:
        """Address and value of the words that a table of steps patches into commands. Patched commands differ from
        loaded commands.

        Empty for code, which has no table, only bytes that may resemble a table. Constants may do so too, though
        seldom.
        """
        return frozenset() if self.name == CODE else _patches_in(self.data)

    def holds(self, address: int) -> bool:
        return self.address <= address < self.address + len(self.data)


@cache
def step_kinds() -> Mapping[str, int]:
    """The number of each kind of step in the firmware."""
    header = (data_folder("firmware") / "include/net.h").read_text(encoding="utf-8")
    kinds = header.partition("enum net_step_kind {")[2].partition("};")[0]
    return {name: number for number, name in enumerate(re.findall(r"^ +(NET_\w+),", kinds, re.M))}


@lru_cache(maxsize=256)
def _patches_in(data: bytes) -> frozenset[tuple[int, int]]:
    patch = step_kinds()["NET_PATCH"]
    starts = [at for at in range(0, len(data) - _STEP_BYTES, _WORD) if data[at] == patch]
    return frozenset(found for at in starts if (found := _patch_at(data, at)))


def _patch_at(data: bytes, start: int) -> tuple[int, int] | None:
    """The address and value written by a patch row at `start`, or None if no patch row begins there."""
    at, kinds = start, step_kinds()
    while at + _STEP_BYTES <= len(data) and data[at] == kinds["NET_PATCH"]:
        at += _STEP_BYTES
    if at + _STEP_BYTES > len(data) or data[at] not in (kinds["NET_RUN"], kinds["NET_SUBMIT"]):
        return None
    command = _word(data, at + _WORD)
    return None if command % _WORD else (command + _WORD * data[start + 1], _word(data, start + _WORD))


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _WORD], "little")


def regions_of(image: Image) -> Mapping[int, list[LoadedRegion]]:
    """The regions of each of the image's PEs."""
    by_pe: dict[int, list[LoadedRegion]] = defaultdict(list)
    for region in apart(lambda: [*_regions_in(image)], str(image.elf), BUILD, image.elf.stat().st_size):
        by_pe[region.pe].append(region)
    return by_pe


def _regions_in(image: Image) -> Iterator[LoadedRegion]:
    elf = Elf(image.elf)
    for name, start, end in ((CODE, "__code_start", "__code_end"), (CONSTANTS, "__constants_start", "__constants_end")):
        first, last = elf.symbols[start], elf.symbols[end]
        holding = ((at, loaded) for at, loaded in elf.segments() if at <= first and last <= at + len(loaded))
        data = next((loaded[first - at : last - at] for at, loaded in holding), b"")
        for pe in image.pes if data else ():
            yield LoadedRegion(pe, f"PE {pe}", name, first, data)
    for overlay in (each for each in image.overlays if each.address != elf.symbols.get(_EXPECTED)):
        yield LoadedRegion(overlay.pe, f"PE {overlay.pe}", OWN_DATA, overlay.address, overlay.data)


def with_digests(image: Image) -> Image:
    """The image of self-testing firmware, with the regions' expected digests as overlays (`firmware/self_test`)."""
    place = Elf(image.elf).symbols[_EXPECTED]
    told = (Overlay(pe, place, _expected(regions)) for pe, regions in regions_of(image).items())
    return replace(image, overlays=(*image.overlays, *told))


def _expected(regions: list[LoadedRegion]) -> bytes:
    """`struct expected`: the digest of each region, or 0 for regions with commands that the table of steps patches."""
    changed = {address for region in regions for address, _ in region.patches}
    steady = {each.name: each for each in regions if each.name == CODE or not any(map(each.holds, changed))}
    digests = pack("<3Q", *(digest(steady[name].data) if name in steady else 0 for name in REGIONS))
    return digests + pack("<Q", digest(digests))
