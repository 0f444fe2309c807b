"""One frame on a large mesh: many assignments estimated, the most promising few emitted.

To emit and simulate a frame on a hundred PEs takes seconds; to search for an assignment and to estimate it takes a
fraction of one. So the search over layouts runs for several prices of constants and rooms for tensors, list scheduling
for several rooms, and each assignment that they find is a draft: inputs in DRAM, whence every PE fetches its part, as
few constants streamed as its memory wants, and the cycles it is expected to take. The drafts are emitted in the order
of these, those that are expected to fit first, as many as the budget allows.
`benchmarks/large/planner_constants.py wide-frame` measures what the constants are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import inf

from npukit.errors import DoesNotFit
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import PAGES, PePlan, Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.search.frame_memory import WEIGHT_TILES, WINDOW, FrameMemory
from npukit.plan.search.layout_search import Effort, LatencySearch
from npukit.plan.search.list_schedule import TILE, schedules_from_dram, states_early
from npukit.plan.search.tries import latency, tried, with_kernels
from npukit.plan.tensors.problem import Problem

PRICES = (0.0, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
"""Cycles a byte of constants costs, tried."""

ROOMS = (3 / 8, 1 / 4, 1 / 6)
"""Parts of a PE's memory that the inputs and the output of a tile may take, tried."""

WIDE = Effort(10, 40, priced=True)
"""The effort of the search: with splits and states as on other large meshes MobileNetV1 on 152 PEs is 3.6 % slower,
with splits that are not priced 61 % (`planner_constants.py wide-frame`)."""

SEARCHED = 800
"""Ops that are placed in the searches for all drafts: with every price and room for a network of up to 33 ops, with
fewer for longer ones. Four searches for two blocks of a vision transformer, 29 ops, took 12 s of the processor."""

PES_OF_A_PREFETCHER = 16
"""PEs for each that computes nothing and asks for what is streamed. Whoever does both keeps what others wait for behind
what DRAM has not given yet: MobileNetV1 on 152 PEs took 193,000 cycles instead of 159,000. With 32 it is 2.8 % slower,
and eight blocks of `benchmarks/transformers/language_model.py` on one chip want more flags than a PE has."""

ORDERS = 20 << 10
"""Bytes of commands, descriptors and code that a PE is expected to have."""

REPAIRS = 3
"""Times that a draft which does not fit is emitted again with more constants streamed."""


@dataclass(frozen=True)
class FrameDraft:
    """An assignment of a frame, the ops whose constants are streamed, and the cycles it is expected to take."""

    assignment: Assignment
    streamed: frozenset[str]
    cycles: int
    held: FrameMemory
    fits: bool
    """The estimate of whether PEs have room for it."""


@dataclass(frozen=True)
class _Emission:
    """A draft's plan, the same with the code of the core's kernels, and the bytes that this lacks."""

    plan: Plan
    full: Plan
    missing: int

    @property
    def crowded(self) -> bool:
        """True if PEs lack memory, or have orders in DRAM for want of it."""
        return bool(self.missing) or any(pe.orders.pages for pe in self.plan.pes)


