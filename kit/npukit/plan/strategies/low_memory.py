"""Short memory: all constants streamed in small weight tiles, nothing in memory before its use, orders in DRAM.

`planner_constants.py low-memory` measures the constants.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import CROWDED
from npukit.plan.batch.weight_tiles import StreamWeights, heaviest_ops
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.search.candidate import Candidate, Lacks, Outcome, Proposals
from npukit.plan.strategies.drafts import PES_OF_A_PREFETCHER
from npukit.plan.strategies.groups import SMALL_TILES, groups_of
from npukit.plan.strategies.layouts import HEAVY_MOVES
from npukit.plan.strategies.streams import PRICE
from npukit.plan.tensors.problem import Problem

MOST_GROUPS = 5
"""Most groups of a batch."""

LEAST_WEIGHT_TILES = StreamWeights(tile_bytes=2 << 10, tiles=1)
"""Weight tiles that leave the most memory."""

ROOMS = (0.58, 0.52, 0.46, 0.4)
"""Parts of a PE's memory for tensors and weight tiles."""


def low_memory_frame(problem: Problem) -> Generator[Candidate, Outcome, bool]:
    """A single frame on all PEs, with prefetching PEs or without. True if the memory suffices."""
    return not problem.net.states and (yield from _first(problem, 1))


def low_memory_batch(problem: Problem) -> Proposals:
    """A batch on groups of the smallest size that fits: each group shares its constants with the most others."""
    yield from _first(problem.alike, MOST_GROUPS)


def _first(problem: Problem, most_groups: int) -> Generator[Candidate, Outcome, bool]:
    """The first batch that fits: of the most groups, then with the most room for weight tiles. False if none.

    Some PEs are left over for prefetching, except in a last attempt.
    """
    if problem.board.noc is None or problem.board.shares_memory or len(problem.order) < 2:
        return False
    memory, count = problem.board.memory_for("activations").size, len(problem.order)
    computing = count - -(-count // PES_OF_A_PREFETCHER)
    for size in (*(computing // groups for groups in range(min(most_groups, computing), 0, -1)), count):
        found = _of_size(problem, size)
        for room in ROOMS:
            stream = replace(found.stream, room=int(room * memory))
            outcome = yield Candidate(problem, replace(found, stream=stream))
            if not isinstance(outcome, Lacks):
                return True
    return False


def _of_size(problem: Problem, size: int) -> Batch:
    """Groups of `size` PEs. Constants have half the usual price, because all are streamed."""
    search = LatencySearch(
        problem.on(problem.order[:size]),
        QUICK,
        fetched=True,
        room=int(CROWDED * problem.board.memory_for("activations").size),
        weight_tile_size=SMALL_TILES.tile_bytes,
        moves_weigh=HEAVY_MOVES,
    )
    order = problem.order
    groups = tuple(groups_of(search.best(PRICE / 2), order, size))
    stream = LEAST_WEIGHT_TILES.of(heaviest_ops(problem.graph, problem.engines, groups[0]))
    prefetchers = tuple(order[: len(order) % size])
    return Batch(groups, stream=stream, prefetchers=prefetchers, low_memory=True, in_pages=True)
