"""From a net and a board to a plan."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.plan.fit import refuse_what_does_not_fit
from npukit.plan.graph import Graph
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import Plan
from npukit.plan.search import fastest_plan, smallest_plan

OBJECTIVES = {"latency": fastest_plan, "memory": smallest_plan}


def plan_network(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str = "latency",
    max_pes: int | None = None,
) -> Plan:
    """The plan of the net on at most `max_pes` live PEs of the board, each op on the engine it is placed on.

    One PE unless told otherwise, as long as the code generator makes no messages.
    """
    if objective not in OBJECTIVES:
        raise NpukitError(f"objective {objective} is not known", tries=[f"one of: {', '.join(OBJECTIVES)}"])
    order = pes_in_order(board)[: max_pes or 1]
    plan = OBJECTIVES[objective](Graph(net), board, engines, order)
    refuse_what_does_not_fit(net, board, engines, plan)
    return plan
