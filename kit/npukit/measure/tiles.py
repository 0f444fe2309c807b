"""Tiles: what each PE computes of each layer, in the order in which it records them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npukit.link.messages import LayerRecord
from npukit.link.session import Session
from npukit.net.net import Net
from npukit.plan.plan import Compute, PePlan, Plan

CPU = "cpu"


@dataclass(frozen=True)
class Tile:
    """A part of an op's output, computed by one PE, and what the device recorded of it."""

    pe: int
    step: Compute
    record: LayerRecord

    @property
    def npu_cycles(self) -> int:
        """Cycles of its accelerator: the core sleeps while one runs a layer by itself."""
        return 0 if self.step.engine == CPU else self.record.asleep


def recorded_tiles(session: Session, net: Net, plan: Plan) -> list[Tile]:
    """Every tile of every layer on every PE in the last observed run; what is wrong first comes first."""
    places = {op.name: place for place, op in enumerate(net.ops)}
    tiles = [tile for pe in plan.pes for tile in _of_pe(session, pe)]
    return sorted(tiles, key=lambda tile: places[tile.step.op])


def _of_pe(session: Session, pe: PePlan) -> Iterator[Tile]:
    steps = list(pe.computes())
    for step, record in zip(steps, session.layers(pe.pe, len(steps)), strict=True):
        yield Tile(pe.pe, step, record)
