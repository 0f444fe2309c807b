"""From a net and a board to a plan."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.plan.fit import refuse_what_does_not_fit
from npukit.plan.plan import Plan
from npukit.plan.single import plan_one_pe, predict_one_pe


def plan_network(
    net: Net,
    board: Board,
    engines: Mapping[str, Accelerator],
    *,
    objective: str = "latency",
    max_pes: int | None = None,
) -> Plan:
    """The plan of the net on at most `max_pes` live PEs of the board, each op on the engine it is placed on."""
    pe = plan_one_pe(net, board, engines, live_pes(board)[0])
    refuse_what_does_not_fit(net, board, engines, pe)
    return Plan(net.name, board.name, objective, (pe,), (), predict_one_pe(pe))


def live_pes(board: Board) -> list[int]:
    """The PEs that work; the first is the root, which has the host link."""
    live = [pe for pe in range(board.pe_count) if pe not in board.mesh.dead_pes]
    if not live:
        raise DoesNotFit(f"every PE of {board.name} is dead", tries=["another board"])
    return live
