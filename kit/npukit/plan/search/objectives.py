"""Searches that end in a plan: the fastest frame, and the fewest PEs.

`benchmarks/large/planner_constants.py frame` measures what the constants are worth, here and in what they use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from npukit.dump import lost
from npukit.errors import DoesNotFit
from npukit.plan.batch.weight_streaming import frames_with_streams
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.frame_memory import lacking_bytes, pes_for_constants, root_lacks_room
from npukit.plan.search.layout_search import SMALL_MESH, LatencySearch, effort_on
from npukit.plan.search.leanest import FarTooLarge, Lean, refuse_if_far
from npukit.plan.search.list_schedule import scheduled_plan
from npukit.plan.search.neighbours import NeighbourWalk
from npukit.plan.search.tries import latency, planned, tried, why_not
from npukit.plan.search.wide_frame import WideFrame
from npukit.plan.tensors.problem import Problem

PRICES = (0.0, 0.02, 0.06, 0.2, 0.6, 2.0, 6.0)
"""Cycles a byte of constants costs: raised until the plan fits."""

STREAMING_PRICES = (0.0, 0.06)
"""Prices tried where constants are streamed: 0.06 makes a held-out network of inverted bottlenecks 4.9 % faster."""

FRUGAL = 4
"""The part of a PE's memory that a tile's inputs and output may take where nothing fits, however slow that is."""

ALIKE = 0.98
"""Plans of which one is predicted to take no less than this part of the other's time are alike: the one that the
search over layouts found is taken, which has been compared with its neighbours."""

CHIPS = 4
"""Chips on which a frame with weights in DRAM is searched for: on four a draft takes six seconds of the processor, on
48 minutes."""

IDLE = 1 / 3
"""PEs that compute less than this part of a frame's time may be too many."""


LastResort = Callable[[Problem, Lean], Iterator[Plan]]
"""The frame that takes least memory, however slow it is, whether it fits or not, one like the draft perhaps; and if it
fits, better ones."""


def no_last_resort(problem: Problem, lean: Lean) -> Iterator[Plan]:
    """No frame."""
    del problem, lean
    return iter(())


def fastest_plan(problem: Problem, last: LastResort = no_last_resort) -> Plan:
    """One frame as fast as possible on these PEs, with constants streamed from DRAM if the PEs cannot hold them all.

    If nothing fits, the last resort on many PEs of a chip, or the plan that comes closest; or FarTooLarge, and nothing
    is searched. On many PEs of several chips a search over layouts, which knows no borders of chips, is only for what
    list scheduling does not fit there.
    """
    if _on_several_chips(problem):
        return scheduled_plan(problem) or _on_chips(problem, last)
    search = _search(problem)
    return _fastest(problem, search, last, refuse_if_far(problem, search))


def _on_chips(problem: Problem, last: LastResort) -> Plan:
    """The fastest frame on the root's chip, where orders may be in pages, else on those near it; or what comes closest,
    or FarTooLarge."""
    closest, faults = list[Plan](), list[DoesNotFit]()
    for chips in (1, CHIPS):
        part = problem.on(_near(problem, chips))
        search = _search(part)
        try:
            plan = _best_layouts(part, search, last, refuse_if_far(part, search))
        except DoesNotFit as fault:
            faults.append(fault)
            continue
        if not missing_bytes(problem.board, plan):
            return plan
        closest.append(plan)
    if not closest:
        raise min(faults, key=lambda fault: fault.lean.missing if isinstance(fault, FarTooLarge) else inf)
    return min(closest, key=partial(missing_bytes, problem.board))


def _fastest(problem: Problem, search: LatencySearch, last: LastResort, lean: Lean) -> Plan:
    """The fastest frame, of a network with a draft for least memory that is not far too large."""
    alone = problem.board.noc is None or len(problem.order) == 1
    scheduled = None if alone else scheduled_plan(problem)
    try:
        best = _best_layouts(problem, search, last, lean)
    except DoesNotFit:
        if scheduled is None or missing_bytes(problem.board, scheduled):
            raise
        return scheduled
    if scheduled is None or (not missing_bytes(problem.board, best) and latency(best) * ALIKE <= latency(scheduled)):
        return best
    _lost(problem, best, scheduled)
    return scheduled


def _on_several_chips(problem: Problem) -> bool:
    """True if there are many PEs, of several chips: a plan of list scheduling is taken there if there is one."""
    return len(problem.order) > max(problem.board.mesh.pes.count, SMALL_MESH)


