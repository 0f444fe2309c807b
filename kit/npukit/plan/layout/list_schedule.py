"""One frame on many PEs by list scheduling: each op in its turn goes to the PEs on which it is done first.

An op is tried in splits of each size, on the PEs that hold its inputs and on those that are idle by then and have room
for its constants. So layers that read the same tensor lie side by side, alike layers lie on other PEs as soon as the
first ones are full, and nothing crosses the border of a chip that need not. It takes a single pass over the ops, where
`layout_search.py` weighs layouts of all tensors against each other and places every op from the first PE on.
`benchmarks/large/planner_constants.py list-schedule` measures what the constants are worth.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import inf, prod

import numpy as np

from npukit.accel.interface import Cost
from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.net.receptive import cuttable_axes, may_be_cut
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.layout.frame_memory import SMALLEST
from npukit.plan.tensors.boxes import GRAINS, Boxes, Split, common, from_boxes, grid, to_boxes, volumes
from npukit.plan.tensors.core_cycles import CHAIN_CYCLES, DOORBELL_CYCLES, DOZE_CYCLES, SEND_CYCLES, WAKE_CYCLES
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import borders_on, to_go

SPLITS = 2
"""Splits tried of each number of tiles."""

ROOMS = (3 / 4, 5 / 8, 1 / 2, 3 / 8)
"""Parts of a PE's memory that constants and states may take, tried."""

TENSORS = 1 / 8
"""The part of a PE's memory by which constants, states and the largest operands of a tile may be more than that."""

PRICES = (0.0, 1.0, 10.0)
"""Cycles that a byte of constants and states on each PE costs, tried from the first on until all have room: rows of a
layer on PEs of their own are fast, and each holds the weights again."""

ROOT = 1 / 2
"""The part of its room that the root, which gives all others the inputs and starts them, keeps for its orders."""

PIECE, LOAD, BORDER = 4.0, 1 / 16, 4000
"""Cycles that are held to be lost by each tile more, as whoever gathers the output waits for it; by a cycle that a PE
sends, or a flit's hop; and by leaving the chip on which an op's inputs are. Eight blocks of
`benchmarks/transformers/language_model.py` on four chips were predicted at 381,845 cycles a token with 400 for a
border."""


TILE = 250
"""Bytes of commands, signals and rows of a table that a tile is expected to have: in MiniLM's plans on four chips
165 to 189 on the average, up to 409 on nineteen of twenty PEs."""

AHEAD = 2
"""Ops of nothing but states by which each of them comes earlier: a block of attention takes two, for its keys and its
values. Eight blocks of `benchmarks/transformers/language_model.py --plan-only` on four chips were predicted at 137,998
cycles a token with 1, which delays the first block, and at 137,805 with 2."""


SHOWN = 2
"""Blocks that are planned alone, of many that are alike, to see which rooms they fit in."""


@dataclass(frozen=True, eq=False)
class _Made:
    """The tiles of a tensor: their boxes, the places of their PEs, and when each is there."""

    boxes: Boxes
    places: np.ndarray
    done: np.ndarray


@dataclass(frozen=True, eq=False)
class _Choice:
    """An op in a split on some places: when each tile is done, and what decides between choices."""

    split: Split
    made: _Made
    cost: Cost
    operands: int
    """The most bytes that a tile reads and writes."""
    merit: float
    orders: np.ndarray
    """Bytes of commands and descriptors of it on each PE."""


