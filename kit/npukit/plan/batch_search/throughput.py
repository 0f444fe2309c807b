"""The most frames a cycle: groups of PEs of every size, constants kept or streamed, compared by simulation.

`benchmarks/large/planner_constants.py small-batches` measures what the constants are worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npukit.plan.batch.batch import Batch, Pipeline
from npukit.plan.batch.weight_streaming import WEIGHT_TILES, first_that_fits
from npukit.plan.batch_search.data_parallel import closest_frame, engine_cycles, groups_of, replicated_plan
from npukit.plan.batch_search.low_memory import least_frame, low_memory_plan
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import ROUNDS, with_predictions
from npukit.plan.search.layout_search import QUICK, SMALL_MESH, LatencySearch
from npukit.plan.search.leanest import refuse_if_far
from npukit.plan.search.objectives import fastest_plan, resident_plan
from npukit.plan.search.tries import interval, tried
from npukit.plan.tensors.problem import Problem

INTERLEAVED = (1, 2, 4, 6)
"""Interleaved frames tried, as long as they fit."""

MICRO_BATCHES = (2, 4)
"""Micro-batches tried of the best batch, once it is found: more of them hide more of its ends. Without them visual wake
words on 16 PEs is 9.8 % slower."""

WEIGHT_TILED = (WEIGHT_TILES[0], WEIGHT_TILES[-1])
"""The smallest and the largest weight tiles of a frame, tried."""

WORTH = 0.98
"""The factor by which a batch with more frames must shorten the interval: each frame waits for all of its batch."""


def densest_plan(problem: Problem) -> Plan:
    """The most frames a cycle on these PEs; if no batch fits or is worth it, one frame at a time.

    On a large mesh, whose single frames take minutes to search, that is what comes closest and need not fit. PEs that
    lack an engine in use compute no frames beside those that do not; those with different cores do on a small mesh, if
    that is better than those with one.
    """
    problem, mixed = problem.alike, problem.equipped
    if problem.board.noc is None:
        return replace(fastest_plan(problem), objective="throughput")
    lean = refuse_if_far(problem, LatencySearch(problem, QUICK))
    if len(problem.order) > SMALL_MESH:
        least = least_frame(problem, lean) if lean.is_tight(problem.board) else None
        if least and missing_bytes(problem.board, least):
            return least
        if densest := replicated_plan(problem) or low_memory_plan(problem):
            return densest
        return with_predictions(problem.net, problem.board, least) if least else closest_frame(problem)
    best = _Batches(problem).best() or replace(fastest_plan(problem), objective="throughput")
    several = len(problem.order) < len(mixed.order) <= SMALL_MESH
    found = _Batches(mixed).best() if several else None
    return min(found, best, key=interval) if found else best


class _Batches:
    """The batches on a small mesh, compared with each other and with a single frame."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._best = resident_plan(problem)
        self._chosen: Batch | None = None

    def best(self) -> Plan | None:
        """The best batch, or None if a single frame is better or none fits."""
        for _ in tried(self._problem, self._plans(), figure=interval):
            pass
        return self._best if self._chosen else None

    def _plans(self) -> Iterator[Plan]:
        for wanted in self._of_all_sizes():
            yield from self._interleaved(wanted)
        if self._chosen:
            yield from self._in_micro_batches(self._chosen)

    def _of_all_sizes(self) -> Iterator[Batch]:
        """The batches of each size of group."""
        order, size = self._problem.order, 1
        while size <= len(order):
            assignment = LatencySearch(self._problem.on(order[:size]), QUICK, fetched=True).best()
            groups = groups_of(assignment, order, size)
            yield Batch(tuple(groups), prefetchers=tuple(order[: len(order) % size]))
            size *= 2

    def _interleaved(self, wanted: Batch) -> Iterator[Plan]:
        """A batch with more and more interleaved frames, with small weight tiles and large ones, as long as it fits.

        Nothing if it would not be better than the best even if nothing but engines took time.
        """
        slower = engine_cycles(self._problem, wanted) >= interval(self._best)
        if slower and not missing_bytes(self._problem.board, self._best):
            return
        for stream in WEIGHT_TILED:
            for interleaved in INTERLEAVED:
                each = replace(wanted, pipeline=Pipeline(interleaved), stream=stream)
                plan = first_that_fits(self._problem, each)
                if plan is None or (stream != WEIGHT_TILED[0] and not plan.streams):
                    break
                yield self._compared(plan, each)

    def _in_micro_batches(self, best: Batch) -> Iterator[Plan]:
        """The best batch with more and more micro-batches, as long as they help."""
        for count in MICRO_BATCHES:
            longer = replace(best, pipeline=replace(best.pipeline, micro_batches=count))
            plan = first_that_fits(self._problem, longer)
            if plan:
                yield self._compared(plan, longer)
            if self._chosen is not longer:
                break

    def _compared(self, plan: Plan, wanted: Batch) -> Plan:
        """The plan with its predictions, taken if its interval is shorter; more frames must be worth it."""
        timed = with_predictions(self._problem.net, self._problem.board, plan, ROUNDS)
        worth = WORTH if timed.frames > self._best.frames else 1
        shorter = interval(timed) < worth * interval(self._best)
        if shorter or missing_bytes(self._problem.board, self._best):
            self._best, self._chosen = timed, wanted
        return timed
