"""The choice of constants to stream if not all fit: as few as possible, of the heaviest ops first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from npukit.accel.interface import Engines
from npukit.errors import DoesNotFit
from npukit.net.net import CORE
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.channel_bands import bands_for
from npukit.plan.batch.memory_bound import may_fit
from npukit.plan.batch.weight_tiles import WEIGHT_TILE_BYTES, StreamWeights
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

WEIGHT_TILES = tuple(
    StreamWeights(tile_bytes=times * WEIGHT_TILE_BYTES, tiles=tiles) for times in (1, 2, 4) for tiles in (3, 2)
)
"""Weight tiles to try. A few small weight tiles leave more memory, many large weight tiles keep the engines busy."""

SMALLEST = 256
"""Bytes of an op's constants, commands included, up to which streaming does not pay."""


def first_that_fits(problem: Problem, wanted: Batch) -> Plan | None:
    """The plan of a batch with as few ops streamed as possible, or None if no choice fits."""
    found = _fewest_streamed(problem, wanted)
    return found[1] if found else None


def _fewest_streamed(problem: Problem, wanted: Batch, guess: int = 0) -> tuple[int, Plan] | None:
    """The least number of heaviest ops to stream, searched from `guess`, and the plan; None if no number fits."""
    heaviest = _heaviest(problem.graph, problem.engines, wanted.groups[0])
    least, most = _least_count(problem, wanted.groups[0], heaviest), len(heaviest)
    known: dict[int, bool] = {}
    best: Plan | None = None

    def fits(count: int) -> bool:
        """True if streaming `count` ops fits. False for an untried count once the work budget of the planner's call is
        spent."""
        nonlocal best
        if count not in known:
            plan = None if problem.work.is_spent else _with_streamed(problem, wanted, heaviest[:count])
            known[count], best = plan is not None, plan or best
        return known[count]

    guess = max(guess, least)
    if not fits(guess) and not fits(most):
        return None
    count = fewest(fits, least, most, guess)
    assert best is not None
    return count, best


def fewest(fits: Callable[[int], bool], least: int, most: int, guess: int) -> int:
    """The smallest fitting count from `least` to `most`, searched outwards from `guess`; `most` + 1 if none fits.

    Assumes that every count above a fitting count fits.
    """
    below, above, at, step = least - 1, most + 1, guess, 1
    while below + 1 < above:
        if fits(at):
            above = at
        else:
            below = at
        if above > most:
            at = min(below + step, most)
        else:
            at = max(above - step, least) if below < least else (below + above) // 2
        step *= 2
    return above


def _with_streamed(problem: Problem, wanted: Batch, streamed: Sequence[str]) -> Plan | None:
    """The plan of the batch with the constants of these ops streamed, or None if the plan does not fit."""
    try:
        plan = emit_batch(problem, replace(wanted, stream=wanted.stream.of(streamed)))
    except DoesNotFit:
        return None
    return None if missing_bytes(problem.board, plan) else plan


def none_or_all_streamed(problem: Problem, wanted: Batch) -> tuple[Batch, Plan] | None:
    """The batch and the plan, with all constants kept if this fits, else with all possible constants streamed. None if
    neither fits."""
    heaviest = _heaviest(problem.graph, problem.engines, wanted.groups[0])
    least = _least_count(problem, wanted.groups[0], heaviest)
    for count in [len(heaviest)] if least else [0, len(heaviest)]:
        tried = replace(wanted, stream=wanted.stream.of(heaviest[:count]))
        try:
            plan = emit_batch(problem, tried)
        except DoesNotFit:
            continue
        if not missing_bytes(problem.board, plan):
            return tried, plan
    return None


def frames_with_streams(problem: Problem, assignment: Assignment) -> Iterator[Plan]:
    """Plans of single frames for each fitting size of weight tiles, if the assignment does not fit without streaming.
    Empty if nothing fits.

    Inputs too large for the root's memory may lie in DRAM as well, and tensors between two ops may be computed and used
    in bands.
    """
    whole = Batch((assignment,))
    bands = bands_for(problem.graph, problem.board, assignment)
    ways = [replace(whole, fetched=False), whole, *([replace(whole, bands=bands)] if bands else [])]
    for way in ways:
        fits = False
        for plan in _frames_with_streams(problem, way):
            fits = True
            yield plan
        if fits:
            break


def all_streamed(problem: Problem, wanted: Batch) -> Batch:
    """The batch with all possible constants streamed."""
    return replace(wanted, stream=wanted.stream.of(_heaviest(problem.graph, problem.engines, wanted.groups[0])))


def most_streamed(problem: Problem, wanted: Batch) -> Plan | None:
    """The plan of the batch with all possible constants streamed, without predictions, even if the plan does not fit.
    None if no constants can be streamed, or if emission fails."""
    whole = all_streamed(problem, wanted)
    try:
        return emit_batch(problem, whole) if whole.stream.ops else None
    except DoesNotFit:
        return None


def _frames_with_streams(problem: Problem, wanted: Batch) -> Iterator[Plan]:
    batches = [replace(wanted, stream=stream) for stream in WEIGHT_TILES]
    smallest = min(batches, key=lambda batch: batch.stream.least_bytes)
    first = _fewest_streamed(problem, smallest) if may_fit(problem, smallest) else None
    if first is None:
        return
    for batch in batches:
        found = first if batch is smallest else _fewest_streamed(problem, batch, first[0])
        if found:
            yield replace(with_predictions(problem.net, problem.board, found[1]), objective="latency")


def _least_count(problem: Problem, assignment: Assignment, heaviest: Sequence[str]) -> int:
    """A lower bound on the number of heaviest ops to stream: the constants of all others must fit into a PE.

    Ops with the same constants as an earlier op do not count.
    """
    held: Counter[int] = Counter()
    sizes: dict[str, dict[int, int]] = {}
    for op in problem.graph.ops:
        tiles = assignment[op.name] if problem.graph.constants_as[op.name] == op.name else ()
        sizes[op.name] = {tile.pe: problem.cost(op, tile.box, tile.pe).constant_bytes for tile in tiles}
        held.update(sizes[op.name])
    room, count = problem.board.memory_for("constants").size, 0
    while count < len(heaviest) and max(held.values()) > room:
        held.subtract(sizes[heaviest[count]])
        count += 1
    return count


def _heaviest(graph: Graph, engines: Engines, assignment: Assignment) -> list[str]:
    """Ops with streamable constants, the heaviest first."""
    sizes = {
        op.name: max(engines[op.engine].cost(graph.net, op, tile.box).constant_bytes for tile in assignment[op.name])
        for op in graph.ops
        if op.engine != CORE and assignment[op.name]
    }
    return sorted((name for name in sizes if sizes[name] > SMALLEST), key=lambda name: (-sizes[name], name))
