"""The recorder of a simulated frame: what the emulator traces of a run, as the simulation foresees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npukit.board.board import Board
from npukit.net.net import CORE as CORE_ENGINE
from npukit.plan.ir.plan import Compute, PePlan, Plan
from npukit.plan.predict.packets import Packet
from npukit.plan.predict.timeline import CORE, Movement, Slice, Timeline


class Recorder:
    """Collects slices and movements, in the order in which they become known."""

    def __init__(self) -> None:
        self._slices: list[Slice] = []
        self._movements: list[Movement] = []

    def called(self, pe: int, name: str, start: int, end: int) -> None:
        """A function of the firmware runs on a PE's core."""
        self._slices.append(Slice(pe, CORE, name, start, end))

    def computed(self, pe: PePlan, first: int, spans: Sequence[tuple[int, int]], engine: str) -> None:
        """An engine has done a chain of steps, from number `first` on."""
        track = CORE if engine == CORE_ENGINE else engine
        for number, (start, end) in enumerate(spans, first):
            step = pe.steps[number]
            assert isinstance(step, Compute)
            self._slices.append(Slice(pe.pe, track, step.op, start, end, step.op, number, step.frame))

    def moved(self, packet: Packet, sender: int, asked: int, left: int, arrived: Mapping[int, int]) -> None:
        """A packet is on its way to all its destinations."""
        source, size = packet.message.source_pe, packet.bytes
        self._movements += [Movement(source, pe, size, left, end, sender, asked) for pe, end in arrived.items()]

    def timeline(self, board: Board, plan: Plan, end: int) -> Timeline:
        """The timeline of one frame that begins at 0."""
        return Timeline(
            model=plan.model,
            board=board.name,
            clock_hz=board.core.clock_hz,
            frames=((0, end),),
            slices=tuple(self._slices),
            together=plan.frames,
            movements=tuple(self._movements),
            root=plan.pes[0].pe,
        ).from_zero()
