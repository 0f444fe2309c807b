"""Two-dimensional DMA copies between boxes of two buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from npukit.board.noc import FLIT_BYTES, LARGEST_COPY
from npukit.net.box import Box


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


@lru_cache(maxsize=1 << 16)
def copies(box: Box, source: Box, destination: Box, element_bytes: int) -> tuple[Copy, ...]:
    """The copies of `box` from a dense buffer over `source` to a dense buffer over `destination`."""
    row_bytes, loops = _collapsed(box, source, destination, element_bytes)
    starts = [offset(box, outer, element_bytes) for outer in (source, destination)]
    if not loops and row_bytes > LARGEST_COPY:  # too long for one descriptor: cut into whole flits
        step = LARGEST_COPY // FLIT_BYTES * FLIT_BYTES
        cuts = [(begin, min(step, row_bytes - begin)) for begin in range(0, row_bytes, step)]
        return tuple(Copy(starts[0] + begin, starts[1] + begin, size, 1, size, size) for begin, size in cuts)
    rows = max(loops, key=lambda loop: loop[0], default=(1, row_bytes, row_bytes))
    outer = [loop for loop in loops if loop is not rows]
    steps = product(*(range(count) for count, _, _ in outer))
    moves = ([sum(i * loop[end] for i, loop in zip(index, outer, strict=True)) for end in (1, 2)] for index in steps)
    return tuple(Copy(starts[0] + here, starts[1] + there, row_bytes, *rows) for here, there in moves)


def _collapsed(box: Box, source: Box, destination: Box, element_bytes: int) -> tuple[int, list[tuple[int, int, int]]]:
    """The bytes of the longest row contiguous in both buffers, and the loops around the row, outermost first: the count
    and the stride in each buffer."""
    pairs = [*zip(strides(source.shape, element_bytes), strides(destination.shape, element_bytes), strict=True)]
    row_bytes, loops = element_bytes, []
    for size, (here, there) in reversed([*zip(box.shape, pairs, strict=True)]):
        if size == 1:
            continue
        count, *inner = loops[0] if loops else (0, 0, 0)
        if not loops and here == there == row_bytes:
            row_bytes *= size
        elif loops and [here, there] == [count * stride for stride in inner]:
            loops[0] = (size * count, *inner)
        else:
            loops.insert(0, (size, here, there))
    return row_bytes, loops


def strides(shape: Sequence[int], element_bytes: int) -> list[int]:
    """Bytes between neighbours along each axis of a dense buffer."""
    return [element_bytes * prod(shape[axis + 1 :]) for axis in range(len(shape))]


def offset(box: Box, outer: Box, element_bytes: int) -> int:
    """The byte of a dense buffer over `outer` at which a box begins."""
    return sum(a * b for a, b in zip(box.offset_in(outer), strides(outer.shape, element_bytes), strict=True))
