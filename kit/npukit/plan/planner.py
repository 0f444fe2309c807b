"""From a net and a board to a plan."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.plan.assignment import Assignment
from npukit.plan.fit import refuse_what_does_not_fit
from npukit.plan.graph import Graph
from npukit.plan.memory import missing_bytes
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import Plan
from npukit.plan.search import completed_plan, fastest_plan, smallest_plan
from npukit.plan.throughput import densest_plan

OBJECTIVES = {"latency": fastest_plan, "throughput": densest_plan, "memory": smallest_plan}


def plan_network(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str = "latency",
    max_pes: int | None = None,
) -> Plan:
    """The plan of the net on at most `max_pes` live PEs of the board, each op on the engine it is placed on.

    Without a limit: one PE if that holds the net, else the whole board, which `throughput` takes at once.
    """
    if objective not in OBJECTIVES:
        raise NpukitError(f"objective {objective} is not known", tries=[f"one of: {', '.join(OBJECTIVES)}"])
    search, graph, order = OBJECTIVES[objective], Graph(net), pes_in_order(board)
    first = len(order) if objective == "throughput" else 1
    plan = search(graph, board, engines, order[: max_pes or first])
    if max_pes is None and (missing_bytes(board, plan) or plan.streams):
        plan = search(graph, board, engines, order)
    refuse_what_does_not_fit(net, board, engines, plan)
    return plan


def plan_with_pins(
    net: Net, board: Board, engines: Mapping[str, Accelerator], pins: Assignment, max_pes: int | None
) -> Plan:
    """The plan with some ops where the user wants them, the others on the PEs of those, or on the first `max_pes`."""
    order = pes_in_order(board)
    named = {tile.pe for tiles in pins.values() for tile in tiles}
    free = order[:max_pes] if max_pes else [pe for pe in order if pe in named] or order[:1]
    plan = completed_plan(Graph(net), board, engines, free, pins)
    refuse_what_does_not_fit(net, board, engines, plan)
    return plan
