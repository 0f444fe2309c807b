"""Batches: groups of PEs of every size compute frames side by side, with interleaved frames and micro-batches."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from npukit.plan.batch.batch import Batch, Pipeline
from npukit.plan.batch.weight_streaming import WEIGHT_TILES
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.search.candidate import Candidate, Fits, Outcome, Proposals
from npukit.plan.strategies.streams import fewest_streamed
from npukit.plan.tensors.problem import Problem, Share

INTERLEAVED = (1, 2, 4, 6)
"""Interleaved frames to try, as long as they fit (`planner_constants.py small-batches`)."""

MICRO_BATCHES = (2, 4)
"""Micro-batches to try of the best batch (`planner_constants.py small-batches`)."""

COMPARED = 150_000
"""Work of the batches that are compared."""

WORTH = 0.98
"""Factor by which a batch with more frames must shorten the interval: each frame waits for its whole batch."""

WEIGHT_TILED = (WEIGHT_TILES[0], WEIGHT_TILES[-1])
"""The smallest and the largest weight tiles."""


def batches(problem: Problem) -> Proposals:
    """Batches of groups of 1, 2, 4, ... PEs, then the best one in more micro-batches."""
    problem, best, size = problem.alike, None, 1
    share = Share(problem.work, COMPARED)
    while size <= len(problem.order):
        layouts = LatencySearch(problem.on(problem.order[:size]), QUICK, fetched=True)
        groups = tuple(groups_of(layouts.best(), problem.order, size))
        wanted = Batch(groups, prefetchers=tuple(problem.order[: len(problem.order) % size]))
        size *= 2
        for stream in WEIGHT_TILED:
            for interleaved in INTERLEAVED:
                if share.is_spent:
                    return
                each = replace(wanted, pipeline=Pipeline(interleaved), stream=stream)
                found = yield from _compared(problem, each, best)
                if found is None or (stream != WEIGHT_TILED[0] and not found.streamed):
                    break
                best = found if found.beats(best) else best
    for count in MICRO_BATCHES if best else ():
        longer = replace(best.batch, pipeline=replace(best.batch.pipeline, micro_batches=count))
        found = yield from _compared(problem, longer, best)
        if found is None or not found.beats(best):
            break
        best = found


@dataclass(frozen=True)
class _Found:
    """A batch that fits, with its interval (infinite if a bound dropped the batch) and its number of streamed ops."""

    batch: Batch
    interval: float
    streamed: int

    def beats(self, other: _Found | None) -> bool:
        """True if the interval is shorter. More frames must be worth their latency."""
        if other is None:
            return True
        worth = WORTH if self.batch.frames > other.batch.frames else 1
        return self.interval < worth * other.interval


def _compared(problem: Problem, batch: Batch, best: _Found | None) -> Generator[Candidate, Outcome, _Found | None]:
    """The batch with the fewest streamed ops that fits; None if none does."""
    plans = dict[frozenset[str], float]()
    proposals = fewest_streamed(problem, batch)
    outcome: Outcome | None = None
    while True:
        try:
            candidate = proposals.send(outcome)
        except StopIteration as ended:
            return ended.value and _Found(batch, plans[ended.value.ops], len(ended.value.ops))
        outcome = yield candidate
        interval = outcome.plan.predicted.interval_cycles if isinstance(outcome, Fits) else inf
        plans[candidate.batch.stream.ops] = interval


def groups_of(
    assignment: Assignment, order: Sequence[int], size: int, places: Sequence[int] | None = None
) -> Iterator[Assignment]:
    """The assignment of the first `size` PEs on each group of `size` PEs. The first PEs are left over, if any.

    `places`: the order of the groups, by default `order`.
    """
    for start in range(len(order) % size, len(order), size):
        moved = dict(zip(order[:size], (places or order)[start : start + size], strict=True))
        yield {op: tuple(Tile(moved[tile.pe], tile.box) for tile in tiles) for op, tiles in assignment.items()}
