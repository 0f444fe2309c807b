"""One frame on many PEs by list scheduling: each op in turn goes to the PEs on which it is done first.

Candidates for an op are splits of each size, on the PEs that hold the op's inputs and on idle PEs with room for its
constants. Layers with a common input lie side by side, repeated layers lie on other PEs once the first PEs are full,
and tensors cross a border of chips only if necessary. A schedule is a single pass over the ops; `layout_search.py`
compares layouts of all tensors instead, and places every op from the first PE on.
`benchmarks/large/planner_constants.py list-schedule` measures the constants.
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
from npukit.plan.predict.exchange_cycles import hops_on
from npukit.plan.tensors.boxes import GRAINS, Boxes, Split, common, from_boxes, tiles_of, to_boxes, volumes
from npukit.plan.tensors.core_cycles import CHAIN_CYCLES, DOORBELL_CYCLES, DOZE_CYCLES, SEND_CYCLES, WAKE_CYCLES
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import borders_on, to_go

ROOMS = (3 / 4, 5 / 8, 1 / 2, 3 / 8)
"""Parts of a PE's memory for constants and states, tried in turn."""

TENSORS = 1 / 8
"""Part of a PE's memory for a tile's largest operands, in addition to constants and states."""

PRICES = (0.0, 1.0, 10.0)
"""Cycles per byte of constants and states on a PE, raised until all ops have room. Rows of a layer on separate PEs are
fast, but each PE holds a copy of the weights."""

PIECE, LOAD, BORDER = 4.0, 1 / 16, 4000
"""Cycles per tile, because the reader of an output waits for every tile; per cycle of a sending PE or hop of a flit;
and for leaving the chip of an op's inputs. Eight blocks of `benchmarks/transformers/language_model.py` on four chips
were predicted at 381,845 cycles a token with 400 for a border."""

TILE = 250
"""Estimated bytes of a tile's commands, signals and table rows. In MiniLM's plans on four chips the average is 165 to
189, and 19 of 20 PEs have at most 409."""


@dataclass(frozen=True, eq=False)
class _Placed:
    """The tiles of a tensor: boxes, places of the PEs in the order, and cycles at which the tiles are done."""

    boxes: Boxes
    places: np.ndarray
    done: np.ndarray


@dataclass(frozen=True, eq=False)
class _Choice:
    """An op in a split on some places. The choice with the least `merit` is taken.

    `kept`: bytes of a tile from frame to frame. `operands`: bytes read and written by the largest tile. `orders`: bytes
    of commands and descriptors on each PE.
    """

    split: Split
    placed: _Placed
    kept: int
    operands: int
    merit: float
    orders: np.ndarray


_Transfer = tuple[np.ndarray, float, np.ndarray]
"""A tensor on its way to an op's tiles: the cycle at which each tile has its part, the cycles of all sending PEs, and
bytes of descriptors on each sending PE."""