def _best_layouts(problem: Problem, search: LatencySearch, last: LastResort, lean: Lean) -> Plan:
    """The fastest frame that the search over layouts finds, or what comes closest."""
    if problem.board.noc and len(problem.order) > SMALL_MESH:
        return _on_many(problem, search, last, lean)
    try:
        found = _resident_frame(problem, search, {})
    except DoesNotFit:
        if (streamed := _from_dram(problem, search)) is None:
            raise
        return streamed
    if not missing_bytes(problem.board, found.plan):
        return _walked(_faster_on_fewer(found)).plan
    return _from_dram(problem, search) or found.plan


def _on_many(problem: Problem, search: LatencySearch, last: LastResort, lean: Lean) -> Plan:
    """The fastest frame on many PEs, with inputs and weights in DRAM if they must, or what comes closest.

    Where even a lean draft is tight the frame for least memory is emitted first, beside the budget: what that does not
    hold nothing does.
    """
    frames, least, done = last(problem, lean), None, problem.work.done
    if lean.is_tight(problem.board):
        least, problem.work.done = next(frames, None), done
    if least and missing_bytes(problem.board, least):
        return least
    if not _wants_dram(problem) and (held := _held(problem, search)):
        return held
    wide = WideFrame(problem).best()
    if wide and not missing_bytes(problem.board, wide):
        return wide
    return [least, *frames][-1] or wide or resident_plan(problem)


def _held(problem: Problem, search: LatencySearch) -> Plan | None:
    """The fastest frame with inputs on the root and all constants in the PEs, if one fits."""
    try:
        found = _resident_frame(problem, search, {})
    except DoesNotFit:
        return None
    return None if missing_bytes(problem.board, found.plan) else _faster_on_fewer(found).plan


def _wants_dram(problem: Problem) -> bool:
    """True if the root cannot hold the inputs, or all PEs together the constants."""
    return root_lacks_room(problem) or pes_for_constants(problem) > len(problem.order)


def _near(problem: Problem, chips: int) -> Sequence[int]:
    """The PEs of the root's chip; or of so many chips, as they come."""
    if chips > 1:
        return problem.order[: chips * problem.board.mesh.pes.count]
    return list(filter(problem.board.is_on_roots_chip, problem.order))


def _from_dram(problem: Problem, search: LatencySearch) -> Plan | None:
    """The fastest frame that is found with constants, and perhaps inputs, in DRAM."""
    if problem.board.noc is None:
        return None
    streamed = _streamed(problem, search)
    if streamed is None:
        room = problem.board.memory_for("activations").size // FRUGAL
        frugal = LatencySearch(problem, effort_on(problem.order), room=room)
        streamed = _streamed(problem, frugal)
    return streamed


@dataclass(frozen=True)
class _Frame:
    """A plan, and the search that found it at a price of constants, with some ops pinned."""

    plan: Plan
    problem: Problem
    search: LatencySearch
    price: float
    pins: Assignment


def _walked(frame: _Frame) -> _Frame:
    """The frame, or a faster one near it. On a large mesh, or with constants streamed, each would take seconds."""
    if len(frame.problem.order) > SMALL_MESH or frame.plan.streams:
        return frame
    walk = NeighbourWalk(frame.problem, frame.search, frame.price, frame.pins)
    return replace(frame, plan=walk.from_plan(frame.plan))


