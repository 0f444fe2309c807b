"""Splits: how an op's output is cut into tiles, and what that costs on the engines."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from npukit.accel.interface import Cost
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.net.ops.fields import AxisRule
from npukit.net.receptive import cuttable_axes, may_be_cut
from npukit.plan.batch.weight_tiles import LARGEST_WEIGHT_TILE, cut_in_weight_tiles
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.tensors.boxes import (
    WIDE_GRAIN,
    Boxes,
    Places,
    Split,
    cut,
    from_boxes,
    grid,
    spread_out,
    to_boxes,
    volumes,
)
from npukit.plan.tensors.problem import Problem

SHORT = 600
"""Cycles of an op on the core that are over before other PEs had its inputs and sent their parts back: two messages of
some hundred bytes with their calls and waits."""


class Splits:
    """The splits of the ops of one net for at most so many PEs, and their tiles and costs."""

    def __init__(
        self,
        problem: Problem,
        pes: int,
        room: int | None = None,
        weight_tile_size: int = 0,
        narrowed: Collection[str] = (),
        places: Places | None = None,
        *,
        spread: bool = False,
    ) -> None:
        """Splits of the problem's net. Of engines that not every PE carries `places` says which do. Only those
        that leave no PEs for another part count if they are to be `spread`.

        With a `room`, there are none of which a PE's inputs, output and weight tile take more bytes, if others do not.
        Of tensors that bands may keep `narrowed` the narrowest band counts. With a `weight_tile_size` constants come in
        weight tiles of that size, one at a time, and tiles cost what their pieces do.
        """
        self._problem, self._graph, self.pes, self._room = problem, problem.graph, pes, room
        self._weight_tile_size, self._narrowed, self._places = weight_tile_size, narrowed, places or {}
        self._spread = spread
        self._known_candidates: dict[tuple[int, float], list[list[Split]]] = {}
        self._first_alike = self._numbers_of_alike()
        self.tiles = lru_cache(maxsize=None)(self._tiles)
        self.needs = lru_cache(maxsize=None)(self._needs)
        self._known_cost = lru_cache(maxsize=None)(self._cost)
        self._known_weight_tiles = lru_cache(maxsize=None)(self._weight_tile_bytes)
        self._costs_of_pieces = lru_cache(maxsize=None)(self._pieces)
        self._known_spans = lru_cache(maxsize=None)(self._spans_of_axis)
        self._known_reach = lru_cache(maxsize=None)(self._most_reached)
        self._known_held = lru_cache(maxsize=None)(self._held_bytes)
        self._promise = lru_cache(maxsize=None)(self._cycles_promised)

    def within(self, room: int | None) -> Splits:
        """These with another room, and the same tables."""
        other = copy(self)
        other._room, other._known_candidates = room, {}
        return other

    def on(self, pes: int) -> Splits:
        """These for at most so many PEs, and the same tables."""
        other = copy(self)
        other.pes, other._known_candidates = pes, {}
        return other

    def _numbers_of_alike(self) -> list[int]:
        """The number of the first op that is cut, and costs, as each op does."""
        first: dict[object, int] = {}
        return [first.setdefault(self._form(op), index) for index, op in enumerate(self._graph.ops)]

    def _form(self, op: Op) -> object:
        """The key that ops whose tiles cost the same have in common; the cost of the whole op stands for its values."""
        if op.engine == CORE:
            return op.name
        net, tensors = self._graph.net, [op.output, *self._graph.net.activations(op), *self._graph.sources(op)]
        shapes = [(net.tensor(name).shape, net.tensor(name).dtype, name in self._narrowed) for name in tensors]
        constants = [net.constants[name].shape for name in op.inputs if name in net.constants]
        kinds = [(part.kind, part.attributes) for part in op.parts]
        whole = self._tile_cost(op, Box.whole(self._graph.shape(op.output)))
        figures = whole.cycles, whole.constant_bytes, whole.scratch_bytes, whole.constants_key
        return op.kind, op.engine, op.attributes, *kinds, *shapes, *constants, *figures

    def cost(self, index: int, split: Split) -> Cost:
        """The slowest tile's cycles, the largest tile's constants."""
        return self._known_cost(self._first_alike[index], split)

    def weight_tile_bytes(self, index: int, split: Split) -> int:
        """The bytes of as many weight tiles as are to have room: small ones are of sixteen channels each, or larger."""
        return self._known_weight_tiles(self._first_alike[index], split)

    def held_bytes(self, index: int, split: Split) -> int:
        """The bytes of inputs, output and scratch memory of the largest tile, and of the weight tiles of its constants
        that are to have room."""
        return self._known_held(self._first_alike[index], split)

    def whole(self, tensor: str) -> Split:
        return (1,) * len(self._graph.shape(tensor))

    def assignment(self, order: Sequence[int], splits: Sequence[Split]) -> Assignment:
        """The tiles of every op that is split so, on the PEs of an order."""
        return {
            op.name: tuple(
                Tile(pe, box)
                for pe, box in zip(order, to_boxes(self.tiles(op.output, split)), strict=False)
                if not box.empty
            )
            for op, split in zip(self._graph.ops, splits, strict=True)
        }

    def gathered(self, tensor: str) -> Boxes:
        """All of a tensor on the first PE."""
        return from_boxes([Box.whole(self._graph.shape(tensor))])

    def _tiles(self, tensor: str, split: Split) -> Boxes:
        """The boxes of a tensor in a layout, each at the place of its PE."""
        shape, maker = self._graph.shape(tensor), self._graph.maker_of.get(tensor)
        if not shape:
            return from_boxes([Box((), ())])
        tiles = grid(shape, split, tuple(_grain(shape, axis, parts) for axis, parts in enumerate(split)))
        places = self._places.get(maker.engine) if maker else None
        return tiles if places is None else spread_out(tiles, places)

    def _needs(self, index: int, split: Split) -> tuple[tuple[str, Boxes], ...]:
        """The boxes of each input that the tiles of op number `index` need."""
        op = self._graph.ops[index]
        tiles = self.tiles(op.output, split)
        needs = self._graph.needs(op, tiles)
        if op.engine not in self._places:
            return tuple(needs)
        return tuple((name, np.where(volumes(tiles)[:, None, None] > 0, boxes, 0)) for name, boxes in needs)

    def _cut(self, tensor: str, axis: int, parts: int) -> np.ndarray:
        """The beginnings of the tiles along an axis that is cut in so many, and the end of the last one."""
        shape = self._graph.shape(tensor)
        return cut(shape[axis], parts, _grain(shape, axis, parts))

    def _spans(self, index: int, split: Split) -> list[tuple[int, ...]]:
        """Along each axis what tiles span, each number once."""
        return [self._known_spans(index, axis, parts) for axis, parts in enumerate(split)]

    def _spans_of_axis(self, index: int, axis: int, parts: int) -> tuple[int, ...]:
        places = self._cut(self._graph.ops[index].output, axis, parts)
        return tuple(set(np.diff(places).tolist()))

    def _cost(self, index: int, split: Split) -> Cost:
        pes = self._problem.unlike(prod(split) if self._graph.ops[index].engine == CORE else 1)
        costs = [self._costs_of_pieces(index, *each) for each in product(product(*self._spans(index, split)), pes)]
        return Cost(
            max(sum(cost.cycles for cost in pieces) for pieces in costs),
            max(sum(cost.constant_bytes for cost in pieces) for pieces in costs),
            max(cost.scratch_bytes for pieces in costs for cost in pieces),
        )

    def _pieces(self, index: int, shape: tuple[int, ...], pe: int | None = None) -> list[Cost]:
        """The costs of the pieces of a tile that are computed with one weight tile each."""
        op, whole = self._graph.ops[index], Box.whole(shape)
        if not self._weight_tile_size or op.engine == CORE:
            return [self._tile_cost(op, whole, pe)]
        most = LARGEST_WEIGHT_TILE * self._weight_tile_size
        cut = cut_in_weight_tiles(
            whole, lambda part: self._tile_cost(op, part).constant_bytes, self._weight_tile_size, most
        )
        return [self._tile_cost(op, piece) for piece in cut]

    def _tile_cost(self, op: Op, box: Box, pe: int | None = None) -> Cost:
        """Tiles of one shape cost the same wherever they lie in the output."""
        return self._problem.cost(op, Box.whole(box.shape), pe)

    def candidates(self, width: int, price: float = 0.0) -> list[list[Split]]:
        """The most promising splits of each op, if a byte of constants on a PE costs so many cycles."""
        key = width, price
        if key not in self._known_candidates:
            found = {index: self._candidates(index, width, price) for index in set(self._first_alike)}
            self._known_candidates[key] = [found[index] for index in self._first_alike]
        return self._known_candidates[key]

    def _candidates(self, index: int, width: int, price: float) -> list[Split]:
        """The cheapest of all, and of each number of PEs and each kind; with a price some that are cheaper by it."""
        ranked = sorted(self._roomy(index), key=lambda split: (self._promise(index, split), split))
        chosen = ranked[:width]
        for kind in (self._few, self._rows_only, self._channels_only):
            chosen += [split for split in kind(ranked) if split not in chosen]
        if price:
            chosen += heapq.nsmallest(width // 2, ranked, key=lambda split: self._priced(index, split, price))
        return list(dict.fromkeys(chosen))

    def _priced(self, index: int, split: Split, price: float) -> tuple[float, Split]:
        return self._promise(index, split) + price * self.cost(index, split).constant_bytes, split

    def _cycles_promised(self, index: int, split: Split) -> float:
        """Cycles to compute, and half the cycles to gather."""
        return self.cost(index, split).cycles + sum(self._most_needed(index, split)) / 32

    def _most_needed(self, index: int, split: Split) -> list[int]:
        """Elements that a tile needs of each input at most."""
        rules = enumerate(rule for _, rule in self._graph.inputs_of(self._graph.ops[index]))
        return [
            prod(self._known_reach(index, number, axis, _parts(split, each)) for axis, each in enumerate(rule))
            for number, rule in rules
        ]

    def _most_reached(self, index: int, number: int, axis: int, parts: int) -> int:
        """Positions along an axis of an input that a tile needs at most, if the axis it follows is cut so often."""
        op, graph = self._graph.ops[index], self._graph
        name, rule = graph.inputs_of(op)[number]
        size, follows = graph.shape(name)[axis], rule[axis].axis
        if follows is None:
            first, last = rule[axis].all_of(size)
            return last - first
        places = self._cut(op.output, follows, parts)
        first, last = rule[axis].span(places[:-1], places[1:], size)
        return int((last - first).max())

    def _roomy(self, index: int) -> list[Split]:
        possible = list(self._possible(index))
        if self._spread:
            possible = list(_widest(possible))
        if self._room is None:
            return possible
        held = {split: self.held_bytes(index, split) for split in possible}
        room = max(self._room, min(held.values()))
        return [split for split in possible if held[split] <= room]

    def _held_bytes(self, index: int, split: Split) -> int:
        op = self._graph.ops[index]
        elements = [prod(self._largest(index, split)), *self._most_needed(index, split)]
        names = [op.output, *self._graph.sources(op)]
        held = sum(size * self.element_bytes(name, split) for name, size in zip(names, elements, strict=True))
        return int(held) + self.cost(index, split).scratch_bytes + self.weight_tile_bytes(index, split)

    def element_bytes(self, tensor: str, split: Split) -> float:
        """Average bytes of an element of an op's input or output: fewer where only a band of its channels is there."""
        channels = self._graph.shape(tensor)[-1] if tensor in self._narrowed and split[-1] == 1 else 0
        return self._graph.element_bytes(tensor) * (WIDE_GRAIN / channels if channels > WIDE_GRAIN else 1)

    def _largest(self, index: int, split: Split) -> tuple[int, ...]:
        """The shape of the largest tile."""
        return tuple(map(max, self._spans(index, split)))

    def _weight_tile_bytes(self, index: int, split: Split) -> int:
        if not self._weight_tile_size:
            return 0
        return self._costs_of_pieces(index, self._largest(index, split))[0].constant_bytes

    def is_possible(self, index: int, split: Split) -> bool:
        return split in self._possible(index)

    def _possible(self, index: int) -> Iterator[Split]:
        op = self._graph.ops[index]
        shape = self._graph.shape(op.output)
        axes = cuttable_axes(self._graph.net, op) if self._worth_sharing(op) else ()
        limits = [_most_parts(size, axis == len(shape) - 1) if axis in axes else 1 for axis, size in enumerate(shape)]
        places = self._places.get(op.engine)
        most = self.pes if places is None else sum(place < self.pes for place in places)
        yield from (each for each in _factors(tuple(limits), most) if may_be_cut(self._graph.net, op, each))

    def _worth_sharing(self, op: Op) -> bool:
        """True for all but short ops on the core, of which searches would try very many cuts in vain."""
        return op.engine != CORE or self._tile_cost(op, Box.whole(self._graph.shape(op.output))).cycles > SHORT

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


def _grain(shape: Sequence[int], axis: int, parts: int) -> int:
    """Channels go to PEs by sixteens if there are enough of them, else by fours, as the MAC array takes them."""
    grains = (16, 4) if axis == len(shape) - 1 else ()
    return next((grain for grain in grains if shape[axis] >= grain * parts), 1)


def _parts(split: Split, rule: AxisRule) -> int:
    return 1 if rule.axis is None else split[rule.axis]


def _widest(splits: Collection[Split]) -> Iterator[Split]:
    """The splits of which no other one has a part more."""
    there = frozenset(splits)
    for split in splits:
        if not any((*split[:axis], parts + 1, *split[axis + 1 :]) in there for axis, parts in enumerate(split)):
            yield split


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
