"""The split of each op that makes one frame fastest: dynamic programming over the layouts of the live tensors.

A state says how each tensor that is still to be read is spread over the PEs. Each op is tried in each of its
promising splits from each of the best states; its cost is the exchange of its inputs and its slowest tile. Memory
enters as a price on constants, raised until the plan fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from npukit.board.noc import DRAM
from npukit.plan.batch.channel_bands import narrowed
from npukit.plan.batch.schedule import ends_of
from npukit.plan.emit.regions import SMALL_PART
from npukit.plan.ir.assignment import Assignment
from npukit.plan.layout.splits import Splits
from npukit.plan.predict.exchange_cycles import exchanges_on, fetch_cycles
from npukit.plan.tensors.boxes import Boxes, Split, hull, volumes
from npukit.plan.tensors.core_cycles import CHAIN_CYCLES
from npukit.plan.tensors.graph import Aliases, Graph, aliases
from npukit.plan.tensors.problem import Problem


@dataclass(frozen=True)
class Effort:
    """The width of a search: splits tried of each op, states kept."""

    splits: int
    states: int
    priced: bool = False
    """True if splits that only the price of constants makes cheap are tried too."""


QUICK = Effort(6, 20)
"""The least effort."""


def effort_on(order: Sequence[int]) -> Effort:
    """The effort for a number of PEs: wide on few PEs, where a search takes least time."""
    return Effort(min(max(224 // len(order), QUICK.splits), 14), min(max(960 // len(order), QUICK.states), 60))


Layout = tuple[tuple[str, Split], ...]
"""The live tensors and how each is spread."""


class Occupied:
    """Occupied memory of one net in the splits of one search."""

    def __init__(self, graph: Graph, splits: Splits, fetched: Collection[str], aliases: Aliases) -> None:
        """Tensors that are `fetched` are no PE's tiles. Tiles alias operands in the same layout."""
        self._graph, self._splits, self._fetched, self._aliases = graph, splits, fetched, aliases
        self._own = lru_cache(maxsize=None)(self._own_bytes)
        self._beside = lru_cache(maxsize=None)(self._bytes_beside)

    def bytes(self, index: int, layout: Layout, split: Split) -> int:
        """Bytes of the PE that holds most: its tiles, parts of others', what it makes, scratch, a weight tile."""
        spread, op = dict(layout), self._graph.ops[index]
        held = self._own(op.output, split).copy()
        lain_on = next((name for name in self._aliases[op.name] if spread[name] == split), None)
        for name, each in layout:
            held += self._own(name, each) * (name != lain_on)
        for place, (name, _) in enumerate(self._splits.needs(index, split)):
            held += self._beside(name, spread[name], index, split, place)
        scratch = self._splits.cost(index, split).scratch_bytes
        return int(held.max()) + scratch + self._splits.weight_tile_bytes(index, split)

    def _own_bytes(self, name: str, split: Split) -> np.ndarray:
        tiles = self._splits.tiles(name, split)
        return self._by_pe(volumes(tiles) * (name not in self._fetched), name, split)

    def _bytes_beside(self, name: str, spread: Split, index: int, split: Split, place: int) -> np.ndarray:
        """The bytes of a PE's region, or regions, of a tensor beyond its own tile, so that they hold what it needs."""
        _, needed = self._splits.needs(index, split)[place]
        owned = self._splits.tiles(name, spread)[: 0 if name in self._fetched else None]
        apart = volumes(needed)
        both = min(len(owned), len(needed))
        own = volumes(owned[:both])
        together = volumes(hull(owned[:both], needed[:both])) - own
        beside = apart.copy()
        merged = (together <= apart[:both]) & (together + own <= SMALL_PART * own)
        beside[:both] = np.where(merged, together, apart[:both])
        return self._by_pe(beside, name, split)

    def _by_pe(self, elements: np.ndarray, name: str, split: Split) -> np.ndarray:
        found = np.zeros(self._splits.pes)
        found[: len(elements)] = elements * self._splits.element_bytes(name, split)
        return found


@dataclass(frozen=True)
class Found:
    """The split of each op, and the cycles of a frame that the search expects."""

    splits: tuple[Split, ...]
    cycles: int


class _State(NamedTuple):
    """A tuple, as a search makes a million of them."""

    cycles: int
    constants: int
    splits: tuple[Split, ...]
    """The split of each op so far."""
    crowded: int = 0
    """Bytes by which PEs' memories are too small for the tensors and weight tiles that live at once, over all ops."""

    def plus(self, cycles: int, constants: int, split: Split) -> _State:
        """One op more, in a split."""
        return _State(self.cycles + cycles, self.constants + constants, (*self.splits, split), self.crowded)


