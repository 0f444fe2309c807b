"""Batches where memory is short: large groups, in which nothing has a place in memory before it must.

What others send gets its place once a PE has computed, weight tiles of constants are as large as each layer leaves
room, and a PE that lacks memory all the same has its orders in DRAM. What the constants are worth is measured by
`benchmarks/large/planner_constants.py low-memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from npukit.board.noc import DRAM
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.live_bytes import most_held
from npukit.plan.batch.memory_bound import may_fit
from npukit.plan.batch.weight_streaming import all_streamed, most_streamed
from npukit.plan.batch_search.data_parallel import batch_of
from npukit.plan.batch_search.group_trials import WELL_USED
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import FIRMWARE_BYTES, STACK_BYTES, missing_bytes
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.search.layout_search import QUICK, LatencySearch
from npukit.plan.search.leanest import LEAST_WEIGHT_TILES, Lean
from npukit.plan.search.tries import Budget
from npukit.plan.search.wide_frame import PES_OF_A_PREFETCHER
from npukit.plan.tensors.graph import aliases
from npukit.plan.tensors.problem import Problem

SIZES = (28, 38, 49, 76)
"""PEs of a group, tried: without 28 ResNet-50 is 21.9 % slower (`planner_constants.py low-memory`)."""

SEARCHED = 0.5
"""Part of a PE's memory that tensors and weight tiles may take at once while layouts are searched for."""

WEIGHT_TILE = 12_000
"""Bytes of the weight tiles that are expected then."""

PRICE, MOVES_WEIGH = 0.03, 6.0
"""Cycles a byte of constants costs, and times as much as its cycles that moving data does: both take memory too."""

ROOMS = (0.58, 0.52, 0.46, 0.4)
"""Parts of the memory that tensors and weight tiles get, tried."""


def low_memory_plan(problem: Problem) -> Plan | None:
    """The first that fits, of groups of the smallest size, as these share constants with most others; or None."""
    count = len(problem.order)
    sizes = [size for size in (*SIZES, count) if count // size * size >= WELL_USED * count]
    return _first(problem, _batches(problem, sizes))


def low_memory_frames(problem: Problem, lean: Lean) -> Iterator[Plan]:
    """The frame on all PEs of a chip that takes least memory; if it fits, the first with more room that does, too. None
    that keeps states."""
    least = None if problem.net.states else least_frame(problem, lean)
    if least is None:
        return
    fits = not missing_bytes(problem.board, least)
    yield replace(with_predictions(problem.net, problem.board, least) if fits else least, objective="latency")
    if fits and (plan := _first(problem, list(_batches(problem, (_computing(problem),)))[:-1])):
        yield replace(plan, objective="latency")


def least_frame(problem: Problem, lean: Lean) -> Plan | None:
    """The frame on all PEs of a chip with least room for weight tiles, of which some PEs ask for all or each for its
    own; or one like the draft: the first that fits, or what lacks least. Where none fits nothing else is expected to.
    """
    count = len(problem.order)
    if count > problem.board.mesh.pes.count:
        return None
    roomless = (_with_least_room(problem, _of_size(problem, size)) for size in (_computing(problem), count))
    plans = list[Plan]()
    for wanted in chain(filter(partial(may_fit, problem), roomless), [lean.wanted]):
        if plan := most_streamed(problem, wanted):
            plans.append(plan)
            if not missing_bytes(problem.board, plan):
                return plan
    return min(plans, key=partial(missing_bytes, problem.board), default=None)


def _with_least_room(problem: Problem, found: Batch) -> Batch:
    """The batch with all constants streamed, and as little room for them as is tried."""
    room = max(int(ROOMS[-1] * problem.board.memory_for("activations").size), _least_bytes(problem, found))
    return all_streamed(problem, replace(found, stream=replace(found.stream, room=room)))


def _computing(problem: Problem) -> int:
    """The number of PEs that do more than ask for weights."""
    count = len(problem.order)
    return count - -(-count // PES_OF_A_PREFETCHER)


def _first(problem: Problem, batches: Iterable[Batch]) -> Plan | None:
    """The first plan that fits, of these batches."""
    for plan in Budget(problem).within(_whole(problem, wanted) for wanted in batches):
        if plan:
            return with_predictions(problem.net, problem.board, plan)
    return None


def _whole(problem: Problem, wanted: Batch) -> Plan | None:
    """The plan of a batch, if it fits; where groups differ one of them is tried before."""
    alone = () if wanted.prefetchers else (replace(wanted, groups=wanted.groups[-1:]),)
    plan = None
    for each in (*alone, wanted):
        plan = most_streamed(problem, each)
        if plan is None or missing_bytes(problem.board, plan):
            return None
    return plan


def _batches(problem: Problem, sizes: Sequence[int]) -> Iterator[Batch]:
    memory = problem.board.memory_for("activations").size
    for size in sizes:
        found = _of_size(problem, size)
        least = _least_bytes(problem, found)
        if least <= memory - STACK_BYTES - FIRMWARE_BYTES:
            rooms = dict.fromkeys(max(int(part * memory), least) for part in ROOMS)
            yield from (replace(found, stream=replace(found.stream, room=room)) for room in rooms)


def _of_size(problem: Problem, size: int) -> Batch:
    room = int(SEARCHED * problem.board.memory_for("activations").size)
    search = LatencySearch(
        problem.on(problem.order[:size]),
        QUICK,
        fetched=True,
        room=room,
        weight_tile_size=WEIGHT_TILE,
        moves_weigh=MOVES_WEIGH,
    )
    found = batch_of(search.best(PRICE), problem.order, size)
    return replace(found, stream=LEAST_WEIGHT_TILES, low_memory=True, in_pages=True)


def _least_bytes(problem: Problem, wanted: Batch) -> int:
    """Bytes of the PE of a group that holds most, but for the outputs."""
    graph = problem.graph
    regions = regions_of(graph, wanted.groups[-1], Ends(DRAM, DRAM), 0, low_memory=True)
    held = most_held(graph, [regions], aliases(graph, problem.engines), late=True)
    return max(held) + wanted.stream.least_bytes
