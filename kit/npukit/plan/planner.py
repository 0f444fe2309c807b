"""Planning: a net and a board become a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.plan.batch_search.low_memory import low_memory_frames
from npukit.plan.batch_search.throughput import densest_plan
from npukit.plan.does_not_fit import (
    refuse_what_cannot_fit,
    refuse_what_does_not_fit,
    refuse_what_none_carries,
    too_large,
)
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import board_of_one, chips_alike, on_chips
from npukit.plan.search.leanest import FarTooLarge
from npukit.plan.search.objectives import completed_plan, fastest_plan, smallest_plan
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order, pes_to_use

OBJECTIVES = {
    "latency": partial(fastest_plan, last=low_memory_frames),
    "throughput": densest_plan,
    "memory": smallest_plan,
}


def plan_network(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str = "latency",
    max_pes: int | None = None,
) -> Plan:
    """The plan of the net on at most `max_pes` live PEs of the board, each op on the engine it is placed on."""
    return best_plan(Problem(Graph(net), board, engines, max_pes=max_pes), objective)


def best_plan(problem: Problem, objective: str) -> Plan:
    """The best plan for the objective, if one fits. For throughput other chips do as the root's does."""
    refuse_what_none_carries(problem)
    refuse_what_cannot_fit(problem)
    try:
        plan = closest_plan(problem, objective)
    except FarTooLarge as fault:
        raise too_large(problem, fault.lean) from fault
    refuse_what_does_not_fit(problem, plan)
    return plan


def sequential(net: Net, objective: str) -> str:
    """The objective of a network on a stream: each frame of one with states needs what the one before it left, so that
    it has the best throughput by latency."""
    return "latency" if net.states and objective == "throughput" else objective


def closest_plan(problem: Problem, objective: str) -> Plan:
    """The best plan; if none fits, the one that comes closest."""
    if objective not in OBJECTIVES:
        raise NpukitError(f"objective {objective} is not known", tries=[f"one of: {', '.join(OBJECTIVES)}"])
    objective = sequential(problem.net, objective)
    if objective == "throughput" and (chips := _chips_to_fill(problem.board, problem.max_pes)):
        return _on_each_chip(problem, chips)
    return OBJECTIVES[objective](problem)


def _chips_to_fill(board: Board, max_pes: int | None) -> tuple[int, ...]:
    """The chips that so many PEs fill, if those are several; the root's chip is the first of the board."""
    chips = chips_alike(board) if board.mesh.chips.count > 1 else ()
    filled = chips[: (max_pes or board.pe_count) // len(pes_in_order(board_of_one(board, chips)))] if chips else ()
    return filled if len(filled) > 1 and filled[0] == 0 else ()


def _on_each_chip(problem: Problem, chips: tuple[int, ...]) -> Plan:
    board = board_of_one(problem.board, chips)
    one = replace(problem, board=board, order=pes_in_order(board))
    plan = densest_plan(one)
    refuse_what_does_not_fit(one, plan)
    return on_chips(problem.board, plan, chips)


def plan_with_pins(problem: Problem, pins: Assignment) -> Plan:
    """The plan with some ops where the user wants them, the others on the PEs of those, or on as many as are asked."""
    order = pes_to_use(problem.board, problem.board.pe_count, problem.engines_in_use)
    named = {tile.pe for tiles in pins.values() for tile in tiles}
    free = _with_others(order, named, problem.max_pes) if problem.max_pes else [pe for pe in order if pe in named]
    free = free or order[:1]
    around = problem.on(free)
    refuse_what_none_carries(around)
    plan = completed_plan(around, pins)
    refuse_what_does_not_fit(around, plan)
    return plan


def _with_others(order: Sequence[int], named: Collection[int], most: int) -> list[int]:
    """The named PEs and the first of the others, as many as are allowed, in their order."""
    others = [pe for pe in order if pe not in named][: max(most - len(named), 0)]
    return [pe for pe in order if pe in named or pe in others]
