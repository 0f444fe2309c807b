"""Operations on many boxes at once: arrays [n, rank, 2] of starts and stops, one row per tile of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from npukit.net.box import Box

Boxes = np.ndarray

Split = tuple[int, ...]
"""The number of parts along each axis of an op's output. Tile i, in row-major order, lies on PE i of the plan's order.
"""

GRAINS = (16, 4)
"""Channels per step of the MAC array: full width, and minimum. Cuts along channels are at multiples of these."""

WIDE_GRAIN = GRAINS[0]
"""Channels per step of the MAC array at full width."""

Places = Mapping[str, Sequence[int]]
"""The places in the plan's order whose PEs carry an engine, ascending, for each engine that some PEs lack. Tile i of an
op on the engine lies at place i of these."""


def from_boxes(boxes: Sequence[Box]) -> Boxes:
    rows = [list(zip(box.start, box.stop, strict=True)) for box in boxes]
    return np.array(rows, np.int64).reshape(len(rows), len(rows[0]) if rows else 0, 2)


def to_boxes(boxes: Boxes) -> list[Box]:
    return [Box(tuple(row[:, 0].tolist()), tuple(row[:, 1].tolist())) for row in boxes]


def spread_out(boxes: Boxes, places: Sequence[int]) -> Boxes:
    """The boxes at the given places, and empty boxes at all places before and between."""
    spread = np.zeros((places[len(boxes) - 1] + 1, *boxes.shape[1:]), np.int64)
    spread[list(places[: len(boxes)])] = boxes
    return spread


def extents(boxes: Boxes) -> np.ndarray:
    """[n, rank]: the size of each box in each dimension, 0 if empty."""
    return np.maximum(boxes[..., 1] - boxes[..., 0], 0)


def volumes(boxes: Boxes) -> np.ndarray:
    return extents(boxes).prod(-1)


def hull(first: Boxes, second: Boxes) -> Boxes:
    """Row by row the smallest box around both."""
    return np.stack([np.minimum(first[..., 0], second[..., 0]), np.maximum(first[..., 1], second[..., 1])], -1)


def common(first: Boxes, second: Boxes) -> Boxes:
    """Row by row the intersection of both; possibly empty."""
    return np.stack([np.maximum(first[..., 0], second[..., 0]), np.minimum(first[..., 1], second[..., 1])], -1)


def meet(sources: Boxes, needs: Boxes) -> np.ndarray:
    """[needs, sources]: True where a need and a source intersect."""
    found = np.ones((len(needs), len(sources)), bool)
    for source, need in zip(np.moveaxis(sources, 1, 0), np.moveaxis(needs, 1, 0), strict=True):
        stops = np.minimum(need[:, None, 1], source[:, 1])
        found &= stops > np.maximum(need[:, None, 0], source[:, 0])
    return found


@cache
def grid(shape: tuple[int, ...], parts: tuple[int, ...], grains: tuple[int, ...]) -> Boxes:
    """The shape cut into `parts` along each axis, as evenly as multiples of the axis's grain allow.

    The last axis runs fastest: tiles with the same pixels are neighbours.
    """
    if not shape:
        return np.zeros((1, 0, 2), np.int64)
    cuts = [cut(size, count, grain) for size, count, grain in zip(shape, parts, grains, strict=True)]
    index = np.stack(np.meshgrid(*[np.arange(count) for count in parts], indexing="ij"), -1).reshape(-1, len(parts))
    spans = [np.stack([places[index[:, axis]], places[index[:, axis] + 1]], -1) for axis, places in enumerate(cuts)]
    return np.stack(spans, 1)


@cache
def cut(size: int, count: int, grain: int) -> np.ndarray:
    """The cut positions along an axis, at multiples of the grain, or of 2, 4, 8 ... grains if no part becomes larger.

    Coarser cuts let the parts of a tensor and of its strided result end at the same places.
    """
    units = -(-size // grain)
    if units >= 2 * count and -(-((units + 1) // 2) // count) * 2 <= -(-units // count):
        return cut(size, count, 2 * grain)
    return np.minimum(np.round(np.arange(count + 1) * units / count).astype(np.int64) * grain, size)


def grain(shape: Sequence[int], axis: int, parts: int) -> int:
    """The grain of a cut: 16 channels if there are enough, else 4, as the MAC array takes channels; 1 on other axes."""
    grains = GRAINS if axis == len(shape) - 1 else ()
    return next((grain for grain in grains if shape[axis] >= grain * parts), 1)


def tiles_of(shape: tuple[int, ...], split: Split) -> Boxes:
    """The tiles of an output in a split."""
    return grid(shape, split, tuple(grain(shape, axis, parts) for axis, parts in enumerate(split)))
