"""Short memory: all constants streamed in small weight tiles, nothing in memory before its use, orders in DRAM.

`planner_constants.py low-memory` measures the constants.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace

from npukit.plan.batch.batch import Batch
from npukit.plan.batch.weight_tiles import StreamWeights, heaviest_ops
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.search.candidate import Candidate, Lacks, Outcome, Proposals
from npukit.plan.strategies.drafts import PES_OF_A_PREFETCHER
from npukit.plan.strategies.groups import WELL_USED, groups_of
from npukit.plan.tensors.problem import Problem

SIZES = (28, 38, 49, 76)
"""PEs of a group: the smallest that fits shares constants with the most others."""

LEAST_WEIGHT_TILES = StreamWeights(tile_bytes=2 << 10, tiles=1)
"""Weight tiles that leave the most memory."""

SEARCHED, WEIGHT_TILE = 0.5, 12_000
"""Part of a PE's memory for tensors and a weight tile while layouts are searched for, and bytes of this tile."""

PRICE, MOVES_WEIGH = 0.03, 6.0
"""Cycles per byte of constants, and weight of moving data: both take memory too."""

ROOMS = (0.58, 0.52, 0.46, 0.4)
"""Parts of a PE's memory for tensors and weight tiles."""


def low_memory_frame(problem: Problem) -> Generator[Candidate, Outcome, bool]:
    """A single frame on all PEs, with prefetching PEs or without. True if the memory suffices."""
    count = len(problem.order)
    if problem.net.states:
        return False
    return (yield from _first(problem, (count - -(-count // PES_OF_A_PREFETCHER), count)))


def low_memory_batch(problem: Problem) -> Proposals:
    """A batch on groups of the smallest size that fits."""
    problem = problem.alike
    count = len(problem.order)
    yield from _first(problem, [size for size in (*SIZES, count) if count // size * size >= WELL_USED * count])


def _first(problem: Problem, sizes: Iterable[int]) -> Generator[Candidate, Outcome, bool]:
    """The first batch that fits: by size of the groups, then with the most room for weight tiles. False if none."""
    if problem.board.noc is None or problem.board.shares_memory or len(problem.order) < 2:
        return False
    memory = problem.board.memory_for("activations").size
    for size in sizes:
        found = _of_size(problem, size)
        for room in ROOMS:
            stream = replace(found.stream, room=int(room * memory))
            outcome = yield Candidate(problem, replace(found, stream=stream))
            if not isinstance(outcome, Lacks):
                return True
    return False


def _of_size(problem: Problem, size: int) -> Batch:
    search = LatencySearch(
        problem.on(problem.order[:size]),
        QUICK,
        fetched=True,
        room=int(SEARCHED * problem.board.memory_for("activations").size),
        weight_tile_size=WEIGHT_TILE,
        moves_weigh=MOVES_WEIGH,
    )
    order = problem.order
    groups = tuple(groups_of(search.best(PRICE), order, size))
    stream = LEAST_WEIGHT_TILES.of(heaviest_ops(problem.graph, problem.engines, groups[0]))
    prefetchers = tuple(order[: len(order) % size])
    return Batch(groups, stream=stream, prefetchers=prefetchers, low_memory=True, in_pages=True)
