"""Planning: nets and a board become the best plan for an objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from npukit.accel.core_kernels import USUAL, CostPreference
from npukit.accel.interface import Accelerator, Engines
from npukit.board.board import Board
from npukit.dump import CANDIDATES, dumped
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.receptive import cuttable_axes
from npukit.plan.does_not_fit import refusal, refuse_what_cannot_fit, refuse_what_is_no_dram, refuse_what_none_carries
from npukit.plan.ir.assignment import Assignment, pes_of
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import board_of_one, chips_to_fill, on_chips
from npukit.plan.predict.kernels import kernel_notes, with_kernels
from npukit.plan.search.bound import may_be_resident
from npukit.plan.search.candidate import Fits, Line, Strategy
from npukit.plan.search.search import OBJECTIVES, Search
from npukit.plan.strategies.drafts import PES_OF_A_PREFETCHER
from npukit.plan.strategies.fewest_pes import fewest_pes
from npukit.plan.strategies.groups import groups
from npukit.plan.strategies.layouts import layouts, pinned
from npukit.plan.strategies.list_schedules import list_schedules
from npukit.plan.strategies.low_memory import low_memory_batch, low_memory_frame
from npukit.plan.strategies.one_pe import constants_near, one_pe
from npukit.plan.strategies.streams import streams
from npukit.plan.strategies.sums import depth, drafts_and_sums, sums
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order, pes_to_use


@dataclass(frozen=True)
class Planned:
    """A plan with the net, the engines of the costs, and each core op's kernel or the reason for plain C.

    `log`: a line for every candidate of the search.
    """

    plan: Plan
    net: Net
    engines: Engines
    kernels: Mapping[str, str]
    log: Sequence[Line] = ()


def plan_network(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str = "latency",
    max_pes: int | None = None,
) -> Plan:
    """The plan of the net on at most `max_pes` live PEs of the board, with plain C on the core."""
    problem = Problem(Graph(net), board, engines, max_pes=max_pes)
    search = _search(objective)
    _refuse(problem)
    for known in _meshes(problem):
        search.run(known, STRATEGIES[search.objective.name](known, search))
    return _planned(search, problem).plan


def plan_with_kernels(problem: Problem, objective: str, preference: CostPreference = USUAL) -> Planned:
    """The best plan for the objective, with the core's kernels in assembly where PEs have room."""
    return best_of([problem], objective, preference)


def best_of(problems: Sequence[Problem], objective: str, preference: CostPreference = USUAL) -> Planned:
    """The best plan of variants of a net. For throughput, chips like the root's repeat the plan of the root's chip."""
    search = _search(sequential(problems[0].net, objective))
    chips = chips_to_fill(problems[0]) if search.objective.name == "throughput" else ()
    board = problems[0].board
    if chips:
        one = board_of_one(board, chips)
        problems = [replace(each, board=one, order=pes_in_order(one)) for each in problems]
    for problem in problems:
        _search_net(search, problem, preference)
    planned = _planned(search, problems[0])
    return replace(planned, plan=on_chips(board, planned.plan, chips)) if chips else planned


def _search_net(search: Search, problem: Problem, preference: CostPreference) -> None:
    """Search for the best plan of a net: on a single PE, then on the root's chip and on all PEs."""
    _refuse(problem)
    objective = search.objective.name
    if objective != "throughput" or problem.board.noc is None:
        search.run(problem, [one_pe(objective, preference)])
    if problem.board.pe_count == 1 or not any(cuttable_axes(problem.net, op) for op in problem.net.ops):
        return
    for known in _meshes(problem):
        search.run(with_kernels(known, preference), STRATEGIES[objective](known, search))
        if search.best is None:
            search.run(known, STRATEGIES[objective](known, search))


def _meshes(problem: Problem) -> Iterator[Problem]:
    """The problem on the root's chip, if the chip has all engines, and on all PEs. A mesh without room for all
    constants comes last: its candidates would spend the budget."""
    near = tuple(pe for pe in problem.order if problem.board.is_on_roots_chip(pe))
    meshes = (problem.on(order) for order in dict.fromkeys((near, problem.order)))
    enough = (each for each in meshes if each.fewest <= len(each.order))
    yield from sorted(enough, key=may_be_resident, reverse=True)


def sequential(net: Net, objective: str) -> str:
    """The objective of a network on a stream. A frame with states waits for the frame before: latency counts."""
    return "latency" if net.states and objective == "throughput" else objective


def plan_around(problem: Problem, pins: Assignment) -> Planned:
    """The plan with some ops pinned to PEs; the others are on the PEs of these, or on as many as are allowed."""
    search = _search("latency")
    order = _with_others(problem, set(pes_of(pins)))
    around = problem.on(order)
    _refuse(around)
    for variant in (with_kernels(around), around):
        if search.best is None:
            search.run(variant, [pinned(pins)])
    return _planned(search, around)


def _search(objective: str) -> Search:
    if objective not in OBJECTIVES:
        raise NpukitError(f"objective {objective} is not known", tries=[f"one of: {', '.join(OBJECTIVES)}"])
    return Search(OBJECTIVES[objective])


def _refuse(problem: Problem) -> None:
    refuse_what_none_carries(problem)
    refuse_what_cannot_fit(problem, _on_more_pes)


def _with_others(problem: Problem, named: set[int]) -> Sequence[int]:
    """The named PEs and the first of the others, as many as are allowed, in the order of PEs."""
    order = pes_to_use(problem.board, problem.board.pe_count, problem.engines_in_use)
    others = [pe for pe in order if pe not in named][: max((problem.max_pes or 0) - len(named), 0)]
    return [pe for pe in order if pe in named or pe in others] or order[:1]


def _latency(problem: Problem, search: Search) -> Iterator[Strategy]:
    yield list_schedules
    yield layouts
    yield sums
    if search.best is None:
        yield drafts_and_sums
        yield depth
        if search.best is None or len(problem.order) <= PES_OF_A_PREFETCHER:  # a PE apart for prefetching is many
            yield streams
    if search.best is None:
        yield low_memory_frame
    if search.best and problem.board.shares_memory:
        yield constants_near(search.best)


def _memory(problem: Problem, search: Search) -> Iterator[Strategy]:
    yield fewest_pes
    if search.best is None:
        yield from _latency(problem, search)


def _throughput(problem: Problem, search: Search) -> Iterator[Strategy]:
    yield groups
    if search.best is None:
        yield low_memory_batch
    if search.best is None or problem.board.shares_memory:
        yield from _latency(problem, search)


STRATEGIES: Mapping[str, Callable[[Problem, Search], Iterator[Strategy]]] = {
    "latency": _latency,
    "memory": _memory,
    "throughput": _throughput,
}


def _on_more_pes(problem: Problem) -> Search:
    """The search for any plan on the fewest PEs."""
    search, known = Search(OBJECTIVES["memory"]), with_kernels(problem)
    search.run(known, _memory(known, search))
    return search


def _planned(search: Search, problem: Problem) -> Planned:
    if search.best is None:
        dumped(CANDIDATES, lambda: "".join(f"{line}\n" for line in search.log))
        raise refusal(problem, search.nearest, search.log, _on_more_pes)
    assert isinstance(search.best.outcome, Fits)
    plan, chosen = search.best.outcome.plan, search.best.candidate.problem
    refuse_what_is_no_dram(chosen.board, plan)
    return Planned(plan, chosen.net, chosen.engines, kernel_notes(chosen, plan), search.log)
