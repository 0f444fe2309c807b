"""The split of each op that makes one frame fastest, by dynamic programming over the layouts of the live tensors.

A state of the search is a layout: the split of each tensor with readers to come. Each op is tried in each of its
promising splits from each of the best states, at the cost of moving its inputs and of its slowest tile. Memory is a
price on constants, raised until the plan fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.plan.batch.schedule import ends_of
from npukit.plan.ir.assignment import Assignment
from npukit.plan.layout.splits import Splits
from npukit.plan.predict.exchange_cycles import exchange_cycles, fetch_cycles, hops_on
from npukit.plan.tensors.boxes import Boxes, Split, from_boxes
from npukit.plan.tensors.core_cycles import CHAIN_CYCLES
from npukit.plan.tensors.problem import Problem


@dataclass(frozen=True)
class Effort:
    """The width of a search: splits tried of each op, and states kept.

    `priced`: further splits are tried for their few constants.
    """

    splits: int
    states: int
    priced: bool = False


QUICK = Effort(6, 20)
"""The least effort."""


def effort_on(order: Sequence[int]) -> Effort:
    """The effort for a number of PEs: wide on few PEs, where a search takes least time."""
    return Effort(min(max(224 // len(order), QUICK.splits), 14), min(max(960 // len(order), QUICK.states), 60))


Layout = tuple[tuple[str, Split], ...]
"""The live tensors with the split of each."""


class _State(NamedTuple):
    """The splits of the first ops, their cycles, and bytes of constants. A tuple, because a search makes a million."""

    cycles: int
    constants: int
    splits: tuple[Split, ...]

    def plus(self, cycles: int, constants: int, split: Split) -> _State:
        """The state with a further op."""
        return _State(self.cycles + cycles, self.constants + constants, (*self.splits, split))

    def priced(self, price: float) -> float:
        """Cycles with the price of constants."""
        return self.cycles + price * self.constants


class LatencySearch:
    """The search on the PEs of a problem's order. Tables are shared between prices, rooms, orders and weights.

    States of the network take no time to move. Inputs come from the root; from DRAM at no cost, if `fetched`; or from
    DRAM when the frame begins, if `from_dram`. `room`: bytes for a tile's inputs and output, with a
    `weight_tile_size` a weight tile too. `moves_weigh`: factor on the cycles of moving data. Other factors find other
    assignments, to be compared by simulation.
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
    ) -> None:
        self._free = (*problem.graph.kept, *(problem.net.inputs if fetched else ()))
        self._in_dram = problem.net.inputs if fetched or from_dram else ()
        self._stored = ends_of(problem, fetched=fetched or from_dram).outputs == DRAM
        self._graph, self._board, self._order, self._effort = problem.graph, problem.board, problem.order, effort
        self._moves_weigh = moves_weigh
        self.splits = Splits(problem, len(problem.order), room, weight_tile_size)
        self._hops = hops_on(problem.board, problem.order)
        self._known_exchanges: dict[tuple[bytes, bytes, int], int] = {}
        self._live_after = problem.graph.live_after()
        self._exchange = cache(self._exchange_cycles)

    def within(self, room: int | None) -> LatencySearch:
        """The search with another room."""
        other = copy(self)
        other.splits = self.splits.within(room)
        return other

    def on(self, order: Sequence[int]) -> LatencySearch:
        """The search on other PEs, at most as many as in this order."""
        other = copy(self)
        other._order, other.splits = order, self.splits.on(len(order))
        return other

    def weighing(self, moves: float) -> LatencySearch:
        """The search with another factor on the cycles of moving data."""
        other = copy(self)
        other._moves_weigh, other._exchange = moves, cache(other._exchange_cycles)
        return other

    def best(self, price: float = 0.0) -> Assignment:
        """The best assignment at a price: cycles per byte of constants on the fullest PE."""
        return self.assignment_of(self.best_found(price).splits)

    def assignment_of(self, splits: Sequence[Split]) -> Assignment:
        return self.splits.assignment(self._order, splits)

    def best_found(self, price: float = 0.0) -> _State:
        """The best assignment's splits, with the estimate of a frame's cycles."""
        states = {self._first_layout(): _State(0, 0, ())}
        for index in range(len(self._graph.ops)):
            ranked = sorted(states.items(), key=lambda item: (item[1].priced(price), item[0]))
            states = self._after(index, ranked[: self._effort.states], price)
        finished = [self._gathered(layout, state) for layout, state in states.items()]
        return min(finished, key=lambda state: state.priced(price))

    def expected_near(self, here: Sequence[Split]) -> Callable[[Sequence[Split]], int]:
        """A function from splits to the estimate of a frame's cycles. Fast if only a few ops differ from `here`."""
        known = list(self._steps(here, 0, self._first_layout(), _State(0, 0, ())))
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
        """The layout and the state before each op from the `first` on, and after the last."""
        for index, split in enumerate(splits[first:], first):
            yield layout, state
            cost = self.splits.cost(index, split)
            state = self._moved(index, layout, split, state.plus(cost.cycles, cost.constant_bytes, split))
            layout = self._layout_after(index, layout, split)
        yield layout, state

    def _first_layout(self) -> Layout:
        return tuple((name, (1,) * len(self._graph.shape(name))) for name in self._graph.net.begins)

    def _layout_after(self, index: int, layout: Layout, split: Split) -> Layout:
        splits = dict(layout)
        splits[self._graph.ops[index].output] = split
        return tuple([(name, splits[name]) for name in self._live_after[index]])

    def _after(self, index: int, states: list[tuple[Layout, _State]], price: float) -> dict[Layout, _State]:
        """The best state of each layout after an op."""
        found: dict[Layout, _State] = {}
        for split in self.splits.candidates(self._effort.splits, price if self._effort.priced else 0.0)[index]:
            cost = self.splits.cost(index, split)
            for layout, state in states:
                key = self._layout_after(index, layout, split)
                least = state.plus(cost.cycles, cost.constant_bytes, split)
                if key in found and least.priced(price) >= found[key].priced(price):
                    continue
                after = self._moved(index, layout, split, least)
                if key not in found or after.priced(price) < found[key].priced(price):
                    found[key] = after
        return found

    def _moved(self, index: int, layout: Layout, split: Split, state: _State) -> _State:
        """The state with the cycles of moving an op's inputs."""
        splits = dict(layout)
        moved = sum([self._exchange(name, splits[name], index, split) for name, _ in self.splits.needs(index, split)])
        chained = CHAIN_CYCLES if moved or not index else 0
        return state._replace(cycles=state.cycles + moved + chained)

    def _gathered(self, layout: Layout, state: _State) -> _State:
        """The state with the cycles of moving the outputs to the root, or to DRAM."""
        moved, splits, noc = 0, dict(layout), self._board.noc
        for name in self._graph.outputs:
            owned, size = self.splits.tiles(name, splits[name]), self._graph.element_bytes(name)
            if self._stored and noc:
                moved += fetch_cycles(noc, self._graph.shape(name), owned, size)
            else:
                root = from_boxes([Box.whole(self._graph.shape(name))])
                moved += self._exchange_of(owned, root, size)
        return state._replace(cycles=state.cycles + moved)

    def _exchange_cycles(self, name: str, split_of_input: Split, index: int, split: Split) -> int:
        """The cycles of moving one input of an op to the tiles of a split."""
        if name in self._free:
            return 0
        size, noc, moved = self._graph.element_bytes(name), self._board.noc, 0
        for needed in [boxes for home, boxes in self.splits.needs(index, split) if home == name]:
            if name in self._in_dram and noc:
                moved += fetch_cycles(noc, self._graph.shape(name), needed, size)
            else:
                moved += self._exchange_of(self.splits.tiles(name, split_of_input), needed, size)
        return int(moved * self._moves_weigh)

    def _exchange_of(self, owned: Boxes, needed: Boxes, element_bytes: int) -> int:
        """The cycles of an exchange; 0 on a board without a network-on-chip. Equal exchanges of different layers are
        estimated once."""
        noc, key = self._board.noc, (owned.tobytes(), needed.tobytes(), element_bytes)
        if noc and key not in self._known_exchanges:
            self._known_exchanges[key] = exchange_cycles(noc, self._hops, owned, needed, element_bytes)
        return self._known_exchanges[key] if noc else 0