class ListSchedule:
    """A pass over the ops of a problem. Each PE may hold `room` bytes of constants, states and orders.

    `price`: cycles per byte. `from_dram`: each PE fetches inputs from DRAM, and large constants are streamed.
    """

    def __init__(self, problem: Problem, room: int, price: float = 0.0, *, from_dram: bool = False) -> None:
        board, count, net = problem.board, len(problem.order), problem.net
        assert board.noc is not None
        self._problem, self._graph, self._room, self._noc = problem, problem.graph, room, board.noc
        self._hops, self._chip = hops_on(board, problem.order), np.array(problem.order) // board.mesh.pes.count
        every = range(board.mesh.chips.count)
        self._borders = np.array([[borders_on(board.mesh, *to_go(board.mesh, a, b)) for b in every] for a in every])
        self._price = price / count
        self._unlike = problem.unlike(count)
        cpus = [board.cpu_of(pe) for pe in self._unlike]
        self._cores = np.array([cpus.index(board.cpu_of(pe)) for pe in problem.order])
        self._free, self._held, self._operands = np.zeros(count), np.zeros(count), np.zeros(count)
        self._fetched = net.inputs if from_dram else ()
        self._streamed_from = SMALLEST if from_dram else inf
        if not from_dram:
            self._held[0] = room / 2  # the root sends the inputs to all others and starts them
            self._operands[0] = sum(net.tensor(name).bytes for name in (*net.inputs, *net.outputs))
        self._most = room + TENSORS * board.memory_for("activations").size
        self._placed: dict[str, _Placed] = {}
        self._last = _Placed(from_boxes([]), np.zeros(1, np.int64), np.zeros(1))
        self._known_costs: dict[Hashable, Sequence[Cost]] = {}
        self._largest_boxes: dict[tuple[tuple[int, ...], Split], Box] = {}
        self._found, self._waiting = dict[str, tuple[Tile, ...]](), dict[str, Op]()
        (period, repeated), ops = _period(self._graph), self._graph.ops
        self._same_before = {ops[index].name: ops[index - period].name for index in repeated}
        begins = ops[repeated[0] : len(ops) - period + 1 : period] if repeated else ()
        self._blocks_left = {op.name: left for left, op in enumerate(reversed(begins), 1)}
        self._held_before, self._open = float(self._held.sum()), np.ones(count, bool)
        self._split_of: dict[str, Split] = {}

    def assignment(self) -> Assignment | None:
        """The tiles of every op; None if the PEs lack room.

        An op that reads only states waits for its first reader, and goes to the reader's PEs.
        """
        for name in self._graph.net.inputs:
            whole = from_boxes([Box.whole(self._graph.shape(name))])
            self._placed[name] = _Placed(whole, np.zeros(1, np.int64), np.zeros(1))
        for op in self._graph.ops:
            if op.name in self._blocks_left:
                self._begin_block(self._blocks_left[op.name])
            if not any(home in self._placed for home in self._graph.sources(op)):
                self._waiting[op.output] = op
            elif not self._place(op):
                return None
        for op in self._waiting.values():
            self._place_beside(op, (1,) * len(self._graph.shape(op.output)), self._last.places[:1])
        return self._found

    @property
    def cycles(self) -> int:
        """The cycle at which the last op is done, without waits for DRAM."""
        return int(max(placed.done.max() for placed in self._placed.values()))

    @property
    def held(self) -> int:
        """Bytes of resident constants, states and orders on the fullest PE."""
        return int(self._held.max())

    def _begin_block(self, left: int) -> None:
        """Close the chip of the last op if it lacks room for a block like the last, and the other chips have room for
        all blocks `left`. A block on two chips sends its widest tensors over the border."""
        block, self._held_before = self._held.sum() - self._held_before, self._held.sum()
        rooms = np.bincount(self._chip, self._open * np.maximum(self._room - self._held, 0))
        here = self._chip[self._last.places[0]]
        if rooms[here] < block and (np.delete(rooms, here) // block).sum() >= left:
            self._open &= self._chip != here

    def _place(self, op: Op) -> bool:
        """Take the best choice for an op, and place the waiting ops among its inputs. False if the PEs lack room.

        The split of the same op in the block before comes first.
        """
        known, best = self._split_of.get(self._same_before.get(op.name, "")), None
        for splits in ([known] if known else [], self._splits(op)):
            best = best or min(self._choices(op, splits), key=lambda choice: choice.merit, default=None)
        if best is None:
            return False
        self._split_of[op.name], self._last, places = best.split, best.placed, best.placed.places
        self._free[places] = best.placed.done
        self._held[places] += best.kept
        self._held += best.orders
        self._operands[places] = np.maximum(self._operands[places], best.operands)
        self._note(op, best.placed)
        for home in dict.fromkeys(self._graph.sources(op)):
            if home in self._waiting:
                self._place_beside(self._waiting.pop(home), best.split, places)
        return True

    def _place_beside(self, op: Op, split: Split, places: np.ndarray) -> None:
        """Place an op that reads only states in the split of its first reader, if possible, else whole."""
        shape, axes = self._graph.shape(op.output), cuttable_axes(self._graph.net, op)
        same = len(split) == len(shape) and all(parts == 1 or axis in axes for axis, parts in enumerate(split))
        same = same and may_be_cut(self._graph.net, op, split)
        boxes = self._tiles(op, split if same else (1,) * len(shape))
        places = places[: len(boxes)]
        self._note(op, _Placed(boxes, places, self._free[places]))

    def _note(self, op: Op, placed: _Placed) -> None:
        self._placed[op.output] = placed
        pes = (self._problem.order[place] for place in placed.places)
        self._found[op.name] = tuple(map(Tile, pes, to_boxes(placed.boxes)))

    def _choices(self, op: Op, splits: Iterable[Split]) -> Iterator[_Choice]:
        """The choices for an op: each split on each placement with room."""
        places = np.arange(len(self._free))
        carries = np.isin(places, self._problem.places.get(op.engine, places))
        for split in splits:
            boxes, costs = self._tiles(op, split), self._costs(op, split)
            needs = [(home, needed) for home, needed in self._graph.needs(op, boxes) if home in self._placed]
            moved = [(home, needed) for home, needed in needs if home not in self._fetched]
            kept = self._kept_bytes(op, boxes, costs[0])
            operands = self._most_bytes([*needs, (op.output, boxes)])
            room = np.minimum(self._room, self._most - np.maximum(self._operands, operands))
            roomy = carries & self._open & (self._held + kept <= room)
            by_core = np.array([cost.cycles for cost in costs])
            for places in self._placements(moved, len(boxes), roomy):
                ready, load, orders = self._free[places], 0.0, np.zeros(len(self._free))
                orders[places] += TILE
                for home, needed in moved:
                    size, source = self._graph.element_bytes(home), self._placed[home]
                    arrived, sending, descriptors = self._transfer(source, needed, places, size)
                    ready, load = np.maximum(ready, arrived), load + sending
                    np.add.at(orders, source.places, descriptors)
                done = ready + by_core[self._cores[places]] + CHAIN_CYCLES
                held = float(orders.sum()) + kept * len(boxes)
                merit = float(done.max()) + PIECE * len(boxes) + self._price * held + LOAD * load
                yield _Choice(split, _Placed(boxes, places, done), kept, operands, merit, orders)

    def _kept_bytes(self, op: Op, boxes: Boxes, cost: Cost) -> int:
        """Bytes of a tile from frame to frame: resident constants, and the new value of a state."""
        state = op.output in self._graph.kept.values()
        streamed = op.engine != CORE and cost.constant_bytes > self._streamed_from
        constants = TILE if streamed else cost.constant_bytes
        return constants + state * int(volumes(boxes).max()) * self._graph.element_bytes(op.output)

    def _most_bytes(self, parts: list[tuple[str, Boxes]]) -> int:
        """Bytes of the largest tile, given the boxes of several tensors by tile."""
        return int(np.sum([volumes(boxes) * self._graph.element_bytes(name) for name, boxes in parts], axis=0).max())

    def _splits(self, op: Op) -> Iterator[Split]:
        """The splits of the op's inputs, then the two splits with the least estimate of each number of tiles."""
        possible = list(self._possible(op))
        makers = [self._graph.maker_of[home].name for home in self._graph.sources(op) if home in self._graph.maker_of]
        known = {self._split_of[name] for name in makers if name in self._split_of}
        yield from sorted(known.intersection(possible))
        by_count: dict[int, list[tuple[float, Split]]] = {}
        for split in possible:
            by_count.setdefault(prod(split), []).append((self._estimate(op, split), split))
        for ranked in by_count.values():
            yield from (split for _, split in sorted(ranked)[:2])

    def _estimate(self, op: Op, split: Split) -> float:
        """Cycles of the largest tile: to compute, to move its operands, and the price of its constants."""
        cost, largest, noc = self._costs(op, split)[0], from_boxes([self._largest(op, split)]), self._problem.board.noc
        operands = self._most_bytes([*self._graph.needs(op, largest), (op.output, largest)])
        moved = operands / noc.port_bytes_per_cycle if noc else 0.0
        return cost.cycles + moved + self._price * prod(split) * cost.constant_bytes

    def _possible(self, op: Op) -> Iterator[Split]:
        """Splits with 1, 2, 4, 8, ... parts along each axis."""
        shape, axes, net = self._graph.shape(op.output), cuttable_axes(self._graph.net, op), self._graph.net
        most = [size if axis in axes else 1 for axis, size in enumerate(shape)]
        most[-1:] = [size // GRAINS[1] for size in most[-1:]]
        counts = ([1 << power for power in range(max(size, 1).bit_length())] for size in most)
        pes = len(self._problem.order)
        return (split for split in product(*counts) if prod(split) <= pes and may_be_cut(net, op, split))

    def _tiles(self, op: Op, split: Split) -> Boxes:
        boxes = tiles_of(self._graph.shape(op.output), split)
        return boxes[volumes(boxes) > 0]

    def _costs(self, op: Op, split: Split) -> Sequence[Cost]:
        """The cost of the largest tile on each kind of core, the first PE's first. Ops of one form cost the same."""
        box = self._largest(op, split)
        key = self._graph.form(op), box.shape
        if key not in self._known_costs:
            self._known_costs[key] = [self._problem.cost(op, box, pe) for pe in self._unlike]
        return self._known_costs[key]

    def _largest(self, op: Op, split: Split) -> Box:
        """The first of the largest tiles of a split."""
        key = self._graph.shape(op.output), split
        if key not in self._largest_boxes:
            tiles = self._tiles(op, split)
            (self._largest_boxes[key],) = to_boxes(tiles[[volumes(tiles).argmax()]])
        return self._largest_boxes[key]

    def _placements(self, needs: list[tuple[str, Boxes]], count: int, roomy: np.ndarray) -> Iterator[np.ndarray]:
        """Places for `count` tiles, among the places with room: the places idle first, and the places of the inputs."""
        if roomy.sum() < count:
            return
        inputs = [self._placed[home] for home, _ in needs] or [self._last]
        ready, sources = max(each.done.max() for each in inputs), np.concatenate([each.places for each in inputs])
        begins = np.maximum(self._free, ready) + BORDER * self._borders_to(sources)
        idle = np.argsort(np.where(roomy, begins, np.inf), kind="stable")
        yield np.sort(idle[:count])
        near = self._near(needs, count, roomy)
        if near is not None:
            yield near

    def _near(self, needs: list[tuple[str, Boxes]], count: int, roomy: np.ndarray) -> np.ndarray | None:
        """The place with most of the inputs of each tile; None if some tile has no separate place with inputs."""
        overlap = np.zeros((count, len(self._free)))
        for home, needed in needs:
            placed = self._placed[home]
            shared = volumes(common(placed.boxes[None], needed[:, None])) * self._graph.element_bytes(home)
            np.add.at(overlap.T, placed.places, shared.T)
        overlap[:, ~roomy] = -1
        found = np.zeros(count, np.int64)
        for tile in range(count):
            found[tile] = overlap[tile].argmax()
            if overlap[tile, found[tile]] <= 0:
                return None
            overlap[:, found[tile]] = -1
        return found

    def _transfer(self, source: _Placed, needed: Boxes, places: np.ndarray, element_bytes: int) -> _Transfer:
        """The transfer of each tile's needed part of a tensor. PEs multicast a part that all receivers share."""
        noc, shared = self._noc, volumes(common(source.boxes[None], needed[:, None])) * element_bytes
        there = np.where(shared > 0, source.done[None], 0).max(1)
        far = (shared > 0) & (places[:, None] != source.places[None])
        if not far.any():
            return there, 0.0, np.zeros(len(source.places))
        flits = np.where(far, -(-shared // noc.port_bytes_per_cycle), 0)
        multicast, receivers = np.where(far, shared, 0).max(0) == np.where(far, shared, np.inf).min(0), far.sum(0)
        sends = np.where(multicast, far.any(0), receivers)
        sending = sends * (noc.setup_cycles + flits.max(0))
        sent = source.done + SEND_CYCLES + DOORBELL_CYCLES + sending
        hops = self._hops[places[:, None], source.places[None]]
        arrived = np.where(far, sent[None] + self._travel(places, source.places, hops, flits), 0).max(1)
        first = np.where(far, source.done[None], np.inf).min(1) + SEND_CYCLES + noc.setup_cycles
        received = np.maximum(arrived, first + flits.sum(1)) + DOZE_CYCLES + WAKE_CYCLES
        carried = (hops * flits).max(0) * sends
        load, lists = float((sending + carried).sum()), np.where(multicast & (receivers > 1), receivers, 0)
        descriptors = DESCRIPTOR_BYTES * sends + DESTINATION_BYTES * lists
        return np.where(far.any(1), np.maximum(there, received), there), load, descriptors

    def _travel(self, to: np.ndarray, source: np.ndarray, hops: np.ndarray, flits: np.ndarray) -> np.ndarray:
        """Cycles from each source to each destination: hops, and the slower links between chips."""
        borders = self._borders[self._chip[to][:, None], self._chip[source][None]]
        slow = self._noc.port_bytes_per_cycle / self._noc.chip_link_bytes_per_cycle
        crossing = flits.max(0).sum() * slow / self._noc.chip_links_per_border
        return hops * self._noc.hop_cycles + borders * self._noc.chip_hop_cycles + (borders > 0) * crossing

    def _borders_to(self, places: np.ndarray) -> np.ndarray:
        """The borders of chips between each place of the order and the chip in the middle of some places."""
        columns = self._problem.board.mesh.chips.columns
        row, column = (int(np.median(axis).round()) for axis in np.divmod(self._chip[places], columns))
        return self._borders[self._chip, row * columns + column]


def _period(graph: Graph) -> tuple[int, list[int]]:
    """The number of ops of a repeated block, and the indices of the ops equal in form to the op a block before.

    Most ops must be. Without repeated blocks: 0 and no indices.
    """
    forms = [graph.form(op) for op in graph.ops]
    for period in range(1, len(forms) // 2 + 1):
        repeated = [index for index in range(period, len(forms)) if forms[index] == forms[index - period]]
        if 2 * len(repeated) > len(forms):
            return period, repeated
    return 0, []


def first_blocks(graph: Graph, blocks: int = 2) -> Graph:
    """The graph of the first repeated `blocks`, or the whole graph if less than twice as many blocks repeat."""
    net, (period, repeated) = graph.net, _period(graph)
    if len(repeated) < 2 * blocks * period or not repeated:
        return graph
    some = net.ops[: net.ops.index(graph.ops[repeated[0] + (blocks - 1) * period])]
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
    """The graph with each op that reads only states right behind the last but one op of its kind.

    PEs then compute these ops while waiting for the block before: a block of attention has two, for keys and for
    values. A state's new value stays behind all readers of the state, and each op behind the makers of its inputs.
    """
    net, there, becomes = graph.net, dict.fromkeys(graph.kept, 0), set(graph.kept.values())
    moved, follows = list[int](), list(range(len(net.ops)))
    for place, op in enumerate(net.ops):
        needed = set(net.activations(op))
        if needed and needed <= there.keys() and op.output not in becomes:
            earlier = moved[-2] if len(moved) >= 2 else place
            follows[place] = max(earlier, *(there[name] for name in needed))
            there.update(dict.fromkeys(op.outputs, follows[place]))
            moved.append(place)
    order = sorted(range(len(net.ops)), key=lambda place: (follows[place], place))
    return Graph(net.with_ops(tuple(net.ops[place] for place in order)))


def schedules_from_dram(problem: Problem) -> Iterator[tuple[Assignment, ListSchedule]]:
    """Schedules with inputs and large constants in DRAM: for each room the first that places all ops."""
    for part in ROOMS:
        room = int(part * problem.board.memory_for("constants").size)
        passes = (ListSchedule(problem, room, price, from_dram=True) for price in PRICES)
        yield from islice(((found, each) for each in passes if (found := each.assignment())), 1)
