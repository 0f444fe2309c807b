"""The predictions of a plan, written into the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npukit.board.board import Board
from npukit.net.net import Net
from npukit.plan.ir.plan import Compute, PePlan, Plan, Predicted
from npukit.plan.predict.simulate import simulate


def with_predictions(net: Net, board: Board, plan: Plan, rounds: int = 1) -> Plan:
    """The plan with its predicted cycles, so many batches one after the other, and what messages take from engines."""
    seen = simulate(net, board, plan, rounds)
    predicted = Predicted(seen.latency_cycles, seen.interval_cycles // plan.frames)
    disturbed = {pe for pe, _ in seen.stolen}
    pes = (_with_stolen(pe, seen.stolen) if pe.pe in disturbed else pe for pe in plan.pes)
    return replace(plan, predicted=predicted, pes=tuple(pes))


def _with_stolen(pe: PePlan, stolen: Mapping[tuple[int, int], int]) -> PePlan:
    steps = (
        replace(step, stolen=stolen.get((pe.pe, index), 0)) if isinstance(step, Compute) else step
        for index, step in enumerate(pe.steps)
    )
    return replace(pe, steps=tuple(steps))
