"""Many boxes at once: arrays [n, rank, 2] of starts and stops, one row for each tile of a split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from npukit.net.box import Box

Boxes = np.ndarray

Split = tuple[int, ...]
"""The parts along each axis of an op's output. Tile i, in row-major order, lies on PE i of the plan's order."""

GRAINS = (16, 4)
"""Channels that the MAC array takes at once, and that it takes least: what is cut along channels is cut there."""

WIDE_GRAIN = GRAINS[0]
"""Channels that the MAC array takes at once."""

Places = Mapping[str, Sequence[int]]
"""The places in the plan's order whose PEs carry an engine, ascending, of engines that not all of them carry. Tile i of
an op on such an engine lies at place i of these."""


def from_boxes(boxes: Sequence[Box]) -> Boxes:
    rows = [list(zip(box.start, box.stop, strict=True)) for box in boxes]
    return np.array(rows, np.int64).reshape(len(rows), len(rows[0]) if rows else 0, 2)


def to_boxes(boxes: Boxes) -> list[Box]:
    return [Box(tuple(row[:, 0].tolist()), tuple(row[:, 1].tolist())) for row in boxes]


def spread_out(boxes: Boxes, places: Sequence[int]) -> Boxes:
    """The boxes at these places; at those between and before them nothing."""
    spread = np.zeros((places[len(boxes) - 1] + 1, *boxes.shape[1:]), np.int64)
    spread[list(places[: len(boxes)])] = boxes
    return spread


def extents(boxes: Boxes) -> np.ndarray:
    """[n, rank]: how far each box reaches in each dimension, 0 if it is empty there."""
    return np.maximum(boxes[..., 1] - boxes[..., 0], 0)


def volumes(boxes: Boxes) -> np.ndarray:
    return extents(boxes).prod(-1)


def hull(first: Boxes, second: Boxes) -> Boxes:
    """Row by row the smallest box that holds both."""
    return np.stack([np.minimum(first[..., 0], second[..., 0]), np.maximum(first[..., 1], second[..., 1])], -1)


def common(first: Boxes, second: Boxes) -> Boxes:
    """Row by row what both hold; empty if nothing."""
    return np.stack([np.maximum(first[..., 0], second[..., 0]), np.minimum(first[..., 1], second[..., 1])], -1)


def meet(sources: Boxes, needs: Boxes) -> np.ndarray:
    """[needs, sources]: whether a need takes anything from a source."""
    found = np.ones((len(needs), len(sources)), bool)
    for source, need in zip(np.moveaxis(sources, 1, 0), np.moveaxis(needs, 1, 0), strict=True):
        stops = np.minimum(need[:, None, 1], source[:, 1])
        found &= stops > np.maximum(need[:, None, 0], source[:, 0])
    return found


def meetings(sources: Boxes, needs: Boxes) -> Boxes:
    """[needs, sources, rank, 2]: what each need takes from each source."""
    starts = np.maximum(needs[:, None, :, 0], sources[None, :, :, 0])
    stops = np.minimum(needs[:, None, :, 1], sources[None, :, :, 1])
    return np.stack([starts, stops], -1)


@cache
def grid(shape: tuple[int, ...], parts: tuple[int, ...], grains: tuple[int, ...]) -> Boxes:
    """The shape cut into so many parts along each axis, at multiples of its grain, as evenly as that allows.

    The last axis runs fastest, so that tiles that share pixels are neighbours.
    """
    if not shape:
        return np.zeros((1, 0, 2), np.int64)
    cuts = [cut(size, count, grain) for size, count, grain in zip(shape, parts, grains, strict=True)]
    index = np.stack(np.meshgrid(*[np.arange(count) for count in parts], indexing="ij"), -1).reshape(-1, len(parts))
    spans = [np.stack([places[index[:, axis]], places[index[:, axis] + 1]], -1) for axis, places in enumerate(cuts)]
    return np.stack(spans, 1)


@cache
def cut(size: int, count: int, grain: int) -> np.ndarray:
    """The places to cut at: multiples of twice the grain, and twice that, where no part gets larger by it.

    Then the parts of a tensor and those of what a stride makes of it end at the same places.
    """
    units = -(-size // grain)
    if units >= 2 * count and -(-((units + 1) // 2) // count) * 2 <= -(-units // count):
        return cut(size, count, 2 * grain)
    return np.minimum(np.round(np.arange(count + 1) * units / count).astype(np.int64) * grain, size)
