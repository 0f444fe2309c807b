"""Drafts: many assignments with streamed weights, estimated; the most promising are emitted first.

To emit a frame on many PEs takes seconds, to estimate it a fraction of one. A draft has its inputs in DRAM, as few
constants streamed as its memory wants, and an estimate of its cycles. Dedicated PEs prefetch for all others.
`planner_constants.py wide-frame` measures the constants.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from math import inf

from npukit.plan.batch.batch import Batch
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import PAGES, PePlan
from npukit.plan.layout.frame_memory import STREAM, STREAM_BYTES, FrameMemory
from npukit.plan.layout.layout_search import Effort, LatencySearch
from npukit.plan.layout.list_schedule import TILE, schedules_from_dram, states_early
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Outcome, Proposals
from npukit.plan.tensors.problem import Problem

PRICES = (0.0, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
"""Cycles per byte of constants on a PE."""

ROOMS = (3 / 8, 1 / 4, 1 / 6)
"""Parts of a PE's memory for a tile's inputs and output."""

EFFORT = Effort(10, 40, priced=True)
"""Effort of the search for layouts."""

SEARCHED = 400
"""Ops placed by all searches for layouts together. Longer networks are searched at fewer prices and rooms."""

PES_OF_A_PREFETCHER = 16
"""PEs per dedicated prefetching PE. A PE that computes and prefetches delays the fetches of others."""

ORDERS = 20 << 10
"""Bytes of commands, descriptors and code expected on a PE."""

REPAIRS = 3
"""Emissions of a draft, with more constants streamed each time."""


Draft = tuple[bool, int, FrameMemory, frozenset[str]]
"""False if expected to fit, the estimate of the cycles, the assignment with its bytes, the ops with streamed constants.
"""


def drafts(problem: Problem, *others: Problem) -> Proposals:
    """Frames of the drafts by rising estimate; if none fits, all again for short memory. `others`: the network in other
    forms, for list scheduling only, because the search for layouts lays no ops side by side."""
    if problem.board.noc is None or problem.board.shares_memory or len(problem.order) < 2:
        return
    forms = [replace(each, graph=states_early(each.graph)) for each in (problem, *others)]
    found = sorted(_drafts(forms), key=lambda draft: draft[:2])
    for low_memory in (False, True):
        fastest = inf
        for _, cycles, held, streamed in found:
            if cycles < fastest:
                fastest = min(fastest, (yield from _repaired(held, streamed, low_memory=low_memory)))
        if fastest < inf:
            return


def _repaired(held: FrameMemory, streamed: frozenset[str], *, low_memory: bool) -> Generator[Candidate, Outcome, float]:
    """The cycles of a draft's frame. While orders lack room in memory, more constants are streamed."""
    problem, cycles = held.problem, inf
    whole = Batch((held.assignment,), prefetchers=prefetchers(problem), low_memory=low_memory, in_pages=True)
    for _ in range(REPAIRS):
        outcome = yield Candidate(problem, replace(whole, stream=STREAM.of(streamed)))
        if isinstance(outcome, Fits):
            cycles = min(cycles, outcome.plan.predicted.latency_cycles)
        plan = outcome.plan if isinstance(outcome, Fits | Lacks) else None
        if plan is None or not (isinstance(outcome, Lacks) or any(pe.orders.pages for pe in plan.pes)):
            break
        before, weight_tiles = held.resident(streamed), 0 if streamed else STREAM_BYTES
        rooms = {pe.pe: before[pe.pe] + _left(pe) - weight_tiles for pe in plan.pes}
        more = held.with_more_streamed(streamed, rooms, core_too=True)
        if more == streamed:
            break
        streamed = more
    return cycles


def prefetchers(problem: Problem) -> tuple[int, ...]:
    """The PEs that only prefetch."""
    return tuple(problem.order[: -(-len(problem.order) // PES_OF_A_PREFETCHER)])


def _drafts(forms: Sequence[Problem]) -> Iterator[Draft]:
    """Drafts by search for layouts of the first form at several prices and rooms, and by list scheduling."""
    first, *_ = computing = [each.on(each.order[len(prefetchers(each)) :]) for each in forms]
    search, known = LatencySearch(first, EFFORT, from_dram=True), set[object]()
    step = -(-len(ROOMS) * len(PRICES) * len(first.graph.ops) // SEARCHED)
    for room, price in islice(product(ROOMS, PRICES), 0, None, step):
        best = search.within(int(room * first.board.memory_for("activations").size)).best_found(price)
        if best.splits not in known:
            known.add(best.splits)
            yield _draft(forms[0], search.assignment_of(best.splits), best.cycles)
    for problem, each in zip(forms, computing, strict=True):
        for assignment, schedule in schedules_from_dram(each):
            yield _draft(problem, assignment, schedule.cycles, schedule.held)


def _draft(problem: Problem, assignment: Assignment, cycles: int, kept: int = 0) -> Draft:
    """A draft with as few constants streamed as are expected to be enough. `kept`: bytes of resident constants and
    orders on the fullest PE, if known."""
    held, streamed = FrameMemory(problem, assignment, cycles), frozenset[str]()
    memory = problem.board.memory_for("activations").size
    orders = max(kept - held.least_resident if kept else TILE * len(problem.graph.ops), ORDERS)
    left: dict[int, int] = {}
    for _ in range(REPAIRS):
        beside = orders + held.tensors_and_weight_tiles(streamed)
        left = {pe: memory - held.program(pe) - beside for pe in held.resident(())}
        streamed = held.with_more_streamed(streamed, left)
    fits = all(size <= left[pe] for pe, size in held.resident(streamed).items())
    return not fits, cycles + held.delay(streamed), held, streamed


def _left(pe: PePlan) -> int:
    """Bytes left on a PE, or lacking below 0, with all orders in memory."""
    orders = sum(page.bytes for page in pe.orders.pages)
    return pe.memory.free - orders + (pe.buffer(PAGES).bytes if orders else 0)
