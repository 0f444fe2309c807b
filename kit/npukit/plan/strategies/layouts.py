"""Layouts: the split of each op by dynamic programming, at rising prices of constants, on all PEs and on fewer; then a
walk over neighbours of the fastest frame."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from npukit.net.box import Box
from npukit.plan.batch.batch import frame
from npukit.plan.ir.assignment import Assignment
from npukit.plan.layout.layout_search import LatencySearch, effort_on
from npukit.plan.search.bound import may_be_resident
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Outcome, Proposals, Strategy
from npukit.plan.strategies.frames import fewer, resident
from npukit.plan.tensors.boxes import Split
from npukit.plan.tensors.problem import Problem

PRICES = (0.0, 0.02, 0.06, 0.2, 0.6, 2.0, 6.0)
"""Cycles per byte of constants on a PE, raised until the frame fits (`planner_constants.py frame`)."""

WEIGHT_OF_MOVES = 1.5
"""Weight of moving data in a second search for layouts (`planner_constants.py frame`)."""

WALKED = 20_000
"""Work of a walk (`planner_constants.py frame`)."""

NO_PINS: Assignment = MappingProxyType({})

NEAREST = 5
"""Neighbours of a mapping to try: the fastest by estimate (`planner_constants.py frame`)."""


@dataclass(frozen=True)
class _Found:
    """A frame found by the search for layouts at a price of constants."""

    problem: Problem
    layouts: LatencySearch
    price: float
    cycles: float


def layouts(problem: Problem) -> Proposals:
    """Frames with all constants in the PEs."""
    found = yield from at_prices(problem)
    if found is None:
        return
    for count in fewer(len(problem.order), problem.fewest):
        if whole_cycles(problem) / count >= found.cycles:
            break
        other = yield from at_prices(problem.on(problem.order[:count]))
        if other is None or other.cycles > found.cycles:
            break
        found = other
    yield from _Walk(found).proposals()


def pinned(pins: Assignment) -> Strategy:
    """Frames with some ops pinned to PEs."""

    def completed(problem: Problem) -> Proposals:
        found = yield from at_prices(problem, pins)
        if found:
            yield from _Walk(found, pins).proposals()

    return completed


def whole_cycles(problem: Problem) -> float:
    """Cycles of all whole ops in sequence on a PE."""
    graph = problem.graph
    return sum(problem.cost(op, Box.whole(graph.shape(op.output))).cycles for op in graph.ops)


def at_prices(problem: Problem, pins: Assignment = NO_PINS) -> Generator[Candidate, Outcome, _Found | None]:
    """The frame at the first price of constants with enough memory, or None."""
    if not may_be_resident(problem):
        return None
    search, last = LatencySearch(problem, effort_on(problem.order)), None
    for price in PRICES:
        assignment = {**search.best(price), **pins}
        if assignment == last:
            continue
        last, outcome = assignment, (yield from resident(problem, assignment))
        if not isinstance(outcome, Lacks):
            cycles = outcome.plan.predicted.latency_cycles if isinstance(outcome, Fits) else inf
            return _Found(problem, search, price, cycles)
    return None


class _Walk:
    """Walk from a frame to faster frames: the layout for heavier moves of data, then the most promising
    neighbours of the fastest mapping."""

    def __init__(self, found: _Found, pins: Assignment = NO_PINS) -> None:
        self._found, self._pins, self._is_spent = found, pins, found.problem.work.share(WALKED)
        self._here, self._cycles = found.layouts.best_splits(found.price), found.cycles
        self._known = {self._here}

    def proposals(self) -> Proposals:
        layouts, price = self._found.layouts, self._found.price
        yield from self._step(layouts.weighing(WEIGHT_OF_MOVES).best_splits(price))
        start = None
        while start != self._here:
            start = self._here
            for splits in self._likely(start):
                yield from self._step(splits)
                if start != self._here:
                    break

    def _likely(self, here: tuple[Split, ...]) -> Iterator[tuple[Split, ...]]:
        """The new neighbours of a mapping with the least estimates, in their own order."""
        new = [splits for splits in self._found.layouts.splits.neighbours(here) if splits not in self._known]
        nearest = set(sorted(new, key=self._found.layouts.expected_near(here))[:NEAREST])
        return (splits for splits in new if splits in nearest)

    def _step(self, splits: tuple[Split, ...]) -> Proposals:
        """The frame with other splits. The walk goes on from the faster frame."""
        if splits in self._known or self._is_spent():
            return
        self._known.add(splits)
        problem = self._found.problem
        assignment = {**self._found.layouts.assignment_of(splits), **self._pins}
        outcome = yield Candidate(problem, frame(assignment))
        if isinstance(outcome, Fits) and outcome.plan.predicted.latency_cycles < self._cycles:
            self._here, self._cycles = splits, outcome.plan.predicted.latency_cycles
