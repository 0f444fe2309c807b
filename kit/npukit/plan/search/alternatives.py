"""Other mappings of a frame than the one the planner takes, each with the cycles that simulation predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.objectives import effort_on, planned
from npukit.plan.search.splits import Splits
from npukit.plan.search.tuned_choices import spelled
from npukit.plan.tensors.boxes import Split
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

WEIGHTS = (1.0, 1.2, 0.8, 1.5, 0.5)
"""Weights of moving data in searches for alternatives; the first is the planner's own."""
WIDTH = 14
"""Splits of an op that are worth trying."""

MappingOf = tuple[Split, ...]
"""The split of each op."""


Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Candidate(Generic[Choice]):
    choice: Choice
    cycles: int


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


def are_possible(graph: Graph, splits: Splits, wanted: MappingOf) -> bool:
    """True if they are splits of this net."""
    return len(wanted) == len(graph.ops) and all(splits.is_possible(i, split) for i, split in enumerate(wanted))


class Alternatives:
    """Alternative mappings of one frame of a net on the PEs of an order."""

    spelled = staticmethod(spelled)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._splits = Splits(problem.graph, problem.engines, len(problem.order))
        self._neighbours = Neighbours(problem.graph, self._splits)

    def plan(self, splits: MappingOf) -> Plan | None:
        """The plan with these splits, or None if they are not this net's or do not fit."""
        if not are_possible(self._problem.graph, self._splits, splits):
            return None
        assignment = self._splits.assignment(self._problem.order, splits)
        plan = planned(self._problem, assignment)
        return None if missing_bytes(self._problem.board, plan) else plan

    def searched(self) -> Iterator[Candidate[MappingOf]]:
        """The results of the planner's search where moving data weighs more or less; its own answer first."""
        for weight in WEIGHTS:
            search = LatencySearch(self._problem, effort_on(self._problem.order), moves_weigh=weight)
            yield from self._candidate(search.best_splits())

    def neighbours(self, splits: MappingOf, known: Callable[[MappingOf], bool]) -> Iterator[Candidate[MappingOf]]:
        """The neighbours without those that are known."""
        for changed in self._neighbours.of(splits):
            if not known(changed):
                yield from self._candidate(changed)

    def _candidate(self, splits: MappingOf) -> Iterator[Candidate[MappingOf]]:
        """The candidate; none if it does not fit."""
        plan = self.plan(splits)
        if plan:
            yield Candidate(splits, plan.predicted.latency_cycles)
