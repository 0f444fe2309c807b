"""Check of an image from an untrusted source: an ELF file for its PEs' core, complete and within their memories."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from elftools.elf.enums import ENUM_E_MACHINE

from npukit.board.board import Board
from npukit.board.cores import CORES, CoreType
from npukit.errors import NpukitError

_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SEGMENT = struct.Struct("<8I")
_SECTION = struct.Struct("<10I")
_IDENT = b"\x7fELF\x01\x01\x01"
_LOADED, _NO_BYTES = 1, 8
MOST_SECTIONS = 256
"""Limit on segments, and on sections. Images have under 10 and under 40."""


def check_elf(path: Path, board: Board, pes: Sequence[int]) -> None:
    """Raise an error with the image's name and the fault. Later readers can then rely on the file's bounds."""
    fault = _fault(path.read_bytes(), board, [CORES[cpu] for cpu in {board.cpu_of(pe) for pe in pes}])
    if fault:
        raise NpukitError(f"image {path} cannot be read: {fault}", tries=["build again"])


def _fault(data: bytes, board: Board, cores: Sequence[CoreType]) -> str:
    if len(data) < _HEADER.size or not data.startswith(_IDENT):
        return "it is no ELF file of 32 bits"
    _, _, machine, _, _, segments, sections, _, _, segment_bytes, segment_count, section_bytes, section_count, _ = (
        _HEADER.unpack_from(data)
    )
    sizes = segment_bytes == _SEGMENT.size and (not section_count or section_bytes == _SECTION.size)
    for core in cores:
        if machine != ENUM_E_MACHINE[core.architecture.elf] or not sizes:
            return f"it is not for a {core.title}"
    if not 0 < segment_count <= MOST_SECTIONS or not 0 < section_count <= MOST_SECTIONS:
        return f"it has {segment_count:,} segments and {section_count:,} sections"
    ends = segments + segment_count * _SEGMENT.size, sections + section_count * _SECTION.size
    if max(ends) > len(data):
        return "it is cut off"
    faults = (*_segment_faults(data, segments, segment_count, board), *_section_faults(data, sections, section_count))
    return next(iter(faults), "")


def _segment_faults(data: bytes, start: int, count: int, board: Board) -> Iterator[str]:
    loaded = 0
    memories = [m for pe in range(board.pe_count if board.shares_memory else 1) for m in board.seen_by(pe).memory]
    for place in range(count):
        kind, offset, address, load, size, memory, _, _ = _SEGMENT.unpack_from(data, start + place * _SEGMENT.size)
        if kind != _LOADED:
            continue
        loaded += size
        if offset + size > len(data) or size > memory:
            yield f"segment {place} is cut off"
        for first, length in ((address, memory), (load, size)):
            if length and not any(m.origin <= first and first + length <= m.end for m in memories):
                yield f"segment {place} is for {first:#010x}, where {board.name} has no {length:,} bytes of memory"
    if not loaded:
        yield "it loads nothing"


def _section_faults(data: bytes, start: int, count: int) -> Iterator[str]:
    for place in range(count):
        _, kind, _, _, offset, size, *_ = _SECTION.unpack_from(data, start + place * _SECTION.size)
        if kind != _NO_BYTES and offset + size > len(data):
            yield f"section {place} is cut off"
