"""Ops that take much of a frame on few PEs, while the others sleep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npukit.net.net import Net, Op
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.frame_table import FrameTable

MOST = 1 / 3
"""The part of a frame allowed to an op while PEs sleep."""


@dataclass(frozen=True)
class Lonely:
    """An op with its part of the frame and the number of its PEs."""

    op: Op
    part: float
    pes: int


def lonely(net: Net, plan: Plan, table: FrameTable, pes: int) -> Iterator[Lonely]:
    """Each op with more than `MOST` of the frame on at most half of `pes` PEs."""
    frame = sum(table.values())
    for op in net.ops:
        used, part = sum(any(step.op == op.name for step in pe.computes()) for pe in plan.pes), table.get(op.name, 0)
        if part > frame * MOST and used <= pes // 2:
            yield Lonely(op, part / frame, used)
