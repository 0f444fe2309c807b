from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from npukit.board.noc import LARGEST_COPY
from npukit.net.box import Box
from npukit.plan.tensors.dma_copies import copies


@st.composite
def three_boxes(draw: st.DrawFn) -> tuple[Box, Box, Box]:
    """A box and two enclosing boxes."""
    rank = draw(st.integers(1, 4))
    spans = [sorted(draw(st.lists(st.integers(0, 7), min_size=2, max_size=2, unique=True))) for _ in range(rank)]
    box = Box(tuple(s[0] for s in spans), tuple(s[1] for s in spans))
    outer = [
        Box(
            tuple(a - draw(st.integers(0, min(a, 2))) for a in box.start),
            tuple(b + draw(st.integers(0, 2)) for b in box.stop),
        )
        for _ in range(2)
    ]
    return box, outer[0], outer[1]


@given(three_boxes(), st.sampled_from([1, 4]))
def test_copies_move_the_box_and_nothing_else(boxes: tuple[Box, Box, Box], size: int) -> None:
    box, source, destination = boxes
    values = np.random.default_rng(0).integers(0, 256, (*source.shape, size), np.uint8)
    flat, got = values.reshape(-1), np.zeros(destination.elements * size, np.uint8)
    for copy in copies(box, source, destination, size):
        for row in range(copy.rows):
            a = copy.source_offset + row * copy.source_stride
            b = copy.destination_offset + row * copy.destination_stride
            got[b : b + copy.row_bytes] = flat[a : a + copy.row_bytes]
    want = np.zeros((*destination.shape, size), np.uint8)
    want[part(box, destination)] = values[part(box, source)]
    assert np.array_equal(got, want.reshape(-1))


def part(box: Box, outer: Box) -> tuple[slice, ...]:
    return tuple(slice(o, o + n) for o, n in zip(box.offset_in(outer), box.shape, strict=True))


def test_whole_rows_of_an_image_are_one_row_of_bytes() -> None:
    whole = Box.whole((1, 20, 10, 8))
    (copy,) = copies(Box((0, 4, 0, 0), (1, 9, 10, 8)), whole, whole, 1)
    assert (copy.rows, copy.row_bytes, copy.flits) == (1, 400, 25)


def test_a_channel_weight_tile_is_one_descriptor_of_a_row_a_pixel() -> None:
    whole = Box.whole((1, 6, 5, 32))
    (copy,) = copies(Box((0, 0, 0, 16), (1, 6, 5, 32)), whole, whole, 1)
    assert (copy.rows, copy.row_bytes, copy.flits) == (30, 16, 30)


def test_a_row_longer_than_a_descriptor_is_several() -> None:
    whole = Box.whole((1, 100_000))
    parts = copies(whole, whole, whole, 1)
    assert sum(part.row_bytes for part in parts) == 100_000
    assert max(part.row_bytes for part in parts) <= LARGEST_COPY
