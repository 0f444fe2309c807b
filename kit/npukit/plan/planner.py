"""Planning: a net and a board become a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.plan.batch.batch_spec import BatchSpec
from npukit.plan.batch_search.batch_alternatives import BatchAlternatives
from npukit.plan.batch_search.throughput import densest_plan
from npukit.plan.does_not_fit import refuse_what_does_not_fit
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import board_of_one, chips_alike, on_chips
from npukit.plan.search.alternatives import Alternatives
from npukit.plan.search.objectives import completed_plan, fastest_plan, resident_plan, smallest_plan
from npukit.plan.tensors.boxes import Split
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.pe_order import pes_in_order, pes_to_use
from npukit.plan.tensors.problem import Problem, Tell, silent

OBJECTIVES = {"latency": fastest_plan, "throughput": densest_plan, "memory": smallest_plan}


def plan_network(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str = "latency",
    max_pes: int | None = None,
    tell: Tell = silent,
) -> Plan:
    """The plan of the net on at most `max_pes` live PEs of the board, each op on the engine it is placed on.

    Without a limit all PEs of the root's chip may be used; for throughput the other chips do the same.
    """
    plan = closest_plan(net, board, engines, objective=objective, max_pes=max_pes, tell=tell)
    refuse_what_does_not_fit(net, board, engines, plan)
    return plan


def sequential(net: Net, objective: str) -> str:
    """The objective of a network on a stream: each frame of one with states needs what the one before it left, so that
    it has the best throughput by latency."""
    return "latency" if net.states and objective == "throughput" else objective


def closest_plan(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str,
    max_pes: int | None,
    tell: Tell = silent,
) -> Plan:
    """The best plan; if none fits, the one that comes closest."""
    if objective not in OBJECTIVES:
        raise NpukitError(f"objective {objective} is not known", tries=[f"one of: {', '.join(OBJECTIVES)}"])
    objective = sequential(net, objective)
    if objective == "throughput" and (chips := _chips_to_fill(board, max_pes)):
        return _on_each_chip(net, board, engines, chips, tell)
    return OBJECTIVES[objective](Problem(Graph(net), board, engines, pes_to_use(board, max_pes), tell))


def resident_on_one_pe(net: Net, board: Board, engines: Mapping[str, Accelerator], objective: str) -> Plan:
    """The plan on the first PE with all constants there, or what comes closest."""
    return replace(resident_plan(Problem(Graph(net), board, engines, pes_to_use(board, 1))), objective=objective)


def _chips_to_fill(board: Board, max_pes: int | None) -> tuple[int, ...]:
    """The chips that so many PEs fill, if those are several; the root's chip is the first of the board."""
    chips = chips_alike(board) if board.mesh.chips.count > 1 else ()
    filled = chips[: (max_pes or board.pe_count) // len(pes_in_order(board_of_one(board, chips)))] if chips else ()
    return filled if len(filled) > 1 and filled[0] == 0 else ()


def _on_each_chip(
    net: Net, board: Board, engines: Mapping[str, Accelerator], chips: tuple[int, ...], tell: Tell
) -> Plan:
    one = board_of_one(board, chips)
    plan = densest_plan(Problem(Graph(net), one, engines, pes_in_order(one), tell))
    refuse_what_does_not_fit(net, one, engines, plan)
    return on_chips(board, plan, chips)


def plan_as_split(
    net: Net, board: Board, engines: Mapping[str, Accelerator], splits: tuple[Split, ...], max_pes: int | None
) -> Plan | None:
    """The plan of a frame with the ops split so, or None if they cannot be or it does not fit."""
    return Alternatives(Problem(Graph(net), board, engines, pes_to_use(board, max_pes))).plan(splits)


def plan_as_batch(
    net: Net, board: Board, engines: Mapping[str, Accelerator], choice: BatchSpec, max_pes: int | None
) -> Plan | None:
    """The plan of such a batch, or None if it is none of this net or does not fit."""
    return BatchAlternatives(Problem(Graph(net), board, engines, pes_to_use(board, max_pes)), None).plan(choice)


def plan_with_pins(
    net: Net, board: Board, engines: Mapping[str, Accelerator], pins: Assignment, max_pes: int | None
) -> Plan:
    """The plan with some ops where the user wants them, the others on the PEs of those, or on the first `max_pes`."""
    order = pes_in_order(board)
    named = {tile.pe for tiles in pins.values() for tile in tiles}
    free = order[:max_pes] if max_pes else [pe for pe in order if pe in named] or order[:1]
    plan = completed_plan(Problem(Graph(net), board, engines, free), pins)
    refuse_what_does_not_fit(net, board, engines, plan)
    return plan
