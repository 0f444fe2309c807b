"""Engines for the planner's tests: the real MAC array, and a core with a simple cost; plans with these engines."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from helpers import SHARED, one_at_a_time
from npukit.accel.interface import Abilities, Accelerator, Choice, CommandFormat, Cost, Lowered, Tile
from npukit.accel.mac_array.plugin import MacArray
from npukit.board.board import Board, load_board
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.plan.ir.plan import Plan
from npukit.plan.ir.store import load_plan, save_plan
from npukit.plan.planner import plan_network


class SimpleCore:
    """A core with a simple cost: 40 cycles per element after 300, 64 bytes of constants, 4 bytes of scratch per
    element."""

    name = "cpu"
    commands: CommandFormat | None = None
    abilities = Abilities()

    def refusal(self, net: Net, op: Op) -> str | None:
        return None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        return Cost(300 + 40 * output.elements, 64, 4 * output.elements)

    def choices(self, net: Net, op: Op) -> Sequence[Choice]:
        return ()

    def lower(self, tile: Tile) -> Lowered:
        raise NotImplementedError

    def sources(self, board: Board) -> tuple[Path, ...]:
        return ()


def engines(board: Board) -> dict[str, Accelerator]:
    arrays: dict[str, Accelerator] = {slot.name: MacArray(slot) for slot in board.accelerator}
    return {**arrays, "cpu": SimpleCore()}


@cache
def planned_on(pes: int, make: Callable[[], Net]) -> tuple[Net, Plan]:
    """A network and its plan for at most `pes` PEs of pe-mesh, planned once per test run for all processes."""
    net, board, kept = make(), load_board("pe-mesh"), Path(os.environ[SHARED]) / f"{make.__name__}-{pes}.txt"
    with one_at_a_time(kept.with_suffix(".lock")):
        if not kept.is_file():
            save_plan(plan_network(net, board, engines(board), max_pes=pes), kept)
    return net, load_plan(kept)