class ListSchedule:
    """The pass over the ops of a problem: each PE may hold `room` bytes of constants, states and orders, at a price.

    `from_dram`: inputs come to each PE from there, and constants that are worth it are streamed.
    """

    def __init__(self, problem: Problem, room: int, price: float = 0.0, *, from_dram: bool = False) -> None:
        self._problem, self._graph, self._room = problem, problem.graph, room
        self._price = price / len(problem.order)
        self._way = _Way(problem)
        count = len(problem.order)
        self._unlike = problem.unlike(count)
        cpus = [problem.board.cpu_of(pe) for pe in self._unlike]
        self._cores = np.array([cpus.index(problem.board.cpu_of(pe)) for pe in problem.order])
        self._free, self._held = np.zeros(count), np.zeros(count)
        self._operands = np.zeros(count)
        self._fetched = self._graph.net.inputs if from_dram else ()
        self._streamed_from = SMALLEST if from_dram else inf
        if not from_dram:
            net = self._graph.net
            self._held[0] = ROOT * room
            self._operands[0] = sum(net.tensor(name).bytes for name in (*net.inputs, *net.outputs))
        self._most = room + TENSORS * problem.board.memory_for("activations").size
        self._made: dict[str, _Made] = {}
        self._last = _Made(np.zeros((0, 0, 2), np.int64), np.zeros(1, np.int64), np.zeros(1))
        self._costs: dict[Hashable, Sequence[Cost]] = {}
        self._largest_boxes: dict[tuple[tuple[int, ...], Split], Box] = {}
        self._found: dict[str, tuple[Tile, ...]] = {}
        self._waiting: dict[str, Op] = {}
        self._like = _earlier_likes(problem.graph)
        self._split_of: dict[str, Split] = {}

    def assignment(self) -> Assignment | None:
        """The tiles of every op; None if the PEs have no room for them."""
        for name in self._graph.net.inputs:
            whole = from_boxes([Box.whole(self._graph.shape(name))])
            self._made[name] = _Made(whole, np.zeros(1, np.int64), np.zeros(1))
        for op in self._graph.ops:
            if not any(home in self._made for home in self._graph.sources(op)):
                self._waiting[op.output] = op
            elif not self._placed(op):
                return None
        for op in self._waiting.values():
            self._follow(op, (1,) * len(self._graph.shape(op.output)), self._last.places[:1])
        return self._found

    @property
    def cycles(self) -> int:
        """The cycle at which the last op is done, if what comes from DRAM comes at once."""
        return int(max(made.done.max() for made in self._made.values()))

    @property
    def held(self) -> int:
        """The most bytes that a PE holds of constants that are not streamed, states and orders."""
        return int(self._held.max())

    def _placed(self, op: Op) -> bool:
        """Takes the best choice for an op, if there is one. What it reads that waits for a place comes to it."""
        known = self._split_of.get(self._like.get(op.name, ""))
        best = (self._best(op, [known]) if known else None) or self._best(op, self._splits(op))
        if best is None:
            return False
        self._split_of[op.name] = best.split
        self._take(op, best)
        for home in dict.fromkeys(self._graph.sources(op)):
            if home in self._waiting:
                self._follow(self._waiting.pop(home), best.split, best.made.places)
        return True

    def _follow(self, op: Op, split: Split, places: np.ndarray) -> None:
        """Places an op of nothing but states, which are where it is, as the first op that reads what it makes."""
        shape, axes = self._graph.shape(op.output), cuttable_axes(self._graph.net, op)
        same = len(split) == len(shape) and all(parts == 1 or axis in axes for axis, parts in enumerate(split))
        same = same and may_be_cut(self._graph.net, op, split)
        boxes = self._tiles(op, split if same else (1,) * len(shape))
        self._note(op, _Made(boxes, places[: len(boxes)], self._free[places[: len(boxes)]]))

    def _take(self, op: Op, choice: _Choice) -> None:
        self._last = choice.made
        self._free[choice.made.places] = choice.made.done
        self._held[choice.made.places] += self._bytes(op, choice.made.boxes, choice.cost)
        self._held += choice.orders
        self._operands[choice.made.places] = np.maximum(self._operands[choice.made.places], choice.operands)
        self._note(op, choice.made)

    def _note(self, op: Op, made: _Made) -> None:
        self._made[op.output] = made
        pes = (self._problem.order[place] for place in made.places)
        self._found[op.name] = tuple(map(Tile, pes, to_boxes(made.boxes)))

    def _bytes(self, op: Op, boxes: Boxes, cost: Cost) -> int:
        """Bytes that a tile keeps from frame to frame: its constants, and what it makes of a state."""
        kept = op.output in self._graph.kept.values()
        streamed = op.engine != CORE and cost.constant_bytes > self._streamed_from
        constants = TILE if streamed else cost.constant_bytes
        return constants + kept * int(volumes(boxes).max()) * self._graph.element_bytes(op.output)

    def _best(self, op: Op, splits: Iterable[Split]) -> _Choice | None:
        return min(self._choices(op, splits), key=lambda choice: choice.merit, default=None)

    def _choices(self, op: Op, splits: Iterable[Split]) -> Iterator[_Choice]:
        for split in splits:
            boxes, cost = self._tiles(op, split), self._cost(op, split)
            needs = [(home, needed) for home, needed in self._graph.needs(op, boxes) if home in self._made]
            moved = [(home, needed) for home, needed in needs if home not in self._fetched]
            size = self._bytes(op, boxes, cost)
            operands = self._bytes_of([*needs, (op.output, boxes)])
            room = np.minimum(self._room, self._most - np.maximum(self._operands, operands))
            roomy = self._carrying(op.engine) & (self._held + size <= room)
            for places in self._placements(moved, len(boxes), roomy):
                choice = _Choice(split, _Made(boxes, places, places), cost, operands, 0, places)
                yield self._choice(choice, self._cycles(op, split)[self._cores[places]], moved, size)

    def _bytes_of(self, parts: list[tuple[str, Boxes]]) -> int:
        """The most bytes of a tile in its boxes of these tensors."""
        return int(np.sum([volumes(boxes) * self._graph.element_bytes(name) for name, boxes in parts], axis=0).max())

    def _choice(self, choice: _Choice, cycles: np.ndarray, needs: list[tuple[str, Boxes]], size: int) -> _Choice:
        """The choice with its times and its merit; on each place the op takes `cycles` and keeps bytes of that size."""
        boxes, places = choice.made.boxes, choice.made.places
        ready, load, orders = self._free[places], 0.0, np.zeros(len(self._free))
        orders[places] += TILE
        for home, needed in needs:
            arrived, sent = self._way.arrival(self._made[home], needed, places, self._graph.element_bytes(home))
            ready, load = np.maximum(ready, arrived), load + sent
            np.add.at(orders, self._made[home].places, self._way.orders(self._made[home], needed, places))
        done = ready + cycles + CHAIN_CYCLES
        held = float(orders.sum()) + size * len(boxes)
        merit = float(done.max()) + PIECE * len(boxes) + self._price * held + LOAD * load
        return replace(choice, made=_Made(boxes, places, done), merit=merit, orders=orders)

    def _splits(self, op: Op) -> Iterator[Split]:
        """The splits of what it reads, and the cheapest of each number of tiles."""
        possible = list(self._possible(op))
        made = [self._graph.maker_of[home].name for home in self._graph.sources(op) if home in self._graph.maker_of]
        known = {self._split_of[name] for name in made if name in self._split_of}
        yield from sorted(known.intersection(possible))
        by_count: dict[int, list[tuple[float, Split]]] = {}
        for split in possible:
            by_count.setdefault(prod(split), []).append((self._promise(op, split), split))
        for ranked in by_count.values():
            yield from (split for _, split in sorted(ranked)[:SPLITS])

    def _promise(self, op: Op, split: Split) -> float:
        """The cycles of the largest tile, of bringing what it reads and writes, and those that constants are worth."""
        cost, largest, noc = self._cost(op, split), from_boxes([self._largest(op, split)]), self._problem.board.noc
        operands = self._bytes_of([*self._graph.needs(op, largest), (op.output, largest)])
        brought = operands / noc.port_bytes_per_cycle if noc else 0.0
        return cost.cycles + brought + self._price * prod(split) * cost.constant_bytes

    def _possible(self, op: Op) -> Iterator[Split]:
        """Cuts of each axis in two, four, eight, ... parts."""
        shape, axes = self._graph.shape(op.output), cuttable_axes(self._graph.net, op)
        most = [
            size // (GRAINS[1] if axis == len(shape) - 1 else 1) if axis in axes else 1
            for axis, size in enumerate(shape)
        ]
        counts = ([1 << power for power in range(max(each, 1).bit_length())] for each in most)
        most, net = len(self._problem.order), self._graph.net
        return (split for split in product(*counts) if prod(split) <= most and may_be_cut(net, op, split))

    def _tiles(self, op: Op, split: Split) -> Boxes:
        shape = self._graph.shape(op.output)
        last = len(shape) - 1
        grains = (1,) * last + tuple(next((g for g in GRAINS if shape[last] >= g * parts), 1) for parts in split[last:])
        boxes = grid(shape, split, grains)
        return boxes[volumes(boxes) > 0]

    def _cost(self, op: Op, split: Split) -> Cost:
        """The cost of the largest tile on the first PE."""
        return self._costs_by_core(op, split)[0]

    def _cycles(self, op: Op, split: Split) -> np.ndarray:
        """The cycles of the largest tile by core."""
        return np.array([cost.cycles for cost in self._costs_by_core(op, split)])

    def _costs_by_core(self, op: Op, split: Split) -> Sequence[Cost]:
        """The cost of the largest tile on each core, the first PE's first; ops that are alike cost the same."""
        box = self._largest(op, split)
        key = self._problem.graph.form(op), box.shape
        if key not in self._costs:
            self._costs[key] = [self._problem.cost(op, box, pe) for pe in self._unlike]
        return self._costs[key]

    def _largest(self, op: Op, split: Split) -> Box:
        """The largest tile of a split, the first of its size."""
        key = self._graph.shape(op.output), split
        if key not in self._largest_boxes:
            tiles = self._tiles(op, split)
            (self._largest_boxes[key],) = to_boxes(tiles[[volumes(tiles).argmax()]])
        return self._largest_boxes[key]

    def _carrying(self, engine: str) -> np.ndarray:
        """True at each place whose PE carries an engine."""
        carrying = np.ones(len(self._free), bool)
        if engine in self._problem.places:
            carrying[:] = False
            carrying[list(self._problem.places[engine])] = True
        return carrying

    def _placements(self, needs: list[tuple[str, Boxes]], count: int, roomy: np.ndarray) -> Iterator[np.ndarray]:
        """The places of that many tiles, of those that have room: those idle first, and where their inputs are."""
        if roomy.sum() < count:
            return
        made = [self._made[home] for home, _ in needs] or [self._last]
        ready = max(each.done.max() for each in made)
        begins = np.maximum(self._free, ready) + BORDER * self._way.borders(np.concatenate([m.places for m in made]))
        idle = np.argsort(np.where(roomy, begins, np.inf), kind="stable")
        yield np.sort(idle[:count])
        near = self._near(needs, count, roomy)
        if near is not None:
            yield near

    def _near(self, needs: list[tuple[str, Boxes]], count: int, roomy: np.ndarray) -> np.ndarray | None:
        """The place of each tile that holds most of what it needs; None if that is not one place for each."""
        overlap = np.zeros((count, len(self._free)))
        for home, needed in needs:
            made = self._made[home]
            shared = volumes(common(made.boxes[None], needed[:, None])) * self._graph.element_bytes(home)
            np.add.at(overlap.T, made.places, shared.T)
        overlap[:, ~roomy] = -1
        found = np.zeros(count, np.int64)
        for tile in range(count):
            found[tile] = overlap[tile].argmax()
            if overlap[tile, found[tile]] <= 0:
                return None
            overlap[:, found[tile]] = -1
        return found