class WideFrame:
    """The search for one frame on the PEs of a problem, of which the first only feed the others."""

    def __init__(self, problem: Problem) -> None:
        prefetchers = -(-len(problem.order) // PES_OF_A_PREFETCHER)
        self._problem = problem = replace(problem, graph=states_early(problem.graph))
        self._prefetchers = tuple(problem.order[:prefetchers])
        self._computing = problem.on(problem.order[prefetchers:])
        self._search = LatencySearch(self._computing, WIDE, from_dram=True)
        self._memory = problem.board.memory_for("activations").size

    def best(self) -> Plan | None:
        """The fastest frame that fits among those which the budget allows, or what lacks least; None if there is none.

        One that has room for the code of the core's kernels is preferred.
        """
        emitted = list[_Emission]()
        for _ in tried(self._problem, self._plans(emitted)):
            pass
        best = min(emitted, key=self._merit, default=None)
        return best and best.plan

    def _merit(self, emission: _Emission) -> tuple[int, bool, int]:
        """The figures by which emissions are compared: the better one has less."""
        return missing_bytes(self._problem.board, emission.plan), emission.missing > 0, latency(emission.plan)

    def _plans(self, emitted: list[_Emission]) -> Iterator[Plan | None]:
        """Plans of all drafts, which it adds to `emitted`; if none fits, of all again, as where memory is short."""
        drafts = self.drafts()
        for low_memory in (False, True):
            if all(missing_bytes(self._problem.board, each.plan) for each in emitted):
                yield from self._plans_of(drafts, emitted, low_memory=low_memory)

    def _plans_of(
        self, drafts: Sequence[FrameDraft], emitted: list[_Emission], *, low_memory: bool
    ) -> Iterator[Plan | None]:
        """Plans of one draft after the other, but for drafts that are expected to be slower than the fastest that
        fits."""
        fastest = inf
        for draft in drafts:
            if draft.cycles >= fastest:
                continue
            for emission in self._repaired(draft, low_memory=low_memory):
                if emission:
                    emitted.append(emission)
                    fastest = fastest if emission.missing else min(fastest, latency(emission.plan))
                yield emission and emission.plan

    def _repaired(self, draft: FrameDraft, *, low_memory: bool) -> Iterator[_Emission | None]:
        """A draft's plan, and while not all orders have room in memory that with more constants streamed."""
        for _ in range(REPAIRS):
            emission = self._emitted(draft, low_memory=low_memory)
            yield emission
            if emission is None or not emission.crowded:
                break
            more = self._with_more_streamed(draft, emission)
            if more.streamed == draft.streamed:
                break
            draft = more

    def drafts(self) -> list[FrameDraft]:
        """Drafts of different splits, the most promising first."""
        drafts = [*self._layouts(), *self._lists()]
        return sorted(drafts, key=lambda draft: (not draft.fits, draft.cycles))

    def _lists(self) -> Iterator[FrameDraft]:
        """Drafts by list scheduling."""
        for assignment, schedule in schedules_from_dram(self._computing):
            yield self._draft(assignment, schedule.cycles, schedule.held)

    def _layouts(self) -> Iterable[FrameDraft]:
        """Drafts by the search over layouts."""
        found: dict[object, FrameDraft] = {}
        pairs = len(ROOMS) * len(PRICES)
        step = -(-pairs * len(self._problem.graph.ops) // SEARCHED)
        for room, price in islice(product(ROOMS, PRICES), 0, None, step):
            search = self._search.within(int(room * self._memory))
            best = search.best_found(price)
            if best.splits not in found:
                found[best.splits] = self._draft(search.assignment(best), best.cycles)
        return found.values()

    def _draft(self, assignment: Assignment, cycles: int, kept: int = 0) -> FrameDraft:
        """A draft with as few constants streamed as are expected to be enough.

        Orders are what PEs hold of the bytes `kept`, if these are known, beside constants that are not worth streaming.
        """
        held, streamed = FrameMemory(self._problem, assignment, cycles), frozenset[str]()
        known = kept - held.least_resident if kept else TILE * held.most_tiles
        orders = max(known, ORDERS)
        left: dict[int, int] = {}
        for _ in range(REPAIRS):
            beside = orders + held.tensors_and_weight_tiles(streamed)
            left = {pe: self._memory - held.program(pe) - beside for pe in held.resident(())}
            streamed = held.with_more_streamed(streamed, left)
        fits = all(size <= left[pe] for pe, size in held.resident(streamed).items())
        return FrameDraft(assignment, streamed, cycles + held.delay(streamed), held, fits)

    def _with_more_streamed(self, draft: FrameDraft, emission: _Emission) -> FrameDraft:
        """The draft with as many constants streamed as its plan lacks room for."""
        before = draft.held.resident(draft.streamed)
        weight_tiles = 0 if draft.streamed else WINDOW
        rooms = {pe.pe: before[pe.pe] + _left(pe) - weight_tiles for pe in emission.full.pes}
        return replace(draft, streamed=draft.held.with_more_streamed(draft.streamed, rooms, core_too=True))

    def _emitted(self, draft: FrameDraft, *, low_memory: bool) -> _Emission | None:
        wanted = Batch(
            (draft.assignment,),
            stream=WEIGHT_TILES.of(draft.streamed),
            prefetchers=self._prefetchers,
            low_memory=low_memory,
            in_pages=True,
        )
        try:
            plan = replace(emit_batch(self._problem, wanted), objective="latency")
        except DoesNotFit:
            return None
        net, board, full = self._problem.net, self._problem.board, with_kernels(self._problem, plan)
        plan = plan if missing_bytes(board, plan) else with_predictions(net, board, plan)
        return _Emission(plan, full, missing_bytes(board, full))


def _left(pe: PePlan) -> int:
    """The bytes that a PE would have left, or lack, with all of its orders in memory."""
    orders = sum(page.bytes for page in pe.orders.pages)
    return pe.memory.free - orders + (pe.buffer(PAGES).bytes if orders else 0)