def _faster_on_fewer(best: _Frame) -> _Frame:
    """The frame, or a faster one on half of its PEs, or a quarter, while they mostly wait for each other.

    Fewer PEs may want constants streamed. Frames are compared as they are found, and only the fastest is walked from.
    """
    order = best.problem.order
    while len(order) // 2 >= best.problem.fewest and _computing(best.plan) < IDLE:
        order = order[: len(order) // 2]
        fewer = best.problem.on(order)
        search = _search(fewer)
        found = _resident_frame(fewer, search, {})
        if missing_bytes(fewer.board, found.plan):
            found = replace(found, plan=_streamed(fewer, search) or found.plan)
        slower = found.plan.predicted.latency_cycles >= best.plan.predicted.latency_cycles
        if slower or missing_bytes(fewer.board, found.plan):
            _lost(best.problem, found.plan, best.plan)
            break
        _lost(best.problem, best.plan, found.plan)
        best = found
    return best


def _lost(problem: Problem, plan: Plan, better: Plan) -> None:
    """Dump a plan that was not taken."""
    lost(plan.headline, partial(why_not, problem, plan, better))


def _computing(plan: Plan) -> float:
    """The part of the frame in which its PEs compute, on average."""
    cycles = sum(step.predicted_cycles for pe in plan.pes for step in pe.computes())
    return cycles / (len(plan.pes) * max(plan.predicted.latency_cycles, 1))


def _streamed(problem: Problem, search: LatencySearch) -> Plan | None:
    """The fastest frame with as few constants streamed as will do, if one fits."""
    assignments = _distinct(search, STREAMING_PRICES)
    plans = (plan for each in assignments for plan in frames_with_streams(problem, each))
    return min(tried(problem, plans), key=lambda plan: plan.predicted.latency_cycles, default=None)


def completed_plan(problem: Problem, pins: Assignment) -> Plan:
    """The plan in which the pinned ops are where they are pinned; the others as if all were free on these PEs."""
    found = _resident_frame(problem, _search(problem), pins)
    return (found if missing_bytes(problem.board, found.plan) else _walked(found)).plan


def smallest_plan(problem: Problem) -> Plan:
    """The fewest of these PEs that hold the net, and on them the fastest frame; if none do, all, and streams."""
    search = _search(problem)
    lean = None if _on_several_chips(problem) else refuse_if_far(problem, search)
    counts = _counts(problem, len(problem.order))
    fewer = (_search(problem.on(problem.order[:count])) for count in counts)
    plan = _first_that_fits(problem, (_resident(problem, each) for each in fewer))
    if plan is None or missing_bytes(problem.board, plan):
        plan = _fastest(problem, search, no_last_resort, lean) if lean else fastest_plan(problem)
    return replace(plan, objective="memory")


def resident_plan(problem: Problem) -> Plan:
    """The fastest frame with all constants in the PEs, or what comes closest."""
    return _resident(problem, _search(problem))


def _search(problem: Problem) -> LatencySearch:
    return LatencySearch(problem, effort_on(problem.order))


def _resident(problem: Problem, search: LatencySearch) -> Plan:
    """The fastest frame with all constants in the PEs, or what comes closest."""
    return _resident_frame(problem, search, {}).plan


def _distinct(search: LatencySearch, prices: Sequence[float]) -> Iterator[Assignment]:
    """The best assignment for each price, where it is another than for the price before."""
    last: Assignment | None = None
    for price in prices:
        found = search.best(price)
        if found != last:
            yield found
        last = found


def _resident_frame(problem: Problem, search: LatencySearch, pins: Assignment) -> _Frame:
    """The same frame, with some ops where they are pinned, and how it was found. DoesNotFit if none can be emitted."""
    prices, faults = list[float](), list[DoesNotFit]()

    def plans() -> Iterator[Plan]:
        for price, assignment in _worth_emitting(problem, search, pins):
            try:
                plan = planned(problem, assignment)
            except DoesNotFit as fault:
                faults.append(fault)
                continue
            prices.append(price)
            yield plan

    plan = _first_that_fits(problem, plans())
    if plan is None:
        raise faults[0]
    return _Frame(plan, problem, search, prices[-1], pins)


def _worth_emitting(problem: Problem, search: LatencySearch, pins: Assignment) -> Iterator[tuple[float, Assignment]]:
    """The best assignment for each price, where it is another than for the price before, and may fit.

    If none may, that which lacks least.
    """
    last, closest, least = None, None, inf
    for price in PRICES:
        found = {**search.best(price), **pins}
        if found == last:
            continue
        last, lacking = found, lacking_bytes(problem, found)
        if not lacking:
            yield price, found
        if lacking < least:
            closest, least = (price, found), lacking
    if least > 0 and closest:
        yield closest


def _counts(problem: Problem, most: int) -> list[int]:
    """Numbers of PEs worth trying: each small one, larger ones in steps, none that cannot hold the constants."""
    least = max(pes_for_constants(problem), problem.fewest)
    counts = [*range(1, min(most, SMALL_MESH)), *range(SMALL_MESH, most, SMALL_MESH)]
    return [*(count for count in counts if count >= least), most]


def _first_that_fits(problem: Problem, plans: Iterator[Plan | None]) -> Plan | None:
    """The first of these plans that fits, else the one that lacks least; None if there are none."""
    closest: Plan | None = None
    for plan in tried(problem, plans):
        if closest is None or missing_bytes(problem.board, plan) < missing_bytes(problem.board, closest):
            closest = plan
        if not missing_bytes(problem.board, plan):
            break
    return closest
