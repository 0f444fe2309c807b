"""The most frames a cycle: groups of PEs of every size, constants kept or streamed, compared by simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from npukit.board.board import Board
from npukit.plan.batch.batch import Round
from npukit.plan.batch.weight_streaming import HELD, SLICES, first_that_fits
from npukit.plan.batch_search.data_parallel import closest_frame, engine_cycles, groups_of, lockstep_plan
from npukit.plan.batch_search.layer_pipeline import PipelineSearch, cuts_of
from npukit.plan.batch_search.low_memory import compact_plan
from npukit.plan.emit.emitter import Engines
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.predict import with_predictions
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.objectives import QUICK, SMALL_MESH, fastest_plan
from npukit.plan.tensors.graph import Graph

ROUNDS = 3
"""Rounds simulated to see the interval."""

LANES = (1, 2, 4, 6)
WAVES = (2, 4)
"""Times as many waves tried of the best round, once it is found: more of them hide more of its ends."""

PIPELINED = 8
"""Waves of a pipeline, some of which pass until all its stages have something to do."""

SLICED = ((SLICES[0], HELD[0]), (SLICES[-1], HELD[1]))
"""Bytes of slices, and how many have room."""

WORTH = 0.98
"""What a round with more frames must do to the interval: each frame waits for all of its round."""

PRICES = (0.0, 0.06)


def densest_plan(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Plan:
    """The most frames a cycle on these PEs; if no round fits, one frame at a time.

    On a large mesh, whose single frames take minutes to search, that is what comes closest and need not fit.
    """
    if len(order) > SMALL_MESH and board.noc:
        plan = lockstep_plan(graph, board, engines, order) or compact_plan(graph, board, engines, order)
        return plan or closest_frame(graph, board, engines, order)
    best = replace(fastest_plan(graph, board, engines, order), objective="throughput")
    if board.noc is None:
        return best
    chosen: Round | None = None
    for wanted in chain(_rounds(graph, board, engines, order), _pipelines(graph, board, engines, order)):
        for plan, tried in _in_lanes(graph, board, engines, wanted, best):
            better = _better(graph, board, best, plan)
            if better is not best:
                best, chosen = better, tried
    return _in_waves(graph, board, engines, chosen, best) if chosen else best


def _in_waves(graph: Graph, board: Board, engines: Engines, chosen: Round, best: Plan) -> Plan:
    """The best round with more waves, as long as they help."""
    for times in WAVES:
        longer = first_that_fits(graph, board, engines, replace(chosen, waves=chosen.waves * times))
        better = _better(graph, board, best, longer)
        if better is best:
            break
        best = better
    return best


def _in_lanes(graph: Graph, board: Board, engines: Engines, wanted: Round, best: Plan) -> Iterator[tuple[Plan, Round]]:
    """A round in more and more lanes, with small slices and large ones, as long as it fits.

    Nothing if it would not be better than the best even if nothing but engines took time.
    """
    if not missing_bytes(board, best) and engine_cycles(graph, engines, wanted) >= best.predicted.interval_cycles:
        return
    for slice_bytes, slices in SLICED:
        for lanes in LANES:
            tried = replace(wanted, lanes=lanes, slice_bytes=slice_bytes, slices=slices)
            plan = first_that_fits(graph, board, engines, tried)
            if plan is None or (slice_bytes > SLICES[0] and not plan.streams):
                break
            yield plan, tried


def _better(graph: Graph, board: Board, best: Plan, plan: Plan | None) -> Plan:
    """Of two plans the one with the shorter interval, if it fits; more frames must be worth it."""
    if plan is None:
        return best
    timed = with_predictions(graph.net, board, plan, ROUNDS)
    worth = WORTH if timed.frames > best.frames else 1
    shorter = timed.predicted.interval_cycles < worth * best.predicted.interval_cycles
    return timed if shorter or missing_bytes(board, best) else best


def _rounds(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Iterator[Round]:
    """For each size of group and price of constants."""
    size = 1
    while size <= len(order):
        search = LatencySearch(graph, board, engines, order[:size], QUICK, fetched=True)
        assignments = []
        for price in PRICES:
            assignment = search.best(price)
            if assignment not in assignments:
                assignments.append(assignment)
                yield Round(tuple(groups_of(assignment, order, size)), feeders=tuple(order[: len(order) % size]))
        size *= 2


def _pipelines(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Iterator[Round]:
    """For each size of group the pipeline whose slowest stage takes least."""
    search = PipelineSearch(graph, board, engines, len(order))
    size = 2
    while size <= len(order):
        stages = search.best(size)
        if len(stages) > 1:
            groups = groups_of(search.assignment(stages, order), order, size)
            feeders = tuple(order[: len(order) % size])
            yield Round(tuple(groups), waves=PIPELINED, feeders=feeders, cuts=cuts_of(stages))
        size *= 2
