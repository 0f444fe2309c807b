"""Mappings that differ in one op, or in a run of ops of one shape; and a walk from one to a better one."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.splits import Splits
from npukit.plan.search.tries import planned, tried
from npukit.plan.tensors.boxes import Split
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

WEIGHTS = (1.0, 1.2, 0.8, 1.5, 0.5)
"""Weights of moving data in searches for alternatives; the first is the planner's own."""

WIDTH = 14
"""Splits of an op that are worth trying."""

WALKED = 60_000
"""Steps and messages of the plans that a walk may try: a few seconds. Five times as many made one of the MLPerf Tiny
networks on 16 PEs 0.1 % faster, and the others no faster."""

NEAREST = 16
"""Neighbours of a mapping that are tried, those that the search expects to be fastest of fifty and more. A faster one
is among them nearly always, in networks of all kinds on 4 and 16 PEs."""

MappingOf = tuple[Split, ...]
"""The split of each op."""


class Neighbours:
    """Mappings that differ in one op, or in a run of ops of one shape that are split alike."""

    def __init__(self, graph: Graph, splits: Splits) -> None:
        self._graph, self._splits = graph, splits
        self._choices = splits.candidates(WIDTH)

    def of(self, splits: MappingOf) -> Iterator[MappingOf]:
        """The most promising first."""
        for place in range(WIDTH):
            for first in range(len(splits)):
                changed = self._changed(splits, first, place)
                if changed:
                    yield changed

    def _changed(self, splits: MappingOf, first: int, place: int) -> MappingOf | None:
        """Op number `first` in its `place`-th best split, and the ops behind it that are as it was."""
        choices = self._choices[first]
        if place >= len(choices):
            return None
        last = first + 1
        while last < len(splits) and self._alike(splits, first, last):
            last += 1
        wanted = choices[place]
        able = all(self._splits.is_possible(index, wanted) for index in range(first, last))
        return (*splits[:first], *([wanted] * (last - first)), *splits[last:]) if able else None

    def _alike(self, splits: MappingOf, first: int, other: int) -> bool:
        ops = self._graph.ops
        same_shape = self._graph.shape(ops[first].output) == self._graph.shape(ops[other].output)
        return same_shape and splits[first] == splits[other]


class NeighbourWalk:
    """The walk from a plan of a frame to faster ones: what the search finds if moving data weighs otherwise, then
    the neighbours of the fastest so far that the search expects to be fast. Each is compared by simulation, which
    expectations only come near."""

    def __init__(self, problem: Problem, search: LatencySearch, price: float, pins: Assignment) -> None:
        """A walk of what a search finds at a price, with some ops pinned."""
        self._problem, self._search, self._price, self._pins = problem, search, price, pins
        self._usual = search.weighing(1.0)
        self._splits = Splits(problem, len(problem.order), places=problem.places)
        self._neighbours = Neighbours(problem.graph, self._splits)

    def from_plan(self, best: Plan) -> Plan:
        """The fastest plan that the walk comes to."""
        self._here, self._best = self._search.best_splits(self._price), best
        self._known = {self._here}
        for _ in tried(self._problem, self._plans(), WALKED):
            pass
        return self._best

    def _plans(self) -> Iterator[Plan]:
        for weight in WEIGHTS[1:]:
            yield from self._step(self._search.weighing(weight).best_splits(self._price))
        start = None
        while start != self._here:
            start = self._here
            for splits in self._likely(start):
                yield from self._step(splits)
                if start != self._here:
                    break

    def _likely(self, here: MappingOf) -> list[MappingOf]:
        """The new neighbours of a mapping that are expected to be fastest, in their order."""
        new = [splits for splits in self._neighbours.of(here) if splits not in self._known]
        nearest = set(sorted(new, key=self._usual.expected_near(here))[:NEAREST])
        return [splits for splits in new if splits in nearest]

    def _step(self, splits: MappingOf) -> Iterator[Plan]:
        """The plan of other splits, which is gone to if it is faster and fits."""
        if splits in self._known:
            return
        self._known.add(splits)
        assignment = self._splits.assignment(self._problem.order, splits)
        plan = planned(self._problem, {**assignment, **self._pins})
        faster = plan.predicted.latency_cycles < self._best.predicted.latency_cycles
        if faster and not missing_bytes(self._problem.board, plan):
            self._here, self._best = splits, plan
        yield plan
