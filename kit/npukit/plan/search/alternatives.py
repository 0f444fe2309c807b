"""Other mappings of a frame than the one the planner takes, each with the cycles that simulation predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.neighbours import WEIGHTS, MappingOf, Neighbours, are_possible
from npukit.plan.search.objectives import effort_on
from npukit.plan.search.splits import Splits
from npukit.plan.search.tries import planned
from npukit.plan.search.tuned_choices import spelled
from npukit.plan.tensors.problem import Problem

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Candidate(Generic[Choice]):
    choice: Choice
    cycles: int


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
