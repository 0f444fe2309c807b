"""The most frames a cycle: groups of PEs of every size, constants kept or streamed, compared by simulation."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from npukit.board.board import Board
from npukit.errors import DoesNotFit
from npukit.plan.assignment import Assignment, Tile
from npukit.plan.graph import Graph
from npukit.plan.latency import LatencySearch
from npukit.plan.plan import Plan, Predicted
from npukit.plan.programs import Engines
from npukit.plan.rounds import SLICE_BYTES, Round, emit_round
from npukit.plan.search import QUICK, fastest_plan, missing_bytes
from npukit.plan.simulate import simulate
from npukit.plan.splits import CORE

ROUNDS = 3
"""Rounds simulated to see the interval."""

LANES = (1, 2, 4)
SLICES = (2 * SLICE_BYTES, 4 * SLICE_BYTES)
WAVES = (2, 4)
"""Waves tried of the best round, once it is found: more of them hide more of its ends."""

WORTH = 0.98
"""What a round with more frames must do to the interval: each frame waits for all of its round."""

PRICES = (0.0, 0.06)


def densest_plan(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Plan:
    """The most frames a cycle on these PEs; if no round fits, one frame at a time."""
    best = replace(fastest_plan(graph, board, engines, order), objective="throughput")
    chosen: Round | None = None
    for wanted in _rounds(graph, board, engines, order) if board.noc else ():
        # Rounds that would not be better even if nothing but engines took time are not tried.
        if missing_bytes(board, best) or _engine_cycles(graph, engines, wanted) < best.predicted.interval_cycles:
            better = _better(graph, board, best, _first_that_fits(graph, board, engines, wanted))
            if better is not best:
                best, chosen = better, wanted
    return _refined(graph, board, engines, best, chosen) if chosen else best


def _refined(graph: Graph, board: Board, engines: Engines, best: Plan, chosen: Round) -> Plan:
    """The best round with larger slices, if it streams, then with more waves, as long as that helps."""
    larger = [{"slice_bytes": size} for size in SLICES] if any(not buffer.tensor for buffer in best.dram) else []
    for changes in (*larger, *({"waves": waves} for waves in WAVES)):
        wanted = replace(chosen, **changes)
        better = _better(graph, board, best, _first_that_fits(graph, board, engines, wanted))
        if better is best and "waves" in changes:
            break
        best, chosen = (better, wanted) if better is not best else (best, chosen)
    return best


def _better(graph: Graph, board: Board, best: Plan, plan: Plan | None) -> Plan:
    """Of two plans the one with the shorter interval, if it fits."""
    if plan is None:
        return best
    timed = _timed(graph, board, plan)
    worth = WORTH if timed.frames > best.frames else 1
    shorter = timed.predicted.interval_cycles < worth * best.predicted.interval_cycles
    return timed if shorter or missing_bytes(board, best) else best


def _rounds(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Iterator[Round]:
    """For each size of group, price of constants, and number of lanes."""
    size = 1
    while size <= len(order):
        search = LatencySearch(graph, board, engines, order[:size], QUICK, fetched=True)
        assignments = []
        for price in PRICES:
            assignment = search.best(price)
            if assignment not in assignments:
                assignments.append(assignment)
                groups = tuple(_groups(assignment, order, size))
                yield from (Round(groups, lanes) for lanes in LANES)
        size *= 2


def _engine_cycles(graph: Graph, engines: Engines, wanted: Round) -> float:
    """Cycles a frame of the busiest PE's engines."""
    busy: Counter[int] = Counter()
    for op in graph.ops:
        for tile in wanted.groups[0][op.name]:
            busy[tile.pe] += engines[op.engine].cost(graph.net, op, tile.box).cycles
    return max(busy.values()) / len(wanted.groups)


def _groups(assignment: Assignment, order: Sequence[int], size: int) -> Iterator[Assignment]:
    """The assignment of the first `size` PEs, and the same on each following group of so many."""
    for start in range(0, len(order) - size + 1, size):
        moved = dict(zip(order[:size], order[start : start + size], strict=True))
        yield {op: tuple(Tile(moved[tile.pe], tile.box) for tile in tiles) for op, tiles in assignment.items()}


def _first_that_fits(graph: Graph, board: Board, engines: Engines, wanted: Round) -> Plan | None:
    """With as few ops streamed as will do, those with the most constants first."""
    heaviest = _heaviest(graph, engines, wanted.groups[0])

    def emitted(count: int) -> Plan | None:
        try:
            plan = emit_round(graph, board, engines, replace(wanted, streamed=frozenset(heaviest[:count])))
        except DoesNotFit:
            return None
        return None if missing_bytes(board, plan) else plan

    count = bisect_left(range(len(heaviest)), True, key=lambda count: emitted(count) is not None)
    return emitted(count)


def _heaviest(graph: Graph, engines: Engines, assignment: Assignment) -> list[str]:
    """Ops whose constants can be streamed, the heaviest first."""
    sizes = {
        op.name: max(engines[op.engine].cost(graph.net, op, tile.box).constant_bytes for tile in assignment[op.name])
        for op in graph.ops
        if op.engine != CORE and any(name in graph.net.constants for name in op.inputs)
    }
    return sorted(sizes, key=lambda name: (-sizes[name], name))


def _timed(graph: Graph, board: Board, plan: Plan) -> Plan:
    result = simulate(graph.net, board, plan, ROUNDS)
    return replace(plan, predicted=Predicted(result.latency_cycles, result.interval_cycles // plan.frames))
