"""A check that the PEs' memories still hold the loaded images, by digests from the firmware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npukit.errors import Differs
from npukit.link.messages import DRAM_PE
from npukit.link.session import Session
from npukit.project.build_folder import Build
from npukit.project.images.regions import CONSTANTS, LoadedRegion, digest, regions_of, word_of

_WORD = 4
_PIECE_BYTES = 1 << 20


def check_memory(session: Session, build: Build) -> int:
    """Compare the loaded bytes with the memories. Returns the number of bytes. An error names the first difference."""
    checked = 0
    for of_pe, region in ((each, region) for each in _regions(build) for region in each):
        checked += len(region.data)
        for start in range(0, len(region.data), _PIECE_BYTES):
            piece = region.data[start : start + _PIECE_BYTES]
            if session.digest(region.address + start, len(piece), region.pe) != digest(piece):
                _explain(session, of_pe, region, region.address + start, piece)
    return checked


def _explain(session: Session, of_pe: Sequence[LoadedRegion], region: LoadedRegion, start: int, piece: bytes) -> None:
    """Raise an error for a differing piece, unless the PE's own table has patched the words."""
    patches = frozenset[tuple[int, int]]().union(*(each.patches for each in of_pe))
    for address, got, want in _differing(session, region, start, piece):
        if (address, got) not in patches:
            raise Differs(
                f"{region} is not what was loaded: the word at {address:#x} is {got:#010x}, and was {want:#010x}",
                facts=["what the network computed since cannot be trusted"],
                tries=["restart the board (npukit monitor --reset), which loads it again", "npukit validate"],
            )


def _differing(session: Session, region: LoadedRegion, address: int, data: bytes) -> Iterator[tuple[int, int, int]]:
    """Address, present content and loaded content of each word that differs, found by bisection."""
    if session.digest(address, len(data), region.pe) == digest(data):
        return
    if len(data) <= _WORD:
        yield address, word_of(session.digest(address, len(data), region.pe)), int.from_bytes(data, "little")
        return
    half = -(-len(data) // (2 * _WORD)) * _WORD
    yield from _differing(session, region, address, data[:half])
    yield from _differing(session, region, address + half, data[half:])


def _regions(build: Build) -> Iterator[Sequence[LoadedRegion]]:
    for image in build.images():
        yield from regions_of(image).values()
    dram = build.dram()
    for chip in build.manifest.chips if dram else ():
        yield [LoadedRegion(DRAM_PE + chip, f"the DRAM of chip {chip}", CONSTANTS, 0, dram or b"")]
