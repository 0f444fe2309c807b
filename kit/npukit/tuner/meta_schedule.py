"""TVM's MetaSchedule as a source of arrangements for one kernel's loops.

The evolutionary search proposes arrangements, and receives their measured costs. MetaSchedule builds and runs nothing:
TVM's own builders and runners measure on the host, and its usual callbacks delete the folder around each artifact. The
cost of an arrangement is predicted before any trial: instructions for each term of a sum, with constants fitted to
GCC's output for the loops. Unrolled terms share loads of common operands; sums beyond the core's registers are spilt.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, prod
from types import ModuleType
from typing import Any
from unittest.mock import patch

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule

from npukit.net.importer.loops import LoopArrangement, LoopKernel, Nest, Tiling
from npukit.net.importer.lowering import function_of
from npukit.net.importer.schedules import ISLAND, extents, inline, is_cheap, loops_of, opened, sums_of

ms: Any = meta_schedule

AT_A_TIME = 4
"""Proposals in a batch, before the search reads new costs."""
POPULATION, GENERATIONS = 128, 3
GREED = 0.25
"""Share of proposals picked at random."""
MOST_INSIDE = 64
"""Limit on the iterations of an inner loop after a split."""
IN_VAIN = 30
"""Known proposals in a row after which the search ends."""
NANO = 1e-9
"""MetaSchedule's costs are seconds. Only their order matters."""


def searches_for(kernel: LoopKernel, best: LoopArrangement, cost: int, known: Iterable[str]) -> list[LoopSearch]:
    """A search for each way to provide the operands of sums. Empty for a kernel without sums."""
    found: list[LoopSearch] = []
    function, tried = function_of(kernel), set(known)
    for apart in (False, True):
        search = LoopSearch(function, apart, tried)
        if search.sums and search.sums not in [other.sums for other in found]:
            search.begin(best, cost)
            found.append(search)
    return found


