"""Drafts for least memory, and what they lack at least: whether a search is worth its time, before anything is emitted.

Of each draft a lower bound of its memory is known within a fraction of a second. Where none has one near what the board
has, nothing else is searched; where one has room, `more_pes` emits that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain

from npukit.board.board import Board
from npukit.errors import DoesNotFit
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.channel_bands import bands_for
from npukit.plan.batch.memory_bound import least_lacking
from npukit.plan.batch.weight_streaming import WEIGHT_TILES, all_streamed
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import Lacking, missing_bytes
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.search.frame_memory import lacking
from npukit.plan.search.layout_search import SMALL_MESH, Effort, LatencySearch
from npukit.plan.search.list_schedule import schedules_from_dram
from npukit.plan.search.tries import planned
from npukit.plan.tensors.problem import Problem

HASTY = Effort(2, 6)
"""The effort of a search for drafts."""

DEAR = 6.0
"""Cycles that a byte of constants costs in the draft with fewest of them."""

NARROW = 4
"""The part of a PE's memory that the inputs and output of a tile may take in the draft with least tensors."""

LEAST_WEIGHT_TILES = StreamWeights(tile_bytes=2 << 10, tiles=1)
"""Weight tiles where there is least room: with 8 KB visual wake words lacks 1 to 3 KB on 24 PEs of 24 KB, and fits with
these (`benchmarks/planner.py`)."""

FAR = 1 / 8
"""The part of a PE's memory that the leanest drafts must lack before they are taken to say that nothing fits: of the
zoo's networks that fit 1 or 16 PEs none has a leanest draft that lacks anything (`benchmarks/planner.py`)."""


TIGHT = 1 / 2
"""The part of a PE's memory of which the leanest draft on many PEs leaves less where plans for least memory are tried
first (`benchmarks/planner.py`)."""


@dataclass(frozen=True)
class Lean:
    """A draft for least memory: a frame with its constants in the PEs, or streamed; and what it lacks at least."""

    wanted: Batch
    streamed: bool
    lacking: Lacking

    @property
    def missing(self) -> int:
        return self.lacking.missing

    @property
    def pes(self) -> int:
        """The number of PEs that compute."""
        return len(self._computing)

    @cached_property
    def _computing(self) -> frozenset[int]:
        return frozenset(tile.pe for tiles in self.wanted.groups[0].values() for tile in tiles)

    def is_far(self, board: Board) -> bool:
        """True if it lacks so much that a search is not expected to find a plan: anything, if all orders may be in
        pages, of which a plan has more."""
        pages = self.wanted.in_pages and all(map(board.is_on_roots_chip, self._computing))
        return self.missing > (0 if pages else FAR * board.memory_for("activations").size)

    def is_tight(self, board: Board) -> bool:
        """True if it leaves so little that even plans for least memory may have no room."""
        return self.lacking.use.free < TIGHT * board.memory_for("activations").size


class FarTooLarge(DoesNotFit):
    """The leanest draft lacks so much that nothing else is searched."""

    def __init__(self, lean: Lean) -> None:
        super().__init__(f"{lean.missing:,} bytes are missing at least")
        self.lean = lean


def refuse_if_far(problem: Problem, search: LatencySearch) -> Lean:
    """A draft for least memory that a search may find a plan like, on many PEs one with room or the leanest; or
    FarTooLarge, so that a refusal comes within seconds."""
    board = problem.board

    def may_do(lean: Lean) -> bool:
        return not lean.is_far(board) and not (lean.wanted.in_pages and lean.is_tight(board))

    best = _first_or_leanest(problem, search, may_do)
    if best.is_far(board):
        raise FarTooLarge(best)
    return best


def leanest(problem: Problem, search: LatencySearch) -> Lean:
    """The draft that lacks least; on a large mesh, where each takes seconds, the first that lacks nothing."""
    wide = len(problem.order) > SMALL_MESH
    return _first_or_leanest(problem, search, lambda lean: wide and not lean.missing)


