"""The constants to stream when not all of them fit: as few as will do, those of the heaviest ops first."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product

from npukit.accel.interface import Engines
from npukit.errors import DoesNotFit
from npukit.net.net import CORE
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import WEIGHT_TILE_BYTES, WEIGHT_TILES_IN_MEMORY
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.predict import with_predictions
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

WEIGHT_TILES = (WEIGHT_TILE_BYTES, 2 * WEIGHT_TILE_BYTES, 4 * WEIGHT_TILE_BYTES)
"""Sizes of weight tiles worth trying: small ones leave more memory, large ones keep the engines at work."""

SMALLEST = 256
"""Bytes of constants, commands among them, that are not worth streaming."""

HELD = (WEIGHT_TILES_IN_MEMORY, 2)
"""Weight tiles of a frame for which there is room at once, worth trying."""


def first_that_fits(problem: Problem, wanted: Batch) -> Plan | None:
    """The batch with as few ops streamed as will do, or None if it fits in no way."""
    heaviest = _heaviest(problem.graph, problem.engines, wanted.groups[0])

    @cache
    def emitted(count: int) -> Plan | None:
        try:
            plan = emit_batch(problem, replace(wanted, streamed=frozenset(heaviest[:count])))
        except DoesNotFit:
            return None
        return None if missing_bytes(problem.board, plan) else plan

    least = _least_count(problem, wanted.groups[0], heaviest)
    if emitted(least) or emitted(len(heaviest)) is None:
        return emitted(least)
    counts = range(least, len(heaviest))
    return emitted(least + bisect_left(counts, True, key=lambda count: emitted(count) is not None))


def none_or_all_streamed(problem: Problem, wanted: Batch) -> tuple[Batch, Plan] | None:
    """The batch with all constants kept if that fits, else with all streamed that can be, or None."""
    heaviest = _heaviest(problem.graph, problem.engines, wanted.groups[0])
    least = _least_count(problem, wanted.groups[0], heaviest)
    for count in [len(heaviest)] if least else [0, len(heaviest)]:
        tried = replace(wanted, streamed=frozenset(heaviest[:count]))
        try:
            plan = emit_batch(problem, tried)
        except DoesNotFit:
            continue
        if not missing_bytes(problem.board, plan):
            return tried, plan
    return None


def frame_with_streams(problem: Problem, assignment: Assignment) -> Plan | None:
    """The fastest frame of an assignment whose constants do not fit, or None if it fits in no way."""
    for fetched in (False, True):  # an input that the root cannot hold may lie in DRAM as well
        plans = list(_frames_with_streams(problem, assignment, fetched))
        if plans:
            return min(plans, key=lambda plan: plan.predicted.latency_cycles)
    return None


def most_streamed(problem: Problem, wanted: Batch) -> Plan | None:
    """The batch with all constants streamed that can be, whether it fits or not; None if none can."""
    streamed = frozenset(_heaviest(problem.graph, problem.engines, wanted.groups[0]))
    try:
        return emit_batch(problem, replace(wanted, streamed=streamed)) if streamed else None
    except DoesNotFit:
        return None


def _frames_with_streams(problem: Problem, assignment: Assignment, fetched: bool) -> Iterator[Plan]:
    for size, held in product(WEIGHT_TILES, HELD):
        wanted = Batch((assignment,), weight_tile_bytes=size, weight_tiles=held, fetched=fetched)
        plan = first_that_fits(problem, wanted)
        if plan:
            yield replace(with_predictions(problem.net, problem.board, plan), objective="latency")


def _least_count(problem: Problem, assignment: Assignment, heaviest: Sequence[str]) -> int:
    """The least number of the heaviest ops that must be streamed, as the constants of the others would fill a PE."""
    held: Counter[int] = Counter()
    sizes: dict[str, dict[int, int]] = {}
    for op in problem.graph.ops:
        tiles = assignment[op.name]
        sizes[op.name] = {tile.pe: problem.cost(op, tile.box).constant_bytes for tile in tiles}
        held.update(sizes[op.name])
    room, count = problem.board.memory_for("constants").size, 0
    while count < len(heaviest) and max(held.values()) > room:
        held.subtract(sizes[heaviest[count]])
        count += 1
    return count


def _heaviest(graph: Graph, engines: Engines, assignment: Assignment) -> list[str]:
    """Ops whose constants can be streamed, the heaviest first."""
    sizes = {
        op.name: max(engines[op.engine].cost(graph.net, op, tile.box).constant_bytes for tile in assignment[op.name])
        for op in graph.ops
        if op.engine != CORE and assignment[op.name]
    }
    return sorted((name for name in sizes if sizes[name] > SMALLEST), key=lambda name: (-sizes[name], name))
