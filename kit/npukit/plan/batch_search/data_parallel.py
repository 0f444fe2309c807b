"""Throughput of large meshes: groups of PEs data parallel, chosen by what one group of each size would take.

`benchmarks/large/planner_constants.py batches` measures what the constants are worth
(`benchmarks/large/planner_constants.md`).

A whole batch on hundreds of PEs takes long to emit and to simulate. Groups differ only in when their inputs arrive, so
that one of them tells what all take, and whether they fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import TypeVar

from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch, steady_batch
from npukit.plan.batch.channel_bands import bands_for, narrowed
from npukit.plan.batch.weight_streaming import most_streamed
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.batch_search.group_trials import MOST_MICRO_BATCHES, WELL_USED, Trials, Tried
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import FIRMWARE_BYTES, STACK_BYTES, missing_bytes
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.search.layout_search import QUICK, LatencySearch
from npukit.plan.search.tries import Budget, counted_in_order
from npukit.plan.tensors.boxes import WIDE_GRAIN
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import MOST, Problem

Item = TypeVar("Item")
Result = TypeVar("Result")

SIZES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 19, 21, 25, 30, 38)
"""PEs of a group, tried. Those between have as many groups on 152 PEs as the next larger one, which is faster."""

PRICE = 0.06
"""Cycles a byte of constants costs."""

SMALL_TILES, LARGE_TILES = (StreamWeights(tile_bytes=size << 10, tiles=2) for size in (9, 17))
"""Weight tiles, those first that leave most memory."""

HEAVY_MOVES = 3.0
"""Times what they are estimated to cost that moving data weighs in another search for the best sizes: while all groups
work, what is on its way takes longer. Without it MobileNetV2 on 152 PEs is 5.1 % slower (`planner_constants.py
batches`)."""

OTHER_WAYS = (replace(LARGE_TILES, room=0), replace(SMALL_TILES, room=0, prefetch_distance=2), SMALL_TILES)
"""Other weight tiles of the best groups, tried besides: larger ones, best for ResNets; tiles that come two ops before
they are used, for MobileNetV2; small ones everywhere, which leaves room for more micro-batches, for MobileNetV1."""

WORSE = 3
"""Sizes one after the other that are no better than the best before: larger ones are not tried."""

SETTLED, LESS_SETTLED = 0.87, 0.015
"""Part of what the first micro-batch takes that each micro-batch behind it takes at least; once some groups have told
what it is, so much less than the least of it."""

AT_ONCE = 4
"""Groups that are tried in micro-batches before it is asked which others may still be better."""

FORESEEN = 0.02
"""Part by which groups may be expected to take longer than the best ones and are still searched for again."""


def replicated_plan(problem: Problem) -> Plan | None:
    """The most frames a cycle that groups data parallel give, or None if none fit."""
    return _Replicated(problem).best()


class _Replicated:
    """The search on one board: groups of each size, then the best of them in more micro-batches and other ways."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._trials, self._budget = problem, Trials(problem), Budget(problem, MOST)
        self._search = LatencySearch(problem, QUICK, fetched=True)
        self._found: list[Tried] = []

    def best(self) -> Plan | None:
        self._take_all_sizes()
        self._take_micro_batches(list(self._found))
        if self._found:
            self._take_moving_less()
            self._take_other_ways(min(self._found, key=_by_interval))
        return _best_whole(self._problem, self._found)

    @property
    def _least(self) -> float:
        """The shortest interval so far."""
        return min(map(_by_interval, self._found), default=inf)

    def _each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for each item while the budget lasts."""
        for result in self._budget.within(counted_in_order(self._problem, work, items)):
            yield result
            if self._found:
                told = f"{self._least:,.0f} cycles a frame expected"
                self._problem.tell(self._problem.work.compared(self._least, told))

    def _take_all_sizes(self) -> None:
        """Groups of each size in one micro-batch, those that fit; but for those whose engines alone take longer than
        the best."""
        worse = 0

        def may_be_best(wanted: Batch) -> bool:
            return engine_cycles(self._problem, wanted) < self._least

        def of_size(size: int) -> Tried | None:
            wanted = _of_size(self._problem, size, self._search)
            return self._trials.first(wanted) if may_be_best(wanted) else None

        for tried in self._each(of_size, _sizes(self._problem)):
            worse = 0 if not self._found or (tried and tried.interval < self._least) else worse + 1
            # Which were worse than the least when they were begun depends on the clock, which are now does not.
            if tried and may_be_best(tried.wanted):
                self._found.append(tried)
            if worse == WORSE:
                break

    def _take_moving_less(self) -> None:
        """Groups of the best sizes again, found by a search in which moving data weighs more."""
        search, order = self._search.weighing(HEAVY_MOVES), self._problem.order
        best = [each for each in self._found if each.interval < self._least * (1 + FORESEEN)]

        def of_size(size: int) -> Tried | None:
            return self._trials.first(_of_size(self._problem, size, search))

        sizes = sorted({_size(order, each) for each in best})
        firsts = list(filter(None, self._each(of_size, sizes)))
        self._found += firsts
        self._take_micro_batches(firsts)

    def _take_micro_batches(self, waiting: list[Tried]) -> None:
        """Batches of these that may be the best, with as many micro-batches as one of their groups holds.

        The most promising first.
        """
        parts = [SETTLED + LESS_SETTLED]
        while not self._budget.is_spent:
            best, part = self._least, min(parts[1:] or parts) - LESS_SETTLED
            promising = [(each.interval_in(MOST_MICRO_BATCHES, part), place) for place, each in enumerate(waiting)]
            places = [place for interval, place in sorted(promising)[:AT_ONCE] if interval < best]
            if not places:
                return
            batch = [waiting[place] for place in places]
            waiting = [each for place, each in enumerate(waiting) if place not in places]
            for first, longer in zip(batch, self._each(partial(self._trials.longest, best=best), batch), strict=False):
                self._found += longer
                parts += [each.micro_batch / first.cycles for each in longer if each.micro_batch]

    def _take_other_ways(self, best: Tried) -> None:
        """The best groups with other weight tiles."""
        streamed = best.wanted.stream.ops
        wanted = [replace(best.wanted, stream=stream.of(streamed)) for stream in OTHER_WAYS if streamed]
        for found in self._each(partial(self._trials.otherwise, best), wanted):
            self._found += found


def _by_interval(tried: Tried) -> float:
    return tried.interval


def _size(order: Sequence[int], tried: Tried) -> int:
    """The size of its groups."""
    return (len(order) - len(tried.wanted.prefetchers)) // len(tried.wanted.groups)


def _best_whole(problem: Problem, every: Sequence[Tried]) -> Plan | None:
    """The whole batch that lets expect most, of those that fit."""
    for tried in sorted(every, key=_by_interval):
        plan = steady_batch(problem, tried.wanted, tried.settled)
        if not missing_bytes(problem.board, plan):
            return with_predictions(problem.net, problem.board, plan)
    return None


def closest_frame(problem: Problem) -> Plan:
    """One frame on all PEs, with whatever leaves most memory: small tiles, all constants streamed that can be."""
    assignment = LatencySearch(problem, QUICK, fetched=True).best(PRICE)
    wanted = Batch((assignment,), stream=SMALL_TILES)
    plan = most_streamed(problem, wanted) or emit_batch(problem, wanted)
    return with_predictions(problem.net, problem.board, plan)


def _sizes(problem: Problem) -> Iterator[int]:
    """Sizes of groups worth trying: of several of which there are as many groups the largest."""
    memory, order = problem.board.memory_for("activations").size, problem.order
    largest = {len(order) // size: size for size in SIZES if size <= len(order)}
    for size in sorted(largest.values()):
        crowded = _least_bytes(problem.graph) / size > memory - STACK_BYTES - FIRMWARE_BYTES - SMALL_TILES.least_bytes
        if not crowded and len(order) // size * size >= WELL_USED * len(order):
            yield size


def _of_size(problem: Problem, size: int, search: LatencySearch) -> Batch:
    """The best groups of a size."""
    assignment = search.on(problem.order[:size]).best(PRICE)
    bands = bands_for(problem.graph, problem.board, assignment)
    whole = batch_of(assignment, problem.order, size)
    return replace(whole, bands=bands, stream=replace(SMALL_TILES, room=0))


def batch_of(assignment: Assignment, order: Sequence[int], size: int) -> Batch:
    """The assignment on each group of so many PEs; those that are left ask for what is streamed."""
    groups = tuple(groups_of(assignment, order, size, root_last(order, size)))
    return Batch(groups, prefetchers=tuple(order[: len(order) % size]))


def groups_of(
    assignment: Assignment, order: Sequence[int], size: int, places: Sequence[int] | None = None
) -> Iterator[Assignment]:
    """The assignment of the first `size` PEs, on each group of so many; the first PEs are left if any are.

    The groups follow each other in the order of `places`, which is the same if none are given.
    """
    for start in range(len(order) % size, len(order), size):
        moved = dict(zip(order[:size], (places or order)[start : start + size], strict=True))
        yield {op: tuple(Tile(moved[tile.pe], tile.box) for tile in tiles) for op, tiles in assignment.items()}


def root_last(order: Sequence[int], size: int) -> list[int]:
    """The order with the root's group reversed: the root has most to hold, and a group's last PE has fewest tiles.

    Where PEs are left, the root is one of them.
    """
    return list(order) if len(order) % size else [*reversed(order[:size]), *order[size:]]


def engine_cycles(problem: Problem, wanted: Batch) -> float:
    """Cycles a frame of the busiest PE's engines."""
    busy: Counter[int] = Counter()
    for op in problem.graph.ops:
        for tile in wanted.groups[0][op.name]:
            busy[tile.pe] += problem.cost(op, tile.box, tile.pe).cycles
    return max(busy.values()) / len(wanted.groups)


def _least_bytes(graph: Graph) -> float:
    """The bytes of inputs and output of the op that has most; of tensors that may go in bands, the narrowest band."""
    thin = narrowed(graph)

    def held(name: str) -> float:
        channels = graph.shape(name)[-1] if name in thin else 0
        return graph.net.tensor(name).bytes * (WIDE_GRAIN / channels if channels > WIDE_GRAIN else 1)

    return max(sum(held(name) for name in {*graph.sources(op), op.output}) for op in graph.ops)