def _first_or_leanest(problem: Problem, search: LatencySearch, will_do: Callable[[Lean], bool]) -> Lean:
    """The first draft that will do; else the leanest of those that are not far too large, or of all."""
    found: list[Lean] = []
    for lean in _drafts(problem, search):
        if will_do(lean):
            return lean
        found.append(lean)
    return min(found, key=lambda lean: (lean.is_far(problem.board), *_merit(lean)))


def _merit(lean: Lean) -> tuple[int, int]:
    """The figures by which drafts are compared: the better one has less."""
    return lean.missing, -lean.lacking.use.free


def _drafts(problem: Problem, search: LatencySearch) -> Iterator[Lean]:
    """The drafts of a search, with all constants in the PEs, and with all streamed from a DRAM."""
    hasty, board = search.with_effort(HASTY), problem.board
    if len(problem.order) > SMALL_MESH:
        yield from _wide_drafts(problem)
        return
    thrifty = hasty.best(DEAR)
    yield Lean(Batch((thrifty,)), streamed=False, lacking=lacking(problem, thrifty))
    if board.noc is None or board.shares_memory:
        return
    stream = min(WEIGHT_TILES, key=lambda each: each.least_bytes)
    for room in (None, board.memory_for("activations").size // NARROW):
        for assignment in (hasty.within(room).best(), *([thrifty] if room is None else ())):
            whole = all_streamed(problem, Batch((assignment,), stream=stream))
            bands = bands_for(problem.graph, board, assignment)
            for wanted in (whole, *([replace(whole, bands=bands)] if bands else ())):
                yield Lean(wanted, streamed=True, lacking=least_lacking(problem, wanted))


def _wide_drafts(problem: Problem) -> Iterator[Lean]:
    """The drafts on a large mesh, all ops on as many PEs as there are, or lists of few PEs each: with all constants
    streamed, orders in pages, and nothing in memory before it must."""
    room = problem.board.memory_for("activations").size // NARROW
    tile_bytes = LEAST_WEIGHT_TILES.tile_bytes
    search = LatencySearch(problem, HASTY, fetched=True, room=room, weight_tile_size=tile_bytes, spread=True)
    layouts = (search.best(price) for price in (0.0, DEAR))
    for assignment in chain(layouts, (found for found, _ in schedules_from_dram(problem))):
        whole = Batch((assignment,), stream=LEAST_WEIGHT_TILES, low_memory=True, in_pages=True)
        bands = bands_for(problem.graph, problem.board, assignment)
        for wanted in (whole, *([replace(whole, bands=bands)] if bands else ())):
            yield Lean(wanted, streamed=True, lacking=least_lacking(problem, wanted))


def more_pes(problem: Problem, above: int) -> tuple[int, Lean, Plan | None]:
    """The number of PEs that help, twice as many as `above`, or four times and so on up to all; the draft that lacks
    least there, and its plan if that fits.

    It tells in seconds whether more PEs help: one draft of each number is emitted, and none on a large mesh.
    """
    doubled = (above << times for times in range(1, len(problem.order).bit_length()))
    counts = [*(count for count in doubled if problem.fewest <= count < len(problem.order)), len(problem.order)]
    search = LatencySearch(problem, HASTY)

    @cache
    def lean(count: int) -> Lean:
        order = problem.order[:count]
        return leanest(problem.on(order), search.on(order))

    if lean(counts[-1]).is_far(problem.board):
        return counts[-1], lean(counts[-1]), None
    fewest = bisect_left(counts[:-1], True, key=lambda count: not lean(count).missing)
    for count in counts[fewest:]:
        fits = not lean(count).missing and count <= SMALL_MESH
        if fits and (plan := _emitted(problem.on(problem.order[:count]), lean(count))):
            return count, lean(count), plan
    return counts[-1], lean(counts[-1]), None


def _emitted(problem: Problem, lean: Lean) -> Plan | None:
    """The plan of a draft, if it fits."""
    try:
        if not lean.streamed:
            plan = planned(problem, lean.wanted.groups[0])
        else:
            plan = replace(emit_batch(problem, lean.wanted), objective="latency")
    except DoesNotFit:
        return None
    return None if missing_bytes(problem.board, plan) else with_predictions(problem.net, problem.board, plan)
