"""Boxes of reshapes, compared with the elements inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
import pytest

from npukit.net.box import Box
from npukit.plan.tensors.reshapes import reshaped_box

SHAPES = (
    ((12,), (3, 4)),
    ((2, 6), (4, 3)),
    ((2, 3, 2), (6, 2)),
    ((1, 2, 6), (2, 1, 2, 3)),
    ((2, 2, 3), (3, 4)),
    ((3, 4), (4, 3)),
    ((1,), (1, 1)),
)


def boxes_of(shape: Sequence[int]) -> Iterator[Box]:
    for spans in product(*(combinations(range(size + 1), 2) for size in shape)):
        yield Box(tuple(start for start, _ in spans), tuple(stop for _, stop in spans))


def elements(box: Box, shape: Sequence[int]) -> frozenset[int]:
    places = np.ix_(*(range(start, stop) for start, stop in zip(box.start, box.stop, strict=True)))
    return frozenset(np.ravel_multi_index(places, tuple(shape)).ravel().tolist())


@pytest.mark.parametrize(("shape", "other"), [pair[::way] for pair in SHAPES for way in (1, -1)])
def test_smallest_box_of_both_shapes(shape: Sequence[int], other: Sequence[int]) -> None:
    both = {elements(box, shape) for box in boxes_of(shape)} & {elements(box, other) for box in boxes_of(other)}
    for box in boxes_of(shape):
        needed = elements(box, shape)
        least = min((held for held in both if held >= needed), key=len)
        assert elements(reshaped_box(box, shape, other), other) == least


def test_nothing_stays_nothing() -> None:
    assert reshaped_box(Box((0, 2), (3, 2)), (3, 4), (12,)).elements == 0