class LoopSearch:
    """The search over one kernel's loops. `apart`: compute operands in advance, not at the point of use. Choices in
    `known` are not proposed again."""

    def __init__(self, function: Any, apart: bool, known: set[str]) -> None:
        schedule = opened(function)
        inline(schedule, apart)
        self._inlined, self._apart, self._known = tvm.ir.save_json(schedule.mod), apart, known
        self.sums: Sequence[Sum] = sums_in(schedule) or ()
        self._waiting = deque[str]()
        self._asked: dict[str, Any] = {}

    def begin(self, best: LoopArrangement, cost: int) -> None:
        """Start the search from the best known choice."""
        space, mutators = self._space(None), {ms.mutator.MutateTileSize(): 1.0}
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=POPULATION, init_min_unmeasured=1, genetic_num_iters=GENERATIONS, eps_greedy=GREED
        )
        # Without the import of all GPUs' tensor instructions into a context: useless here, and half a minute long.
        intrinsics = "tvm.s_tir.tensor_intrin"
        with patch.dict(sys.modules, {intrinsics: ModuleType(intrinsics)}):
            self._context: Any = ms.TuneContext(
                self._module(),
                target=tvm.target.Target("c"),
                space_generator=ms.space_generator.ScheduleFn(lambda _: space, [], [], mutators),
                search_strategy=strategy,
                rand_state=1 + len(self._known),
                num_threads=1,
            )
        self._database = ms.database.MemoryDatabase()
        self._workload = self._database.commit_workload(self._context.mod)
        if best.apart == self._apart:
            self._record(self._space(best).trace, cost)
        self._context.pre_tuning(1 << 20, AT_A_TIME, [space], self._database, _Expected(self))

    def ask(self) -> str | None:
        """The next choice to try, or None at the end."""
        for _ in range(IN_VAIN):
            if not self._waiting and not self._generate():
                return None
            choice = self._waiting.popleft() if self._waiting else None
            if choice and choice not in self._known:
                self._known.add(choice)
                return choice
        return None

    def tell(self, choice: str, cost: int) -> None:
        """Record the cost of a proposal."""
        self._record(self._asked[choice], cost)

    def _module(self) -> Any:
        """A fresh copy of the module, as a schedule may change its module."""
        return tvm.ir.load_json(self._inlined)

    def expected(self, trace: Any) -> float:
        return predicted(self.sums, self._tiling(trace))

    def _generate(self) -> bool:
        """Request a batch of proposals. False at the end. The search reads only recorded results."""
        try:
            candidates = self._context.generate_measure_candidates()
        except RuntimeError:  # TVM gives up: the kernel keeps the best choice found
            return False
        if not candidates:
            return False
        self._context.notify_runner_results(candidates, [ms.runner.RunnerResult(None, "later")] * len(candidates))
        for trace in (candidate.sch.trace for candidate in candidates):
            tiling = self._tiling(trace)
            if isfinite(predicted(self.sums, tiling)):
                self._asked[str(tiling)] = trace
                self._waiting.append(str(tiling))
        return True

    def _record(self, trace: Any, cost: int) -> None:
        record = ms.database.TuningRecord(trace, self._workload, [cost * NANO], self._context.target, [])
        self._database.commit_tuning_record(record)

    def _space(self, decided: LoopArrangement | None) -> Any:
        """The search space as a schedule: the split of each loop of each sum in two."""
        schedule = opened(self._module()[ISLAND])
        for number, each in enumerate(self.sums):
            nest = decided.nest(number, each.around, each.over) if decided else None
            around, over = loops_of(schedule, schedule.get_sblock(each.name, ISLAND)) or ([], [])
            factors = (*nest.inside, *nest.terms) if nest else ()
            for place, loop in enumerate((*around, *over)):
                size = int(schedule.get(loop).extent)
                decision = [size // factors[place], factors[place]] if nest else None
                if size > 1:
                    cut = schedule.sample_perfect_tile(loop, 2, MOST_INSIDE, decision)
                    schedule.split(loop, cut)
        return schedule

    def _tiling(self, trace: Any) -> Tiling:
        decided = (int(trace.decisions[each][1]) for each in trace.insts if each in trace.decisions)
        sums = []
        for each in self.sums:
            inside, terms = ([next(decided) if size > 1 else 1 for size in loops] for loops in (each.around, each.over))
            sums.append(Nest(tuple(inside), _in_order(terms, each.over)))
        return Tiling(tuple(sums), self._apart)


def _in_order(terms: Sequence[int], over: Sequence[int]) -> tuple[int, ...]:
    """The largest inner factors that keep the terms' order: all loops inside a split loop must be whole."""
    whole = [tuple(terms[place + 1 :]) == tuple(over[place + 1 :]) for place in range(len(terms))]
    return tuple(turns if able else 1 for turns, able in zip(terms, whole, strict=True))


@derived_object
class _Expected(ms.cost_model.PyCostModel):
    """The cost predicted from the core's instructions, instead of a model that needs thousands of trials."""

    def __init__(self, search: LoopSearch) -> None:
        super().__init__()
        self._search = search

    def load(self, path: str) -> None: ...

    def save(self, path: str) -> None: ...

    def update(self, context: Any, candidates: Any, results: Any) -> None: ...

    def predict(self, context: Any, candidates: Any) -> Any:
        del context
        return [1 / self._search.expected(candidate.sch.trace) for candidate in candidates]


REGISTERS = 29
"""Registers for sums and their operands; the others hold intermediate values."""
TURN = 3
"""Instructions of an iteration of the innermost loop, without its terms."""
COSTLY = 6
"""Cost of an operand computed at the point of use, relative to a load."""
MOST_TERMS = 128
"""Limit on unrolled terms: more would not fit an instruction cache, nor pay."""


@dataclass(frozen=True)
class Sum:
    """A block with a sum. `around`: extents of the loops around it. `over`: extents of the loops over its terms.
    `reads`: for each tensor and axis, the loops that determine the index."""

    name: str
    around: tuple[int, ...]
    over: tuple[int, ...]
    reads: tuple[tuple[tuple[int, ...], ...], ...]
    cheap: bool


def sums_in(schedule: Any) -> list[Sum] | None:
    """The sums of an inlined kernel, or None if any is not a plain nest of loops."""
    found = [_sum(schedule, block) for block in sums_of(schedule)]
    return None if None in found else [each for each in found if each]


def _sum(schedule: Any, block: Any) -> Sum | None:
    loops = loops_of(schedule, block)
    if loops is None:
        return None
    body = schedule.get(block)
    places = {axis.var: number for number, axis in enumerate(body.iter_vars)}
    reads = tuple(tuple(_axes(part.min, places) for part in region.region) for region in body.reads)
    around, over = (extents(schedule, each) for each in loops)
    return Sum(body.name_hint, around, over, reads, is_cheap(body))


def _axes(index: Any, places: Mapping[Any, int]) -> tuple[int, ...]:
    """The loops that determine an index."""
    found: set[int] = set()

    def note(var: Any) -> None:
        if var in places:
            found.add(places[var])

    tvm_ffi.structural_walk(index, (tirx.Var, note))
    return tuple(sorted(found))


def predicted(sums: Sequence[Sum], tiling: Tiling) -> float:
    """Predicted instructions, for comparison only."""
    return sum(map(_of_sum, sums, tiling.sums))


def _of_sum(each: Sum, nest: Nest) -> float:
    factors = (*nest.inside, *nest.terms)
    terms, side_by_side = prod(factors), prod(nest.inside)
    if terms > MOST_TERMS:
        return inf
    # Distinct elements of each tensor in an iteration. Windows side by side share elements.
    loads = sum(prod(1 + sum(factors[loop] - 1 for loop in loops) for loops in axes) for axes in each.reads)
    spilt = max(0, side_by_side + min(loads, side_by_side) - REGISTERS)
    spills = 2 * spilt * max(1, prod(nest.terms) / 2)
    turn = 2 * terms + loads * (1 if each.cheap else COSTLY) + spills + TURN
    return prod((*each.around, *each.over)) * turn / terms
