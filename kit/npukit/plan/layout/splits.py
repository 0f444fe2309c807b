"""Splits: how an op's output is cut into tiles, and the cost of the tiles on the engines."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np

from npukit.accel.interface import Cost
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.net.receptive import cuttable_axes, may_be_cut
from npukit.plan.batch.channel_bands import narrowed
from npukit.plan.batch.weight_tiles import LARGEST_WEIGHT_TILE, cut_in_weight_tiles
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.tensors.boxes import WIDE_GRAIN, Boxes, Split, cut, grain, spread_out, tiles_of, to_boxes, volumes
from npukit.plan.tensors.problem import Problem

_T = TypeVar("_T")


class Splits:
    """The splits of a net's ops on at most `pes` PEs, with tiles and costs.

    `room`: bytes for a tile's inputs, output and weight tile. Larger splits count only if no split is smaller. Tensors
    in bands count with the narrowest band. `weight_tile_size`: bytes of constants per weight tile; a tile then costs as
    much as its pieces, with one weight tile in memory. 0: all constants are resident.
    """

    def __init__(self, problem: Problem, pes: int, room: int | None = None, weight_tile_size: int = 0) -> None:
        self._problem, self._graph, self.pes, self._room = problem, problem.graph, pes, room
        self._weight_tile_size, self._narrowed, self._places = weight_tile_size, narrowed(problem.graph), problem.places
        self._known_candidates: dict[tuple[int, float], list[list[Split]]] = {}
        first: dict[object, int] = {}
        self._first_of_form = [first.setdefault(self._form(op), index) for index, op in enumerate(self._graph.ops)]
        self.tiles, self.needs = cache(self._tiles), cache(self._needs)
        self._costs_of_pieces, self._known_sizes = cache(self._pieces), cache(self._sizes_along)
        self._known_needs, self._estimate = cache(self._needed_along), cache(self._estimated_cycles)
        self.cost = self._by_form(self._cost)
        self.weight_tile_bytes = self._by_form(self._weight_tile_bytes)
        self.held_bytes = self._by_form(self._held_bytes)

    def _by_form(self, figure: Callable[[int, Split], _T]) -> Callable[[int, Split], _T]:
        """A figure of an op in a split, computed once for ops of one form."""
        known, first = cache(figure), self._first_of_form
        return lambda index, split: known(first[index], split)

    def within(self, room: int | None) -> Splits:
        """The splits with another room, and shared tables."""
        other = copy(self)
        other._room, other._known_candidates = room, {}
        return other

    def on(self, pes: int) -> Splits:
        """The splits on at most `pes` PEs, with shared tables."""
        other = copy(self)
        other.pes, other._known_candidates = pes, {}
        return other

    def _form(self, op: Op) -> object:
        """The key of ops with the same splits and costs. The cost of the whole op stands for the constants' values."""
        if op.engine == CORE:
            return op.name
        whole = self._tile_cost(op, Box.whole(self._graph.shape(op.output)))
        homes = [(self._graph.shape(name), name in self._narrowed) for name in (op.output, *self._graph.sources(op))]
        figures = whole.cycles, whole.constant_bytes, whole.scratch_bytes, whole.constants_key
        return self._graph.form(op), *homes, *figures

    def assignment(self, order: Sequence[int], splits: Sequence[Split]) -> Assignment:
        """The tiles of every op, given the split of each, on the PEs of an order."""
        return {
            op.name: tuple(
                Tile(pe, box)
                for pe, box in zip(order, to_boxes(self.tiles(op.output, split)), strict=False)
                if not box.empty
            )
            for op, split in zip(self._graph.ops, splits, strict=True)
        }

    def _tiles(self, tensor: str, split: Split) -> Boxes:
        """The boxes of a tensor in a layout, each at the place of its PE."""
        maker, tiles = self._graph.maker_of.get(tensor), tiles_of(self._graph.shape(tensor), split)
        places = self._places.get(maker.engine) if maker else None
        return tiles if places is None else spread_out(tiles, places)

    def _needs(self, index: int, split: Split) -> tuple[tuple[str, Boxes], ...]:
        """Boxes of each input of an op that the tiles need."""
        op = self._graph.ops[index]
        tiles = self.tiles(op.output, split)
        needs = self._graph.needs(op, tiles)
        if op.engine not in self._places:
            return tuple(needs)
        return tuple((name, np.where(volumes(tiles)[:, None, None] > 0, boxes, 0)) for name, boxes in needs)

    def _cut(self, index: int, axis: int, parts: int) -> np.ndarray:
        """The starts of an op's tiles along an axis in `parts` parts, and the end of the last tile."""
        shape = self._graph.shape(self._graph.ops[index].output)
        return cut(shape[axis], parts, grain(shape, axis, parts))

    def _sizes(self, index: int, split: Split) -> list[tuple[int, ...]]:
        """Along each axis the different sizes of tiles."""
        return [self._known_sizes(index, axis, parts) for axis, parts in enumerate(split)]

    def _sizes_along(self, index: int, axis: int, parts: int) -> tuple[int, ...]:
        return tuple(set(np.diff(self._cut(index, axis, parts)).tolist()))

    def _cost(self, index: int, split: Split) -> Cost:
        """The cycles of the slowest tile, and the most constants and scratch bytes of a tile."""
        pes = self._problem.unlike(prod(split) if self._graph.ops[index].engine == CORE else 1)
        costs = [self._costs_of_pieces(index, *each) for each in product(product(*self._sizes(index, split)), pes)]
        return Cost(
            max(sum(cost.cycles for cost in pieces) for pieces in costs),
            max(sum(cost.constant_bytes for cost in pieces) for pieces in costs),
            max(cost.scratch_bytes for pieces in costs for cost in pieces),
        )

    def _pieces(self, index: int, shape: tuple[int, ...], pe: int | None = None) -> list[Cost]:
        """The costs of a tile's pieces. Each piece is computed with one weight tile."""
        op, whole, size = self._graph.ops[index], Box.whole(shape), self._weight_tile_size
        if not size or op.engine == CORE:
            return [self._tile_cost(op, whole, pe)]
        most = LARGEST_WEIGHT_TILE * size
        pieces = cut_in_weight_tiles(whole, lambda part: self._tile_cost(op, part).constant_bytes, size, most)
        return [self._tile_cost(op, piece) for piece in pieces]

    def _tile_cost(self, op: Op, box: Box, pe: int | None = None) -> Cost:
        """The cost of a tile, the same wherever the tile lies in the output."""
        return self._problem.cost(op, Box.whole(box.shape), pe)

    def candidates(self, width: int, price: float = 0.0) -> list[list[Split]]:
        """The most promising splits of each op at a price: cycles per byte of constants on a PE."""
        key = width, price
        if key not in self._known_candidates:
            found = {index: self._candidates(index, width, price) for index in set(self._first_of_form)}
            self._known_candidates[key] = [found[index] for index in self._first_of_form]
        return self._known_candidates[key]

    def _candidates(self, index: int, width: int, price: float) -> list[Split]:
        """The splits with the least estimates: of all, of at most 1, 2, 4, ... PEs, along rows only, and along channels
        only; with a price half as many more by cycles and price."""
        ranked = sorted(self._roomy(index), key=lambda split: (self._estimate(index, split), split))
        chosen = ranked[:width]
        for most in (1 << power for power in range((self.pes - 1).bit_length())):
            chosen += [split for split in ranked if most // 2 < prod(split) <= most][:1]
        chosen += [split for split in ranked if split[-1:] in ((), (1,))][:2]
        chosen += [split for split in ranked if prod(split[:-1]) == 1][:1]

        def priced(split: Split) -> tuple[float, Split]:
            return self._estimate(index, split) + price * self.cost(index, split).constant_bytes, split

        chosen += heapq.nsmallest(width // 2, ranked, key=priced) if price else []
        return list(dict.fromkeys(chosen))

    def _estimated_cycles(self, index: int, split: Split) -> float:
        """Cycles to compute, and half the cycles to move the inputs."""
        return self.cost(index, split).cycles + sum(self._most_needed(index, split)) / 32

    def _most_needed(self, index: int, split: Split) -> list[int]:
        """Most elements of each input of an op that a tile needs."""
        rules = enumerate(rule for _, rule in self._graph.inputs_of[self._graph.ops[index].name])
        return [
            prod(
                self._known_needs(index, number, axis, 1 if each.axis is None else split[each.axis])
                for axis, each in enumerate(rule)
            )
            for number, rule in rules
        ]

    def _needed_along(self, index: int, number: int, axis: int, parts: int) -> int:
        """The most positions along an axis of an input that a tile needs, with the output in `parts` parts along the
        corresponding axis."""
        name, rule = self._graph.inputs_of[self._graph.ops[index].name][number]
        size, axis_of_output = self._graph.shape(name)[axis], rule[axis].axis
        if axis_of_output is None:
            first, last = rule[axis].all_of(size)
            return last - first
        places = self._cut(index, axis_of_output, parts)
        first, last = rule[axis].span(places[:-1], places[1:], size)
        return int((last - first).max())

    def _roomy(self, index: int) -> list[Split]:
        op = self._graph.ops[index]
        possible = [each for each in _factors(*self._limits(index)) if may_be_cut(self._graph.net, op, each)]
        if self._room is None:
            return possible
        held = {split: self.held_bytes(index, split) for split in possible}
        room = max(self._room, min(held.values()))
        return [split for split in possible if held[split] <= room]

    def _held_bytes(self, index: int, split: Split) -> int:
        """Bytes of the largest tile: inputs, output, scratch memory and a weight tile."""
        op = self._graph.ops[index]
        elements = [prod(map(max, self._sizes(index, split))), *self._most_needed(index, split)]
        names = [op.output, *self._graph.sources(op)]
        held = sum(size * self.element_bytes(name, split) for name, size in zip(names, elements, strict=True))
        return int(held) + self.cost(index, split).scratch_bytes + self.weight_tile_bytes(index, split)

    def element_bytes(self, tensor: str, split: Split) -> float:
        """Average bytes of an element of an op's input or output. A tensor in bands has only one band in memory."""
        channels = self._graph.shape(tensor)[-1] if tensor in self._narrowed and split[-1] == 1 else 0
        return self._graph.element_bytes(tensor) * (WIDE_GRAIN / channels if channels > WIDE_GRAIN else 1)

    def _weight_tile_bytes(self, index: int, split: Split) -> int:
        """Bytes of the largest tile's first weight tile."""
        if not self._weight_tile_size:
            return 0
        return self._costs_of_pieces(index, tuple(map(max, self._sizes(index, split))))[0].constant_bytes

    def is_possible(self, index: int, split: Split) -> bool:
        limits, most = self._limits(index)
        is_within = prod(split) <= most and all(parts <= limit for parts, limit in zip(split, limits, strict=True))
        return is_within and may_be_cut(self._graph.net, self._graph.ops[index], split)

    def neighbours(self, here: Sequence[Split], width: int = 14) -> Iterator[tuple[Split, ...]]:
        """Neighbours of a mapping, the most promising first: another of `width` splits of one op, or of a run of ops
        with equal shapes and equal splits."""
        shapes, choices = [self._graph.shape(op.output) for op in self._graph.ops], self.candidates(width)
        for place, first in product(range(width), range(len(here))):
            last = first + 1
            while last < len(here) and (shapes[last], here[last]) == (shapes[first], here[first]):
                last += 1
            split = choices[first][place] if place < len(choices[first]) else None
            if split and all(self.is_possible(index, split) for index in range(first, last)):
                yield (*here[:first], *([split] * (last - first)), *here[last:])

    def _limits(self, index: int) -> tuple[tuple[int, ...], int]:
        """The most parts of an op along each axis, and the most parts in all."""
        op = self._graph.ops[index]
        shape, axes = self._graph.shape(op.output), cuttable_axes(self._graph.net, op)
        limits = [size if axis in axes else 1 for axis, size in enumerate(shape)]
        limits[-1:] = [-(-size // 4) for size in limits[-1:]]
        places = self._places.get(op.engine)
        most = self.pes if places is None else sum(place < self.pes for place in places)
        return tuple(limits), most


def _factors(limits: tuple[int, ...], most: int) -> Iterator[Split]:
    """All tuples within the limits with a product of at most `most`."""
    if not limits:
        yield ()
        return
    for first in range(1, min(limits[0], most) + 1):
        for rest in _factors(limits[1:], most // first):
            yield (first, *rest)
