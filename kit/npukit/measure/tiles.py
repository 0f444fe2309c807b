"""Tiles: each PE's part of each layer, in the order of the PE's records."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.board.board import Board
from npukit.link.messages import LayerRecord
from npukit.link.session import Session
from npukit.net.net import CORE, Net
from npukit.plan.ir.plan import Compute, Plan
from npukit.plan.multi_chip import twin


@dataclass(frozen=True)
class RecordedTile:
    """A part of an op's output, computed by one PE, with the device's record. `like`: the PE of the plan that
    corresponds to `pe`. `frame`: counted over all chips."""

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
    tiles = list[RecordedTile]()
    for number, chip in enumerate(plan.chips):
        for like in plan.pes:
            pe = twin(board, like.pe, plan.home, chip)
            for step, record in zip(like.tiles, session.layers(pe, len(like.tiles)), strict=True):
                tiles.append(RecordedTile(pe, step, record, like.pe, number * plan.frames + step.frame))
    return sorted(tiles, key=lambda tile: places[tile.step.op])
