"""Boxes of a tensor as boxes of its reshape, a tensor with the same elements in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod

import numpy as np

from npukit.net.box import Box
from npukit.plan.tensors.boxes import Boxes, from_boxes, to_boxes, volumes

Spans = tuple[np.ndarray, np.ndarray]
"""The first and the last element of each run, in row-major order."""


def reshaped(boxes: Boxes, shape: Sequence[int], other: Sequence[int]) -> Boxes:
    """The smallest boxes of shape `other` that hold the elements of the given boxes and are boxes of both shapes."""
    result = np.zeros((len(boxes), len(other), 2), np.int64)
    result[:, :, 1] = 1
    for here, there in _equal_axes(shape, other):
        if len(here) == len(there) == 1:
            result[:, there] = boxes[:, here]
            continue
        first, last = _run(boxes[:, here], [shape[axis] for axis in here], [other[axis] for axis in there])
        for axis, step in zip(there, _steps([other[axis] for axis in there]), strict=True):
            result[:, axis, 0], result[:, axis, 1] = first // step % other[axis], last // step % other[axis] + 1
    result[volumes(boxes) == 0] = 0
    return result


def reshaped_box(box: Box, shape: Sequence[int], other: Sequence[int]) -> Box:
    return to_boxes(reshaped(from_boxes([box]), shape, other))[0]


def _equal_axes(shape: Sequence[int], other: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Groups of axes of two shapes with the same elements, each group as small as possible, without axes of size 1."""
    places = [axis for axis, size in enumerate(shape) if size != 1]
    others = [axis for axis, size in enumerate(other) if size != 1]
    while places:
        here, there = [places.pop(0)], [others.pop(0)]
        while (missing := prod(shape[axis] for axis in here) - prod(other[axis] for axis in there)) != 0:
            (there if missing > 0 else here).append((others if missing > 0 else places).pop(0))
        yield here, there


def _run(boxes: Boxes, sizes: Sequence[int], others: Sequence[int]) -> Spans:
    """Runs of elements around boxes over axes `sizes`, grown until they are boxes over the axes `others` too."""
    steps = _steps(sizes)
    run = boxes[:, :, 0] @ steps, (boxes[:, :, 1] - 1) @ steps
    while True:
        grown = _whole(*_whole(*run, steps), _steps(others))
        if all(np.array_equal(*ends) for ends in zip(run, grown, strict=True)):
            return run
        run = grown


def _whole(first: np.ndarray, last: np.ndarray, steps: np.ndarray) -> Spans:
    """Runs grown to boxes over axes with strides `steps`: all axes after the first with several positions are taken
    whole."""
    apart = np.zeros(len(first), bool)
    for step in steps:
        here = (first // step != last // step) & ~apart
        apart |= here
        first, last = np.where(here, first // step * step, first), np.where(here, (last // step + 1) * step - 1, last)
    return first, last


def _steps(sizes: Sequence[int]) -> np.ndarray:
    """The stride of each axis in elements."""
    return np.array([*accumulate(reversed(sizes[1:]), int.__mul__, initial=1)][::-1], np.int64)