class LatencySearch:
    """The search for one net on the PEs of an order, its tables kept between prices.

    States lie where they are needed, as far as the search knows. Inputs come from the root; or are `fetched` by
    each PE before they are needed, at no cost; or, `from_dram`, when the frame begins. `room`: bytes that the
    inputs and the output of a tile may take; or, if a `weight_tile_size` is given, all tensors of a PE that live at
    once, with a weight tile of that size.
    Ops are `spread` over as many PEs as there are, if that is asked for.
    `moves_weigh` so many times what they are estimated to cost: other weights find other assignments, for who
    compares them by simulation.
    """

    def __init__(
        self,
        problem: Problem,
        effort: Effort,
        *,
        fetched: bool = False,
        from_dram: bool = False,
        room: int | None = None,
        weight_tile_size: int = 0,
        moves_weigh: float = 1.0,
        spread: bool = False,
    ) -> None:
        self._free = (*problem.graph.kept, *(problem.net.inputs if fetched else ()))
        self._in_dram = problem.net.inputs if fetched or from_dram else ()
        self._stored = ends_of(problem, fetched=fetched or from_dram).outputs == DRAM
        self._graph, self._board, self._order, self._effort = problem.graph, problem.board, problem.order, effort
        self._moves_weigh = moves_weigh
        self.splits = Splits(
            problem,
            len(problem.order),
            room,
            weight_tile_size,
            narrowed(problem.graph),
            problem.places,
            spread=spread,
        )
        self._crowded_from = room if weight_tile_size else None
        self._aliases = aliases(problem.graph, problem.engines)
        self._occupied = Occupied(problem.graph, self.splits, self._in_dram, self._aliases)
        self._exchanges = exchanges_on(problem.board, problem.order)
        self._live_after = problem.graph.live_after()
        self._exchange = lru_cache(maxsize=None)(self._exchange_cycles)

    def within(self, room: int | None) -> LatencySearch:
        """The search with another room, and the same tables."""
        other = copy(self)
        other.splits = self.splits.within(room)
        other._crowded_from = None if self._crowded_from is None else room
        return other

    def on(self, order: Sequence[int]) -> LatencySearch:
        """The search on other PEs, those of this one's order or the first of them, and the same tables."""
        other = copy(self)
        other._order, other.splits = order, self.splits.on(len(order))
        other._occupied = Occupied(self._graph, other.splits, self._in_dram, self._aliases)
        return other

    def with_effort(self, effort: Effort) -> LatencySearch:
        """The search with another effort, and the same tables."""
        other = copy(self)
        other._effort = effort
        return other

    def weighing(self, moves: float) -> LatencySearch:
        """The search in which moving data weighs otherwise, and the same tables."""
        other = copy(self)
        other._moves_weigh, other._exchange = moves, lru_cache(maxsize=None)(other._exchange_cycles)
        return other

    def best(self, price: float = 0.0) -> Assignment:
        """The best assignment if a byte of constants on the fullest PE costs so many cycles."""
        return self.splits.assignment(self._order, self.best_splits(price))

    def best_splits(self, price: float = 0.0) -> tuple[Split, ...]:
        """The splits of the best assignment, op by op."""
        return self.best_found(price).splits

    def assignment_of(self, splits: Sequence[Split]) -> Assignment:
        return self.splits.assignment(self._order, splits)

    def best_found(self, price: float = 0.0) -> Found:
        """The splits of the best assignment, and what they are expected to take."""
        states = {self._begin(): _State(0, 0, ())}
        for index in range(len(self._graph.ops)):
            states = self._after(index, self._kept(states, price), price)
        finished = {layout: self._gathered(layout, state) for layout, state in states.items()}
        best = min(finished.values(), key=lambda state: _priced(state, price))
        return Found(best.splits, best.cycles)

    def expected_near(self, here: Sequence[Split]) -> Callable[[Sequence[Split]], int]:
        """The cycles that a frame is expected to take, by its splits, op by op; soon found of those that differ in few
        ops from `here`."""
        known = list(self._steps(here, 0, self._begin(), _State(0, 0, ())))
        whole = self._gathered(*known[-1]).cycles

        def expected(splits: Sequence[Split]) -> int:
            changed = [index for index, (one, other) in enumerate(zip(splits, here, strict=True)) if one != other]
            first, last = (changed[0], changed[-1]) if changed else (len(here), len(here))
            layout, state = known[first]
            for index, (layout, state) in enumerate(self._steps(splits, first, *known[first]), first):
                if index > last and layout == known[index][0]:
                    return whole + state.cycles - known[index][1].cycles
            return self._gathered(layout, state).cycles

        return expected

    def _steps(
        self, splits: Sequence[Split], first: int, layout: Layout, state: _State
    ) -> Iterator[tuple[Layout, _State]]:
        """The layout and the state before each op from the `first` on, and behind the last."""
        for index in range(first, len(splits)):
            yield layout, state
            cost = self.splits.cost(index, splits[index])
            state = self._moved(
                index, layout, splits[index], state.plus(cost.cycles, cost.constant_bytes, splits[index])
            )
            layout = self._left(index, layout, splits[index])
        yield layout, state

    def _begin(self) -> Layout:
        return tuple((name, self.splits.whole(name)) for name in self._graph.net.begins)

    def _left(self, index: int, layout: Layout, split: Split) -> Layout:
        """The layout behind an op."""
        spread = dict(layout)
        spread[self._graph.ops[index].output] = split
        return tuple([(name, spread[name]) for name in self._live_after[index]])

    def _kept(self, states: dict[Layout, _State], price: float) -> list[tuple[Layout, _State]]:
        return sorted(states.items(), key=lambda item: (_priced(item[1], price), item[0]))[: self._effort.states]

    def _after(self, index: int, states: list[tuple[Layout, _State]], price: float) -> dict[Layout, _State]:
        """The states after an op, the best of each layout."""
        found: dict[Layout, _State] = {}
        for split in self._candidates(price)[index]:
            cost = self.splits.cost(index, split)
            for layout, state in states:
                key = self._left(index, layout, split)
                least = state.plus(cost.cycles, cost.constant_bytes, split)
                if key in found and _priced(least, price) >= _priced(found[key], price):
                    continue
                after = self._moved(index, layout, split, least)
                if key not in found or _priced(after, price) < _priced(found[key], price):
                    found[key] = after
        return found

    def _candidates(self, price: float) -> list[list[Split]]:
        return self.splits.candidates(self._effort.splits, price if self._effort.priced else 0.0)

    def _moved(self, index: int, layout: Layout, split: Split, state: _State) -> _State:
        """The state with the inputs of the op brought to its PEs, and the bytes that these have no room for."""
        spread = dict(layout)
        moved = sum([self._exchange(name, spread[name], index, split) for name, _ in self.splits.needs(index, split)])
        chained = CHAIN_CYCLES if moved or not index else 0
        crowded = state.crowded + self._missing_bytes(index, layout, split)
        return _State(state.cycles + moved + chained, state.constants, state.splits, crowded)

    def _gathered(self, layout: Layout, state: _State) -> _State:
        """The state with the outputs brought to the root, or to DRAM."""
        spread, moved = dict(layout), 0
        for name in self._graph.outputs:
            owned = self.splits.tiles(name, spread[name])
            if self._stored and self._board.noc:
                moved += fetch_cycles(self._board.noc, self._graph.shape(name), owned, self._graph.element_bytes(name))
                continue
            moved += self._exchanges.cycles(owned, self.splits.gathered(name), self._graph.element_bytes(name))
        return state._replace(cycles=state.cycles + moved)

    def _missing_bytes(self, index: int, layout: Layout, split: Split) -> int:
        if self._crowded_from is None:
            return 0
        return max(self._occupied.bytes(index, layout, split) - self._crowded_from, 0)

    def _exchange_cycles(self, name: str, spread: Split, index: int, split: Split) -> int:
        """The cycles to bring one input of an op to the tiles of a split."""
        if name in self._free:
            return 0
        needs = [boxes for home, boxes in self.splits.needs(index, split) if home == name]
        moved = sum(self._brought(name, spread, boxes) for boxes in needs)
        return int(moved * self._moves_weigh)

    def _brought(self, name: str, spread: Split, needed: Boxes) -> int:
        size = self._graph.element_bytes(name)
        if name in self._in_dram and self._board.noc:
            return fetch_cycles(self._board.noc, self._graph.shape(name), needed, size)
        return self._exchanges.cycles(self.splits.tiles(name, spread), needed, size)


def _priced(state: _State, price: float) -> tuple[int, float]:
    """The key by which states are compared: what fits comes first."""
    return state.crowded, state.cycles + price * state.constants
