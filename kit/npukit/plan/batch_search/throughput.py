"""The most frames a cycle: groups of PEs of every size, constants kept or streamed, compared by simulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npukit.dump import lost
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.weight_streaming import TILINGS, first_that_fits
from npukit.plan.batch_search.data_parallel import closest_frame, engine_cycles, groups_of, replicated_plan
from npukit.plan.batch_search.low_memory import low_memory_plan
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.predict import with_predictions
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.objectives import QUICK, SMALL_MESH, fastest_plan
from npukit.plan.search.tries import why_not
from npukit.plan.tensors.problem import Problem

ROUNDS = 3
"""Batches simulated to see the interval."""

INTERLEAVED = (1, 2, 4, 6)
MICRO_BATCHES = (2, 4)
"""Times as many micro-batches tried of the best batch, once it is found: more of them hide more of its ends."""

WEIGHT_TILED = (TILINGS[0], TILINGS[-1])

WORTH = 0.98
"""The factor by which a batch with more frames must shorten the interval: each frame waits for all of its batch."""

PRICES = (0.0, 0.06)


def densest_plan(problem: Problem) -> Plan:
    """The most frames a cycle on these PEs; if no batch fits, one frame at a time.

    On a large mesh, whose single frames take minutes to search, that is what comes closest and need not fit.
    """
    if len(problem.order) > SMALL_MESH and problem.board.noc:
        plan = replicated_plan(problem) or low_memory_plan(problem)
        return plan or closest_frame(problem)
    best = replace(fastest_plan(problem), objective="throughput")
    if problem.board.noc is None:
        return best
    chosen: Batch | None = None
    for wanted in _batches(problem):
        for plan, tried in _interleaved(problem, wanted, best):
            better = _better(problem, best, plan)
            if better is not best:
                best, chosen = better, tried
    return _in_micro_batches(problem, chosen, best) if chosen else best


def _in_micro_batches(problem: Problem, chosen: Batch, best: Plan) -> Plan:
    """The best batch with more micro-batches, as long as they help."""
    for times in MICRO_BATCHES:
        longer = first_that_fits(problem, replace(chosen, micro_batches=chosen.micro_batches * times))
        better = _better(problem, best, longer)
        if better is best:
            break
        best = better
    return best


def _interleaved(problem: Problem, wanted: Batch, best: Plan) -> Iterator[tuple[Plan, Batch]]:
    """A batch with more and more interleaved frames, with small weight tiles and large ones, as long as it fits.

    Nothing if it would not be better than the best even if nothing but engines took time.
    """
    slower = engine_cycles(problem, wanted) >= best.predicted.interval_cycles
    if slower and not missing_bytes(problem.board, best):
        return
    for tiling in WEIGHT_TILED:
        for interleaved in INTERLEAVED:
            tried = replace(wanted, interleaved=interleaved, tiling=tiling)
            plan = first_that_fits(problem, tried)
            if plan is None or (tiling != WEIGHT_TILED[0] and not plan.streams):
                break
            yield plan, tried


def _better(problem: Problem, best: Plan, plan: Plan | None) -> Plan:
    """The one of two plans with the shorter interval, if it fits; more frames must be worth it."""
    if plan is None:
        return best
    timed = with_predictions(problem.net, problem.board, plan, ROUNDS)
    worth = WORTH if timed.frames > best.frames else 1
    shorter = timed.predicted.interval_cycles < worth * best.predicted.interval_cycles
    taken, left = (timed, best) if shorter or missing_bytes(problem.board, best) else (best, timed)
    lost(left.headline, lambda: why_not(problem, left, taken))
    return taken


def _batches(problem: Problem) -> Iterator[Batch]:
    """The batches of each size of group and price of constants."""
    size = 1
    while size <= len(problem.order):
        search = LatencySearch(problem.on(problem.order[:size]), QUICK, fetched=True)
        assignments = []
        for price in PRICES:
            assignment = search.best(price)
            if assignment not in assignments:
                assignments.append(assignment)
                groups = groups_of(assignment, problem.order, size)
                yield Batch(tuple(groups), prefetchers=tuple(problem.order[: len(problem.order) % size]))
        size *= 2
