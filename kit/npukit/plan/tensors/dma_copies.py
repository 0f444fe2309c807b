"""Two-dimensional DMA copies between boxes of two buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from npukit.net.box import Box

LARGEST = 0xFFFF
"""Limit of a descriptor: rows, and bytes per row."""

FLIT_BYTES = 16
"""Bytes that cross a link per cycle."""


@dataclass(frozen=True)
class Copy:
    """A copy of `rows` rows of `row_bytes`. Offsets count from the start of each buffer."""

    source_offset: int
    destination_offset: int
    row_bytes: int
    rows: int
    source_stride: int
    destination_stride: int

    @property
    def flits(self) -> int:
        """The flits of the copy, at least one: an empty copy is a signal."""
        return max(self.rows * -(-self.row_bytes // FLIT_BYTES), 1)


@dataclass(frozen=True)
class _Loop:
    count: int
    source_stride: int
    destination_stride: int


@lru_cache(maxsize=1 << 16)
def copies(box: Box, source: Box, destination: Box, element_bytes: int) -> tuple[Copy, ...]:
    """The copies of `box` from a dense buffer over `source` to a dense buffer over `destination`."""
    row_bytes, loops = _collapsed(box, source, destination, element_bytes)
    starts = [_offset(box, outer, element_bytes) for outer in (source, destination)]
    if not loops and row_bytes > LARGEST:
        return tuple(_long_row(starts, row_bytes))
    rows = max(loops, key=lambda loop: loop.count, default=_Loop(1, row_bytes, row_bytes))
    outer = [loop for loop in loops if loop is not rows]
    return tuple(
        Copy(
            starts[0] + sum(i * loop.source_stride for i, loop in zip(index, outer, strict=True)),
            starts[1] + sum(i * loop.destination_stride for i, loop in zip(index, outer, strict=True)),
            row_bytes,
            rows.count,
            rows.source_stride,
            rows.destination_stride,
        )
        for index in product(*(range(loop.count) for loop in outer))
    )


def _collapsed(box: Box, source: Box, destination: Box, element_bytes: int) -> tuple[int, list[_Loop]]:
    """The bytes of the longest row contiguous in both buffers, and the loops around the row, outermost first."""
    strides = list(zip(_strides(source, element_bytes), _strides(destination, element_bytes), strict=True))
    row_bytes, loops = element_bytes, []
    for count, (from_stride, to_stride) in reversed(list(zip(box.shape, strides, strict=True))):
        if count == 1:
            continue
        inner = loops[0] if loops else None
        if inner is None and from_stride == to_stride == row_bytes:
            row_bytes *= count
        elif inner and (from_stride, to_stride) == (
            inner.count * inner.source_stride,
            inner.count * inner.destination_stride,
        ):
            loops[0] = _Loop(count * inner.count, inner.source_stride, inner.destination_stride)
        else:
            loops.insert(0, _Loop(count, from_stride, to_stride))
    return row_bytes, loops


def _strides(box: Box, element_bytes: int) -> list[int]:
    shape = box.shape
    return [element_bytes * prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _offset(box: Box, outer: Box, element_bytes: int) -> int:
    return sum(a * b for a, b in zip(box.offset_in(outer), _strides(outer, element_bytes), strict=True))


def _long_row(starts: Sequence[int], row_bytes: int) -> Iterator[Copy]:
    """Copies of a row too long for one descriptor, in whole flits."""
    step = LARGEST // FLIT_BYTES * FLIT_BYTES
    for begin in range(0, row_bytes, step):
        size = min(step, row_bytes - begin)
        yield Copy(starts[0] + begin, starts[1] + begin, size, 1, size, size)
