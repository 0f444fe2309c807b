"""Other batches of frames than the one the planner takes, each with the cycles a frame that simulation predicts.

On groups of any size, with more or fewer interleaved frames and micro-batches, with other weight tiles, the ops split
otherwise.
Batches of large meshes, whose simulation takes minutes, are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from npukit.errors import DoesNotFit
from npukit.plan.batch.batch import Batch, Pipeline
from npukit.plan.batch.weight_streaming import first_that_fits
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.batch_search.data_parallel import engine_cycles, groups_of
from npukit.plan.batch_search.group_trials import WELL_USED
from npukit.plan.batch_search.throughput import INTERLEAVED, WEIGHT_TILED, WORTH
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.simulate import ROUNDS, with_predictions
from npukit.plan.search.layout_search import QUICK, LatencySearch
from npukit.plan.search.neighbours import Candidate, Neighbours, are_possible
from npukit.plan.search.splits import Splits
from npukit.plan.search.tries import Budget, interval
from npukit.plan.search.tuned_choices import BatchSpec
from npukit.plan.tensors.problem import Problem

MOST_INTERLEAVED, MOST_MICRO_BATCHES = 8, 16
"""The most interleaved frames and micro-batches that tuning tries: a limit on what it measures, not a measured one."""


class BatchAlternatives:
    """Alternative batches on the PEs of an order. With more frames than `own` has they must be worth it."""

    spelled = staticmethod(str)

    def __init__(self, problem: Problem, own: Plan | None) -> None:
        self._problem = problem = problem.alike
        self._own = own
        self._splits = cache(lambda pes: Splits(problem, pes))

    def plan(self, choice: BatchSpec) -> Plan | None:
        """The plan of a batch, or None if it is none of this net or does not fit."""
        if choice.pes > len(self._problem.order) or not are_possible(
            self._problem.graph, self._splits(choice.pes), choice.splits
        ):
            return None
        try:
            plan = first_that_fits(self._problem, self._batch(choice))
        except DoesNotFit:
            return None
        return plan and with_predictions(self._problem.net, self._problem.board, plan, ROUNDS)

    def searched(self) -> Iterator[Candidate[BatchSpec]]:
        """The batches that the planner compares, on groups of any size that leaves few PEs over."""
        return self._candidates(self._interleaved())

    def neighbours(self, choice: BatchSpec, known: Callable[[BatchSpec], bool]) -> Iterator[Candidate[BatchSpec]]:
        """The same but for interleaved frames, micro-batches, weight tiles, or how an op is split; without those that
        are known."""
        beside = (changed for changed in self._beside(choice) if not known(changed))
        return self._candidates((changed, self.plan(changed)) for changed in beside)

    def _interleaved(self) -> Iterator[tuple[BatchSpec, Plan | None]]:
        """Each start with more and more interleaved frames, as long as they fit and are worth it."""
        for start in sorted(self._starts(), key=self._busy):
            if self._own and self._busy(start) >= interval(self._own):
                return
            for interleaved in INTERLEAVED:
                choice = replace(start, interleaved=interleaved)
                plan = self.plan(choice)
                yield choice, plan
                if not self._is_worth_it(plan):
                    break

    def _beside(self, choice: BatchSpec) -> Iterator[BatchSpec]:
        for micro_batches in (2 * choice.micro_batches, choice.micro_batches + 1, choice.micro_batches // 2):
            if 1 <= micro_batches <= MOST_MICRO_BATCHES:
                yield replace(choice, micro_batches=micro_batches)
        for interleaved in (choice.interleaved + 1, choice.interleaved - 1):
            if 1 <= interleaved <= MOST_INTERLEAVED:
                yield replace(choice, interleaved=interleaved)
        sizes, counts = {each.tile_bytes for each in WEIGHT_TILED}, {each.tiles for each in WEIGHT_TILED}
        for weight_tile_bytes, weight_tiles in product(sizes, counts):
            yield replace(choice, weight_tile_bytes=weight_tile_bytes, weight_tiles=weight_tiles)
        for splits in Neighbours(self._problem.graph, self._splits(choice.pes)).of(choice.splits):
            yield replace(choice, splits=splits)

    def _starts(self) -> Iterator[BatchSpec]:
        most = len(self._problem.order)
        for pes in (pes for pes in range(1, most + 1) if most // pes * pes >= WELL_USED * most):
            search = LatencySearch(self._problem.on(self._problem.order[:pes]), QUICK, fetched=True)
            stream = WEIGHT_TILED[0]
            yield BatchSpec(pes, search.best_splits(), 1, 1, stream.tiles, stream.tile_bytes)

    def _busy(self, choice: BatchSpec) -> float:
        return engine_cycles(self._problem, self._batch(choice))

    def _batch(self, choice: BatchSpec) -> Batch:
        order, pes = self._problem.order, choice.pes
        assignment = self._splits(pes).assignment(order[:pes], choice.splits)
        return Batch(
            tuple(groups_of(assignment, order, pes)),
            pipeline=Pipeline(choice.interleaved, choice.micro_batches),
            stream=StreamWeights(tile_bytes=choice.weight_tile_bytes, tiles=choice.weight_tiles),
            prefetchers=tuple(order[: len(order) % pes]),
        )

    def _candidates(self, choices: Iterable[tuple[BatchSpec, Plan | None]]) -> Iterator[Candidate[BatchSpec]]:
        """The choices that are worth it, as many as a budget allows."""
        for choice, plan in Budget(self._problem).within(choices):
            if plan and self._is_worth_it(plan):
                yield Candidate(choice, interval(plan))

    def _is_worth_it(self, plan: Plan | None) -> bool:
        """True if a plan fits, and has no more frames wait for each other than it is worth."""
        own = self._own
        longer = plan and own and plan.frames > own.frames and interval(plan) > WORTH * interval(own)
        return plan is not None and not longer
