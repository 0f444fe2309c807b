"""Prediction of the time from power-on to the first instruction of a board's firmware, before any flashing."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.board.board import Board
from npukit.boot.loader import flash_of
from npukit.boot.mesh_image import ImageProgram, equal_overlays
from npukit.project.images.image import Overlay

_CHUNK_BYTES = 4096
_WORD = 4
# Cycles of the loader's code, compiled by GCC and Zig (benchmarks/mesh/mesh_load.py).
_BASE_CYCLES = 150_000
_DIGEST_CYCLES_PER_BYTE = 51
_COPY_CYCLES_PER_BYTE = 2
_SEND_CYCLES = 700
_LIST_CYCLES_PER_PE = 6
_SIGNATURE_CYCLES = 4_600_000


def load_cycles(
    board: Board, programs: Sequence[ImageProgram], overlays: Sequence[Overlay], image_bytes: int, *, signed: bool
) -> int:
    """Cycles to load programs and overlays from an image of `image_bytes`. `signed`: the signature is checked."""
    sent = sum(_segment_cycles(len(each.data), len(program.pes)) for program in programs for each in program.segments)
    sent += sum(_segment_cycles(len(same[0].data), len(same)) for same in equal_overlays(overlays))
    # The boot controller copies the largest program at most: the root PE's.
    largest = max(sum(len(segment.data) for segment in program.segments) for program in programs)
    copied = flash_of(board).loader_bytes + largest
    return (
        _BASE_CYCLES
        + image_bytes * _DIGEST_CYCLES_PER_BYTE
        + signed * _SIGNATURE_CYCLES
        + sent
        + copied // _WORD * flash_of(board).copy_cycles_per_word
    )


def _segment_cycles(size: int, pes: int) -> int:
    """Cycles to send a segment once to all PEs of a program, by multicast."""
    chunks = -(-size // _CHUNK_BYTES)
    return size * _COPY_CYCLES_PER_BYTE + chunks * (_SEND_CYCLES + pes * _LIST_CYCLES_PER_PE)
