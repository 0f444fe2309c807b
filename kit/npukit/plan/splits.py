"""Splits: how an op's output is cut into tiles, and what that costs on the engines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from math import prod

import numpy as np

from npukit.accel.interface import Accelerator, Cost
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.assignment import Assignment, Tile
from npukit.plan.boxes import Boxes, extents, from_boxes, grid, to_boxes, volumes
from npukit.plan.graph import Graph
from npukit.plan.receptive import cuttable_axes
from npukit.plan.streams import LARGEST_SLICE, cut_in_slices

Split = tuple[int, ...]
"""How many parts along each axis of the output. Tile i, in row-major order, lies on PE i of the plan's order."""

CORE = "cpu"

SMALL_SLICE = 9 << 10
"""Bytes of a small slice of streamed constants."""

WIDE_GRAIN = 16
"""Channels that the MAC array takes at once."""


class Splits:
    """The splits of the ops of one net for at most so many PEs, and their tiles and costs."""

    def __init__(
        self,
        graph: Graph,
        engines: Mapping[str, Accelerator],
        pes: int,
        room: int | None = None,
        slices: int = 0,
        slice_size: int = 0,
        narrowed: Collection[str] = (),
    ) -> None:
        """With a `room`, splits are none of which a PE's inputs, output and so many small slices of its constants take
        more bytes, if others do not. Of tensors that bands may keep `narrowed` the narrowest band counts. With a
        `slice_size` slices are of that size, and tiles cost what their pieces do."""
        self._graph, self._engines, self.pes, self._room, self._slices = graph, engines, pes, room, slices
        self._slice_size, self._narrowed = slice_size, narrowed
        self._costs: dict[tuple[str, tuple[int, ...]], Cost] = {}
        self.tiles = lru_cache(maxsize=None)(self._tiles)
        self.cost = lru_cache(maxsize=None)(self._cost)
        self.needs = lru_cache(maxsize=None)(self._needs)
        self.slice_bytes = lru_cache(maxsize=None)(self._slice_bytes)
        self.held_bytes = lru_cache(maxsize=None)(self._held_bytes)
        self._promise = lru_cache(maxsize=None)(self._cycles_promised)

    def within(self, room: int | None) -> Splits:
        """These with another room, and the same tables."""
        other = copy(self)
        other._room = room
        return other

    def whole(self, tensor: str) -> Split:
        return (1,) * len(self._graph.shape(tensor))

    def assignment(self, order: Sequence[int], splits: Sequence[Split]) -> Assignment:
        """The tiles of every op that is split so, on the PEs of an order."""
        return {
            op.name: tuple(
                Tile(pe, box) for pe, box in zip(order, to_boxes(self.tiles(op.output, split)), strict=False)
            )
            for op, split in zip(self._graph.ops, splits, strict=True)
        }

    def _tiles(self, tensor: str, split: Split) -> Boxes:
        """The boxes of a tensor in a layout."""
        shape = self._graph.shape(tensor)
        if not shape:
            return from_boxes([Box((), ())])
        grains = (*(1 for _ in shape[:-1]), _channel_grain(shape[-1], split[-1]))
        return grid(shape, split, grains)

    def _needs(self, index: int, split: Split) -> tuple[tuple[str, Boxes], ...]:
        """What the tiles of op number `index` need of each of its inputs."""
        op = self._graph.ops[index]
        return tuple(self._graph.needs(op, self.tiles(op.output, split)))

    def _cost(self, index: int, split: Split) -> Cost:
        """The slowest tile's cycles, the largest tile's constants."""
        op = self._graph.ops[index]
        tiles = self.tiles(op.output, split)
        _, first = np.unique(extents(tiles), axis=0, return_index=True) if split else ([], [0])
        costs = [[self._tile_cost(op, piece) for piece in self._pieces(op, box)] for box in to_boxes(tiles[first])]
        return Cost(
            max(sum(cost.cycles for cost in pieces) for pieces in costs),
            max(sum(cost.constant_bytes for cost in pieces) for pieces in costs),
            max(cost.scratch_bytes for pieces in costs for cost in pieces),
        )

    def _pieces(self, op: Op, box: Box) -> list[Box]:
        """What is computed of a tile with one slice of constants each."""
        if not self._slice_size or op.engine == CORE:
            return [box]
        most = LARGEST_SLICE * self._slice_size
        return cut_in_slices(box, lambda part: self._tile_cost(op, part).constant_bytes, self._slice_size, most)

    def _tile_cost(self, op: Op, box: Box) -> Cost:
        """Tiles of one shape cost the same wherever they lie."""
        key = (op.name, box.shape)
        if key not in self._costs:
            self._costs[key] = self._engines[op.engine].cost(self._graph.net, op, box)
        return self._costs[key]

    def candidates(self, index: int, width: int) -> list[Split]:
        """The most promising splits of an op: the cheapest of all, and of each number of PEs and each kind."""
        ranked = sorted(self._roomy(index), key=lambda split: (self._promise(index, split), split))
        chosen = ranked[:width]
        for kind in (self._few, self._rows_only, self._channels_only):
            chosen += [split for split in kind(ranked) if split not in chosen]
        return list(dict.fromkeys(chosen))

    def _cycles_promised(self, index: int, split: Split) -> float:
        """Cycles to compute, and half the cycles to gather."""
        gathered = sum(int(volumes(boxes).max()) for _, boxes in self.needs(index, split))
        return self.cost(index, split).cycles + gathered / 32

    def _roomy(self, index: int) -> list[Split]:
        possible = list(self._possible(index))
        if self._room is None:
            return possible
        held = {split: self.held_bytes(index, split) for split in possible}
        room = max(self._room, min(held.values()))
        return [split for split in possible if held[split] <= room]

    def _held_bytes(self, index: int, split: Split) -> int:
        """Of the inputs and the output of the largest tile, and of its constants the slices that are to have room."""
        op = self._graph.ops[index]
        tensors = [(op.output, self.tiles(op.output, split)), *self.needs(index, split)]
        held = sum(int(volumes(boxes).max()) * self.element_bytes(name, split) for name, boxes in tensors)
        return int(held) + self.slice_bytes(index, split)

    def element_bytes(self, tensor: str, split: Split) -> float:
        """Of an op's input or output, on average: less than one where only a band of its channels is there."""
        channels = self._graph.shape(tensor)[-1] if tensor in self._narrowed and split[-1] == 1 else 0
        return self._graph.element_bytes(tensor) * (WIDE_GRAIN / channels if channels > WIDE_GRAIN else 1)

    def _slice_bytes(self, index: int, split: Split) -> int:
        """Of as many slices as are to have room: small ones are of sixteen channels each, or larger."""
        if not self._slice_size:
            constants, channels = self.cost(index, split).constant_bytes, self._channels(index, split)
            return min(constants, self._slices * max(SMALL_SLICE, constants * WIDE_GRAIN // max(channels, WIDE_GRAIN)))
        op, tiles = self._graph.ops[index], self.tiles(self._graph.ops[index].output, split)
        (largest,) = to_boxes(tiles[[volumes(tiles).argmax()]])
        pieces = self._pieces(op, largest)
        return self._tile_cost(op, pieces[0]).constant_bytes * min(self._slices, len(pieces))

    def _channels(self, index: int, split: Split) -> int:
        """Of the largest tile."""
        tiles = self.tiles(self._graph.ops[index].output, split)
        return int(extents(tiles)[:, -1].max()) if split else 1

    def is_possible(self, index: int, split: Split) -> bool:
        return split in self._possible(index)

    def _possible(self, index: int) -> Iterator[Split]:
        op = self._graph.ops[index]
        shape = self._graph.shape(op.output)
        axes = () if op.engine == CORE else cuttable_axes(self._graph.net, op)
        limits = [_most_parts(size, axis == len(shape) - 1) if axis in axes else 1 for axis, size in enumerate(shape)]
        yield from _factors(tuple(limits), self.pes)

    def _few(self, ranked: list[Split]) -> Iterator[Split]:
        """The best of at most 1, 2, 4, ... PEs."""
        most = 1
        while most < self.pes:
            yield from [split for split in ranked if most // 2 < prod(split) <= most][:1]
            most *= 2

    @staticmethod
    def _rows_only(ranked: list[Split]) -> list[Split]:
        return [split for split in ranked if split[-1:] in ((), (1,))][:2]

    @staticmethod
    def _channels_only(ranked: list[Split]) -> list[Split]:
        return [split for split in ranked if prod(split[:-1]) == 1][:1]


def _channel_grain(channels: int, parts: int) -> int:
    """Channels go to PEs by sixteens if there are enough of them, else by fours, as the MAC array takes them."""
    return next((grain for grain in (16, 4) if channels >= grain * parts), 1)


def _most_parts(size: int, channels: bool) -> int:
    return -(-size // 4) if channels else size


def _factors(limits: tuple[int, ...], most: int) -> Iterator[Split]:
    """All tuples within the limits whose product is at most `most`."""
    if not limits:
        yield ()
        return
    for first in range(1, min(limits[0], most) + 1):
        for rest in _factors(limits[1:], most // first):
            yield (first, *rest)
