"""Layouts: the split of each op by dynamic programming, at rising prices of constants, on all PEs and on fewer; then a
walk over neighbours of the fastest frame."""

from __future__ import annotations

from collections.abc import Collection, Generator
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

HEAVY_MOVES = 2.0
"""Weight of moving data in a second search for layouts (`planner_constants.py frame`): messages take longer than
estimated if many PEs send at once. Where memory is short, moved data take memory too."""

WALKED = 20_000
"""Work of a walk (`planner_constants.py frame`)."""

NO_PINS: Assignment = MappingProxyType({})

NEAREST = 5
"""Neighbours of a mapping to try: the fastest by estimate (`planner_constants.py frame`)."""


_Found = tuple[float, Problem, LatencySearch, float]
"""A frame: its cycles, its PEs, the search for layouts that found it, and the price of constants in the search."""


def layouts(problem: Problem) -> Proposals:
    """Frames with all constants in the PEs."""
    found = yield from at_prices(problem)
    if found is None:
        return
    for count in fewer(len(problem.order), problem.fewest):
        if whole_cycles(problem) / count >= found[0]:
            break
        other = yield from at_prices(problem.on(problem.order[:count]))
        if other is None or other[0] > found[0]:
            break
        found = other
    yield from _walk(found)


def pinned(pins: Assignment) -> Strategy:
    """Frames with some ops pinned to PEs."""

    def completed(problem: Problem) -> Proposals:
        found = yield from at_prices(problem, pins)
        if found:
            yield from _walk(found, pins)

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
            return cycles, problem, search, price
    return None


def _walk(found: _Found, pins: Assignment = NO_PINS) -> Proposals:
    """Faster frames: the layout for heavier moves of data, then the most promising neighbours of the fastest mapping,
    until no neighbour is faster."""
    cycles, problem, search, price = found
    is_spent, here, start = problem.work.share(WALKED), search.best_found(price).splits, None
    steps, known = [search.weighing(HEAVY_MOVES).best_found(price).splits], {here}
    while steps and not is_spent():
        splits = steps.pop(0)
        known.add(splits)
        outcome = yield Candidate(problem, frame({**search.assignment_of(splits), **pins}))
        if isinstance(outcome, Fits) and outcome.plan.predicted.latency_cycles < cycles:
            here, cycles, steps = splits, outcome.plan.predicted.latency_cycles, []
        if not steps and start != here:
            start, steps = here, _likely(search, here, known)


def _likely(
    search: LatencySearch, here: tuple[Split, ...], known: Collection[tuple[Split, ...]]
) -> list[tuple[Split, ...]]:
    """The new neighbours of a mapping with the least estimates, in their own order."""
    new = [splits for splits in search.splits.neighbours(here) if splits not in known]
    nearest = set(sorted(new, key=search.expected_near(here))[:NEAREST])
    return [splits for splits in new if splits in nearest]
