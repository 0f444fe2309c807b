"""Tiles: each PE's part of each layer, in the order of the PE's records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.link.messages import LayerRecord
from npukit.link.session import Session
from npukit.net.net import CORE, Net
from npukit.plan.ir.plan import Compute, PePlan, Plan
from npukit.plan.multi_chip import twin


@dataclass(frozen=True)
class RecordedTile:
    """A part of an op's output, computed by one PE, with the device's record.

    `like`: the PE of the plan that corresponds to `pe`. `frame`: counted over all chips.
    """

    pe: int
    step: Compute
    record: LayerRecord
    like: int
    frame: int

    @property
    def npu_cycles(self) -> int:
        """Cycles of the accelerator. The core sleeps while an accelerator runs a layer by itself."""
        return 0 if self.step.engine == CORE else self.record.asleep


def recorded_tiles(session: Session, net: Net, board: Board, plan: Plan) -> list[RecordedTile]:
    """Every tile of every layer on every PE in the last observed run, in the order of the layers.

    A PE may write its last record after its last message. Once the PE's frame count is visible, the records of these
    frames are visible too.
    """
    session.settle()
    places = {op.name: place for place, op in enumerate(net.ops)}
    tiles = [tile for number in range(len(plan.chips)) for tile in _of_chip(session, board, plan, number)]
    return sorted(tiles, key=lambda tile: places[tile.step.op])


def _of_chip(session: Session, board: Board, plan: Plan, number: int) -> Iterator[RecordedTile]:
    for pe in plan.pes:
        yield from _of_pe(session, twin(board, pe.pe, plan.home, plan.chips[number]), pe, number * plan.frames)


def _of_pe(session: Session, number: int, like: PePlan, first_frame: int) -> Iterator[RecordedTile]:
    for step, record in zip(like.tiles, session.layers(number, len(like.tiles)), strict=True):
        yield RecordedTile(number, step, record, like.pe, first_frame + step.frame)