class _Way:
    """The cost of moving tensors between the PEs of an order."""

    def __init__(self, problem: Problem) -> None:
        board = problem.board
        assert board.noc is not None
        self._noc = board.noc
        pes, chips = board.mesh.pes, board.mesh.chips
        chip, place = np.divmod(np.array(problem.order), pes.count)
        self._rows = chip // chips.columns * pes.rows + place // pes.columns
        self._columns = chip % chips.columns * pes.columns + place % pes.columns
        self._chip, self._chips = chip, chips
        every = range(chips.count)
        self._borders = np.array([[borders_on(board.mesh, *to_go(board.mesh, a, b)) for b in every] for a in every])

    def arrival(self, made: _Made, needed: Boxes, places: np.ndarray, element_bytes: int) -> tuple[np.ndarray, float]:
        """The cycle at which each tile has all that it needs of a tensor; the cycles of all sending PEs."""
        shared = volumes(common(made.boxes[None], needed[:, None])) * element_bytes
        there = np.where(shared > 0, made.done[None], 0).max(1)
        far = (shared > 0) & (places[:, None] != made.places[None])
        if not far.any():
            return there, 0.0
        flits = np.where(far, -(-shared // self._noc.port_bytes_per_cycle), 0)
        alike = np.where(far, shared, 0).max(0) == np.where(far, shared, np.inf).min(0)
        sends = np.where(alike, far.any(0), far.sum(0))
        sending = sends * (self._noc.setup_cycles + flits.max(0))
        sent = made.done + SEND_CYCLES + DOORBELL_CYCLES + sending
        arrived = np.where(far, sent[None] + self._travel(places, made.places, flits), 0).max(1)
        first = np.where(far, made.done[None], np.inf).min(1) + SEND_CYCLES + self._noc.setup_cycles
        received = np.maximum(arrived, first + flits.sum(1)) + DOZE_CYCLES + WAKE_CYCLES
        carried = (self._hops(places, made.places) * flits).max(0) * sends
        return np.where(far.any(1), np.maximum(there, received), there), float((sending + carried).sum())

    @staticmethod
    def orders(made: _Made, needed: Boxes, places: np.ndarray) -> np.ndarray:
        """Bytes of descriptors of each tile's PE for what it sends."""
        shared = volumes(common(made.boxes[None], needed[:, None]))
        far = (shared > 0) & (places[:, None] != made.places[None])
        alike = np.where(far, shared, 0).max(0) == np.where(far, shared, np.inf).min(0)
        reached = far.sum(0)
        lists = DESTINATION_BYTES * np.where(alike & (reached > 1), reached, 0)
        return DESCRIPTOR_BYTES * np.where(alike, reached > 0, reached) + lists

    def _travel(self, to: np.ndarray, source: np.ndarray, flits: np.ndarray) -> np.ndarray:
        """Cycles from each source to each destination: hops, and what crosses borders of chips in its slower steps."""
        borders = self._borders[self._chip[to][:, None], self._chip[source][None]]
        slow = self._noc.port_bytes_per_cycle / self._noc.chip_link_bytes_per_cycle
        crossing = flits.max(0).sum() * slow / self._noc.chip_links_per_border
        return (
            self._hops(to, source) * self._noc.hop_cycles
            + borders * self._noc.chip_hop_cycles
            + (borders > 0) * crossing
        )

    def borders(self, places: np.ndarray) -> np.ndarray:
        """The borders of chips between each place and the chip in the middle of these."""
        row, column = (int(np.median(axis).round()) for axis in np.divmod(self._chip[places], self._chips.columns))
        return self._borders[self._chip, row * self._chips.columns + column]

    def _hops(self, to: np.ndarray, source: np.ndarray) -> np.ndarray:
        return self._distance(self._rows, to, source) + self._distance(self._columns, to, source)

    @staticmethod
    def _distance(axis: np.ndarray, to: np.ndarray, source: np.ndarray) -> np.ndarray:
        return abs(axis[to][:, None] - axis[source][None])


def _earlier_likes(graph: Graph) -> dict[str, str]:
    """The op of the block before that an op is like, by name, in a network of blocks that are alike: there most ops are
    like those so many places before."""
    names = [op.name for op in graph.ops]
    return {names[place]: names[place - period] for period, alike in [_period(graph)] for place in alike}


def _period(graph: Graph) -> tuple[int, list[int]]:
    """The ops of a block, of which most are like those as many places before, and the places of the ops that are."""
    forms = [graph.form(op) for op in graph.ops]
    for period in range(1, len(forms) // 2 + 1):
        alike = [place for place in range(period, len(forms)) if forms[place] == forms[place - period]]
        if 2 * len(alike) > len(forms):
            return period, alike
    return 0, []


def first_blocks(graph: Graph) -> Graph:
    """The graph of the first `SHOWN` blocks, if it has twice as many that are alike; else all of it."""
    net, (period, alike) = graph.net, _period(graph)
    if len(alike) < 2 * SHOWN * period or not alike:
        return graph
    some = net.ops[: net.ops.index(graph.ops[alike[0] + (SHOWN - 1) * period])]
    made = {op.output for op in some}
    states = tuple(state for state in net.states if state.output in made)
    lost = {state.input for state in net.states} - {state.input for state in states}
    ops = list[Op]()
    for op in some:
        if lost.isdisjoint(net.activations(op)):
            ops.append(op)
        else:
            lost.add(op.output)
    later = {name for op in net.ops[len(some) :] for name in net.activations(op)}
    becomes = {state.output for state in states}
    outputs = tuple(op.output for op in ops if op.output in later - becomes)
    return Graph(replace(net, ops=tuple(ops), outputs=outputs, states=states))


def states_early(graph: Graph) -> Graph:
    """The graph with each op of nothing but states right behind the one `AHEAD` before it.

    So PEs that wait for the block before theirs do it meanwhile. What a state becomes stays behind all that read it,
    and each op behind those that make what it reads.
    """
    net, there, becomes = graph.net, dict.fromkeys(graph.kept, 0), set(graph.kept.values())
    moved, follows = list[int](), list(range(len(net.ops)))
    for place, op in enumerate(net.ops):
        needed = set(net.activations(op))
        if needed and needed <= there.keys() and op.output not in becomes:
            earlier = moved[-AHEAD] if len(moved) >= AHEAD else place
            follows[place] = max(earlier, *(there[name] for name in needed))
            there.update(dict.fromkeys(op.outputs, follows[place]))
            moved.append(place)
    order = sorted(range(len(net.ops)), key=lambda place: (follows[place], place))
    return Graph(net.with_ops(tuple(net.ops[place] for place in order)))


def schedules_from_dram(problem: Problem) -> Iterator[tuple[Assignment, ListSchedule]]:
    """Schedules with inputs and constants in DRAM, for each room the first that has a place for all ops."""
    for part in ROOMS:
        room = int(part * problem.board.memory_for("constants").size)
        passes = (ListSchedule(problem, room, price, from_dram=True) for price in PRICES)
        yield from islice(((found, each) for each in passes if (found := each.assignment())), 1)
