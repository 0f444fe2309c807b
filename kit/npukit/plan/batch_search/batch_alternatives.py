"""Other rounds of frames than the one the planner takes, each with the cycles a frame that simulation predicts.

On groups of any size, in more or fewer lanes and waves, with other slices, the ops split otherwise. Pipelines, and the
rounds of large meshes, whose simulation takes minutes, are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from npukit.errors import DoesNotFit
from npukit.plan.batch.batch import Round
from npukit.plan.batch.batch_spec import RoundChoice
from npukit.plan.batch.weight_streaming import first_that_fits
from npukit.plan.batch_search.data_parallel import WELL_USED, engine_cycles, groups_of
from npukit.plan.batch_search.throughput import LANES, PRICES, ROUNDS, SLICED, WORTH
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.predict import with_predictions
from npukit.plan.search.alternatives import Candidate, Neighbours, are_possible
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.objectives import QUICK
from npukit.plan.search.splits import Splits
from npukit.plan.tensors.problem import Problem

MOST_LANES, MOST_WAVES = 8, 16


class RoundAlternatives:
    """Of rounds of frames on the PEs of an order. With more frames than `own` has they must be worth it."""

    spelled = staticmethod(str)

    def __init__(self, problem: Problem, own: Plan | None) -> None:
        self._problem = problem
        self._own = own
        self._splits = cache(lambda pes: Splits(problem.graph, problem.engines, pes))

    def plan(self, choice: RoundChoice) -> Plan | None:
        """The plan of a round, or None if it is none of this net or does not fit."""
        if choice.pes > len(self._problem.order) or not are_possible(
            self._problem.graph, self._splits(choice.pes), choice.splits
        ):
            return None
        try:
            plan = first_that_fits(self._problem, self._round(choice))
        except DoesNotFit:
            return None
        return plan and with_predictions(self._problem.net, self._problem.board, plan, ROUNDS)

    def searched(self) -> Iterator[Candidate[RoundChoice]]:
        """What the planner compares, on groups of any size that leaves few PEs over; the least busy engines first."""
        starts = sorted(self._starts(), key=self._busy)
        for start in starts:
            if self._own and self._busy(start) >= _interval(self._own):
                return
            for lanes in LANES:
                found = list(self._candidate(replace(start, lanes=lanes)))
                yield from found
                if not found:
                    break

    def neighbours(self, choice: RoundChoice, known: Callable[[RoundChoice], bool]) -> Iterator[Candidate[RoundChoice]]:
        """The same but for lanes, waves, slices, or how an op is split; without those that are known."""
        for changed in self._beside(choice):
            if not known(changed):
                yield from self._candidate(changed)

    def _beside(self, choice: RoundChoice) -> Iterator[RoundChoice]:
        for waves in (2 * choice.waves, choice.waves + 1, choice.waves // 2):
            if 1 <= waves <= MOST_WAVES:
                yield replace(choice, waves=waves)
        for lanes in (choice.lanes + 1, choice.lanes - 1):
            if 1 <= lanes <= MOST_LANES:
                yield replace(choice, lanes=lanes)
        for slice_bytes, slices in product({size for size, _ in SLICED}, {held for _, held in SLICED}):
            yield replace(choice, slice_bytes=slice_bytes, slices=slices)
        for splits in Neighbours(self._problem.graph, self._splits(choice.pes)).of(choice.splits):
            yield replace(choice, splits=splits)

    def _starts(self) -> Iterator[RoundChoice]:
        most = len(self._problem.order)
        for pes in (pes for pes in range(1, most + 1) if most // pes * pes >= WELL_USED * most):
            search = LatencySearch(self._problem.on(self._problem.order[:pes]), QUICK, fetched=True)
            slice_bytes, slices = SLICED[0]
            for splits in dict.fromkeys(search.best_splits(price) for price in PRICES):
                yield RoundChoice(pes, splits, 1, 1, slices, slice_bytes)

    def _busy(self, choice: RoundChoice) -> float:
        return engine_cycles(self._problem, self._round(choice))

    def _round(self, choice: RoundChoice) -> Round:
        order, pes = self._problem.order, choice.pes
        assignment = self._splits(pes).assignment(order[:pes], choice.splits)
        return Round(
            tuple(groups_of(assignment, order, pes)),
            lanes=choice.lanes,
            waves=choice.waves,
            slice_bytes=choice.slice_bytes,
            slices=choice.slices,
            feeders=tuple(order[: len(order) % pes]),
        )

    def _candidate(self, choice: RoundChoice) -> Iterator[Candidate[RoundChoice]]:
        """Nothing if it does not fit, or has more frames wait for each other than it is worth."""
        plan, own = self.plan(choice), self._own
        if plan and not (own and plan.frames > own.frames and _interval(plan) > WORTH * _interval(own)):
            yield Candidate(choice, _interval(plan))


def _interval(plan: Plan) -> int:
    return plan.predicted.interval_cycles
