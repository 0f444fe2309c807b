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
    return _Writer(board, build_id, programs, overlays).bytes()


def distinct_programs(images: Sequence[Image]) -> tuple[ImageProgram, ...]:
    """The images as programs. Images with equal bytes become one program."""
    pes: dict[tuple[Segment, ...], list[int]] = {}
    for image in images:
        pes.setdefault(_segments(image), []).extend(image.pes)
    return tuple(ImageProgram(segments, tuple(sorted(who))) for segments, who in pes.items())


def equal_overlays(overlays: Sequence[Overlay]) -> list[list[Overlay]]:
    """Overlays grouped by equal address and bytes. Chips with equal work have equal data."""
    found: dict[tuple[int, bytes], list[Overlay]] = {}
    for overlay in sorted(overlays, key=lambda overlay: (overlay.pe, overlay.address)):
        found.setdefault((overlay.address, overlay.data), []).append(overlay)
    return list(found.values())


def _segments(image: Image) -> tuple[Segment, ...]:
    return tuple(Segment(address, _whole_words(data)) for address, data in Elf(image.elf).segments())


def _whole_words(data: bytes) -> bytes:
    return data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")


class _Writer:
    def __init__(
        self, board: Board, build_id: bytes, programs: Sequence[ImageProgram], overlays: Sequence[Overlay]
    ) -> None:
        self.board = board
        self.build_id = build_id
        self.programs = programs
        self.overlays = [overlay for same in equal_overlays(overlays) for overlay in same]
        self.segments = [segment for program in programs for segment in program.segments]
        self.pes = sorted((pe, index) for index, program in enumerate(programs) for pe in program.pes)
        self.data = bytearray()
        self.places: dict[bytes, int] = {}
        """Offset of each piece in the data."""

    def bytes(self) -> bytes:
        tables = self._program_table() + self._segment_table() + self._pe_table() + self._overlay_table()
        return self._header(len(tables)) + tables + self.data

    @property
    def _data_offset(self) -> int:
        sizes = (
            (_PROGRAM, self.programs),
            (_SEGMENT, self.segments),
            (_PE, self.pes),
            (_OVERLAY, self.overlays),
        )
        return _HEADER.size + sum(entry.size * len(table) for entry, table in sizes)

    def _header(self, table_bytes: int) -> bytes:
        counts = (len(self.programs), len(self.segments), len(self.pes), len(self.overlays))
        size = _HEADER.size + table_bytes + len(self.data)
        board = (self.board.pe_count, self.board.memory[0].size)
        return _HEADER.pack(MAGIC, FORMAT, size, *board, *counts, self.board.name.encode(), self.build_id)

    def _program_table(self) -> bytes:
        table, first = b"", 0
        for program in self.programs:
            table += _PROGRAM.pack(first, len(program.segments))
            first += len(program.segments)
        return table

    def _segment_table(self) -> bytes:
        return b"".join(self._entry(segment.address, segment.data) for segment in self.segments)

    def _pe_table(self) -> bytes:
        return b"".join(_PE.pack(pe, program) for pe, program in self.pes)

    def _overlay_table(self) -> bytes:
        return b"".join(
            overlay.pe.to_bytes(_WORD, "little") + self._entry(overlay.address, _whole_words(overlay.data))
            for overlay in self.overlays
        )

    def _entry(self, address: int, data: bytes) -> bytes:
        if data not in self.places:
            self.places[data] = self._data_offset + len(self.data)
            self.data += data
        return _SEGMENT.pack(address, len(data), self.places[data])
