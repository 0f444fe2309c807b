"""Other mappings of a frame than the one the planner takes, each with the cycles that simulation predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.neighbours import WEIGHTS, MappingOf, Neighbours, are_possible
from npukit.plan.search.objectives import effort_on
from npukit.plan.search.splits import Splits
from npukit.plan.search.tries import Budget, latency, planned
from npukit.plan.search.tuned_choices import spelled
from npukit.plan.tensors.problem import Problem

Choice = TypeVar("Choice")


@dataclass(frozen=True)
class Candidate(Generic[Choice]):
    choice: Choice
    cycles: int


class Alternatives:
    """Alternative mappings of one frame of a net on the PEs of an order, as many as a budget allows."""

    spelled = staticmethod(spelled)

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._splits = Splits(problem.graph, problem.engines, len(problem.order), places=problem.places)
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
        effort = effort_on(self._problem.order)
        searches = (LatencySearch(self._problem, effort, moves_weigh=weight) for weight in WEIGHTS)
        return self._candidates(search.best_splits() for search in searches)

    def neighbours(self, splits: MappingOf, known: Callable[[MappingOf], bool]) -> Iterator[Candidate[MappingOf]]:
        """The neighbours without those that are known."""
        return self._candidates(changed for changed in self._neighbours.of(splits) if not known(changed))

    def _candidates(self, choices: Iterable[MappingOf]) -> Iterator[Candidate[MappingOf]]:
        """The choices that fit."""
        for splits, plan in Budget(self._problem).within((each, self.plan(each)) for each in choices):
            if plan:
                yield Candidate(splits, latency(plan))
