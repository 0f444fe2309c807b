"""Streamed weights: a frame whose constants do not all fit keeps the heaviest in DRAM, in weight tiles of several
sizes; inputs follow them, and wide tensors are computed in bands."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import CROWDED, bands_for
from npukit.plan.batch.weight_tiles import StreamWeights, heaviest_ops
from npukit.plan.ir.assignment import Assignment
from npukit.plan.layout.layout_search import LatencySearch, effort_on
from npukit.plan.search.candidate import Candidate, Lacks, Outcome
from npukit.plan.strategies.layouts import PRICES
from npukit.plan.tensors.problem import Problem

PRICE = PRICES[2]
"""Cycles per byte of constants on a PE where some are streamed (`planner_constants.py frame`)."""

WEIGHT_TILES = tuple(StreamWeights(tile_bytes=size << 10, tiles=tiles) for size in (8, 16, 32) for tiles in (3, 2))
"""Weight tiles to try. A few small weight tiles leave more memory, many large weight tiles keep the engines busy."""


def streams(problem: Problem) -> Generator[Candidate, Outcome, bool]:
    """Frames with as few streamed constants as the memory permits. True if it suffices for any.

    If nothing fits, a tile's inputs and output get less room.
    """
    if problem.board.noc is None or problem.board.shares_memory:
        return False
    memory = problem.board.memory_for("activations").size
    for room in (None, int(CROWDED * memory)):
        search, last, fits = LatencySearch(problem, effort_on(problem.order), room=room), None, False
        for price in (0.0, PRICE):
            assignment = search.best(price)
            if assignment != last:
                fits |= yield from _ways(problem, assignment)
            last = assignment
        if fits:
            return True
    return False


def _ways(problem: Problem, assignment: Assignment) -> Generator[Candidate, Outcome, bool]:
    """The assignment with inputs on the root, else in DRAM, else with wide tensors in bands. True if any fits."""
    whole = Batch((assignment,))
    bands = bands_for(problem.graph, problem.board, assignment)
    for way in (replace(whole, fetched=False), whole, *([replace(whole, bands=bands)] if bands else [])):
        if (yield from _sizes(problem, way)):
            return True
    return False


def _sizes(problem: Problem, way: Batch) -> Generator[Candidate, Outcome, bool]:
    """The batch with weight tiles of each size."""
    batches = [replace(way, stream=stream) for stream in WEIGHT_TILES]
    smallest = min(batches, key=lambda batch: batch.stream.least_bytes)
    first = yield from fewest_streamed(problem, smallest)
    if first is None:
        return False
    for batch in batches:
        if batch is not smallest:
            yield from fewest_streamed(problem, batch, len(first.ops))
    return True


def more_streamed(problem: Problem, batch: Batch) -> list[Batch]:
    """The batch with the constants of 0, 1, 2, ... ops streamed, the heaviest first."""
    heaviest = heaviest_ops(problem.graph, problem.engines, batch.groups[0])
    return [replace(batch, stream=batch.stream.of(heaviest[:count])) for count in range(len(heaviest) + 1)]


def fewest_streamed(
    problem: Problem, batch: Batch, guess: int = 0, *, least: int = 0, probe: bool = False
) -> Generator[Candidate, Outcome, StreamWeights | None]:
    """The weight tiles of the fewest, heaviest ops with which the batch fits, searched outwards from `guess` ops; None
    if no number fits. Assumes that `least` ops are necessary, and that every number above a fitting one fits."""
    batches, known = more_streamed(problem, batch), dict[int, bool]()

    def fits(count: int) -> Generator[Candidate, Outcome, bool]:
        if count not in known:
            outcome = yield Candidate(problem, batches[count], probe)
            known[count] = not isinstance(outcome, Lacks)
        return known[count]

    most = len(batches) - 1
    guess = min(guess, most)
    if not (yield from fits(guess)) and not (yield from fits(most)):
        return None
    below, above, at, step = least - 1, most + 1, guess, 1
    while below + 1 < above:
        if (yield from fits(at)):
            above = at
        else:
            below = at
        if above > most:
            at = min(below + step, most)
        else:
            at = max(above - step, least) if below < least else (below + above) // 2
        step *= 2
    return batches[above].stream
