"""The mesh image: each distinct program once, and the program of each PE (`docs/protocol.md`, section 6)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.project.images.elf import Elf
from npukit.project.images.image import Image, Overlay

MAGIC = b"NPKM"
FORMAT = 1
NAME_BYTES = 32

_HEADER = struct.Struct("<4s8I32s16s")
_PROGRAM = struct.Struct("<II")
_SEGMENT = struct.Struct("<III")
_PE = struct.Struct("<II")
_OVERLAY = struct.Struct("<IIII")
_WORD = 4


@dataclass(frozen=True)
class Segment:
    """Bytes to load at an address of a PE's SRAM."""

    address: int
    data: bytes


@dataclass(frozen=True)
class ImageProgram:
    """A program of one or more PEs."""

    segments: tuple[Segment, ...]
    pes: tuple[int, ...]


def mesh_image(board: Board, images: Sequence[Image], build_id: bytes) -> bytes:
    """The mesh image of these images on this board. Equal images give equal bytes."""
    overlays = [overlay for image in images for overlay in image.overlays]
    return pack_mesh_image(board, distinct_programs(images), overlays, build_id)


def pack_mesh_image(
    board: Board, programs: Sequence[ImageProgram], overlays: Sequence[Overlay], build_id: bytes
) -> bytes:
    """Programs and overlays in the loader's input format."""
    segments = [segment for program in programs for segment in program.segments]
    pes = sorted((pe, index) for index, program in enumerate(programs) for pe in program.pes)
    ordered = [overlay for same in equal_overlays(overlays) for overlay in same]
    counts = (len(programs), len(segments), len(pes), len(ordered))
    sizes = (_PROGRAM.size, _SEGMENT.size, _PE.size, _OVERLAY.size)
    data = _Data(_HEADER.size + sum(size * count for size, count in zip(sizes, counts, strict=True)))
    tables, first = bytearray(), 0
    for program in programs:
        tables += _PROGRAM.pack(first, len(program.segments))
        first += len(program.segments)
    for segment in segments:
        tables += _SEGMENT.pack(segment.address, *data.place(segment.data))
    for entry in pes:
        tables += _PE.pack(*entry)
    for overlay in ordered:
        tables += _OVERLAY.pack(overlay.pe, overlay.address, *data.place(_whole_words(overlay.data)))
    size, name = data.start + len(data.bytes), board.name.encode()
    header = _HEADER.pack(MAGIC, FORMAT, size, board.pe_count, board.memory[0].size, *counts, name, build_id)
    return header + tables + data.bytes


def distinct_programs(images: Sequence[Image]) -> tuple[ImageProgram, ...]:
    """The images as programs. Images with equal bytes become one program."""
    pes: dict[tuple[Segment, ...], list[int]] = {}
    for image in images:
        segments = tuple(Segment(address, _whole_words(data)) for address, data in Elf(image.elf).segments())
        pes.setdefault(segments, []).extend(image.pes)
    return tuple(ImageProgram(segments, tuple(sorted(who))) for segments, who in pes.items())


def equal_overlays(overlays: Sequence[Overlay]) -> list[list[Overlay]]:
    """Overlays grouped by equal address and bytes. Chips with equal work have equal data."""
    found: dict[tuple[int, bytes], list[Overlay]] = {}
    for overlay in sorted(overlays, key=lambda overlay: (overlay.pe, overlay.address)):
        found.setdefault((overlay.address, overlay.data), []).append(overlay)
    return list(found.values())


def _whole_words(data: bytes) -> bytes:
    return data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")


class _Data:
    """The data of an image, from offset `start` on: each distinct piece once."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.bytes = bytearray()
        self._offsets: dict[bytes, int] = {}

    def place(self, piece: bytes) -> tuple[int, int]:
        """Size of a piece, and its offset in the image."""
        if piece not in self._offsets:
            self._offsets[piece] = self.start + len(self.bytes)
            self.bytes += piece
        return len(piece), self._offsets[piece]
