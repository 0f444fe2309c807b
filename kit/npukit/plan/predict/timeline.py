"""The timeline of frames, measured or predicted: which PE did what when, to the cycle."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from npukit.board.board import Board
from npukit.net.net import CORE as CORE_ENGINE
from npukit.plan.ir.plan import Compute, PePlan, Plan
from npukit.plan.predict.noc import Packet

CORE = "core"
WAIT, SEND, RESTORE = "noc_wait", "noc_send", "net_restore"
"""The firmware's functions that wait for messages and start them."""
COUNTED_FRAME = "frame"
"""The name of the slice of a frame as the firmware counts it: `net_run`, its call, and what keeps the accounts."""


@dataclass(frozen=True)
class TimeSlice:
    """A stretch of a PE's time: of its core (`CORE`), or of an accelerator by its name.

    `step` is the step of the PE's plan it belongs to; `layer` the op that step computes, empty for all else, and
    `frame` the frame of a batch that it computes it for.
    """

    pe: int
    track: str
    name: str
    start: int
    end: int
    layer: str = ""
    step: int | None = None
    frame: int = 0

    @property
    def cycles(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Movement:
    """Bytes on their way from one place to another; a place at or above `DRAM` is a chip's DRAM.

    PE `sender` asked its DMA for them at cycle `asked`. They left when what it had asked for before was gone.
    """

    source: int
    target: int
    bytes: int
    start: int
    end: int
    sender: int
    asked: int


@dataclass(frozen=True)
class LinkUse:
    """Cycles in which a link between neighbours is taken. Two chips may have several `lane`s between them."""

    source: int
    target: int
    lane: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """The parts of a run of frames, or of batches where the plan takes `together` frames at once.

    Cycle 0 is where the root PE begins to count the first one. Nothing in a timeline begins before that.
    """

    model: str
    board: str
    clock_hz: int
    frames: tuple[tuple[int, int], ...]
    """Start and end of each frame on the root PE, as it counts the cycles of a run."""
    slices: tuple[TimeSlice, ...]
    together: int = 1
    sleeps: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """The spans in which each PE's core slept."""
    movements: tuple[Movement, ...] = ()
    links: tuple[LinkUse, ...] = ()
    overwritten: int = 0
    """Events that a device had overwritten before they were read: what they tell of is missing."""
    root: int = 0
    """The PE that starts and ends frames."""
    unit: str = "cycles"
    """The unit of its times: `ticks` under QEMU, whose timer goes by instructions."""

    @property
    def end(self) -> int:
        return self.frames[-1][1]

    def from_zero(self) -> Timeline:
        """The timeline without what was over when the first frame began; what was under way begins with it."""
        end = self.end
        return replace(
            self,
            slices=tuple(_from_zero(self.slices, end)),
            sleeps={pe: tuple((max(a, 0), b) for a, b in spans if b > 0) for pe, spans in self.sleeps.items()},
            movements=tuple(_from_zero(self.movements, end)),
            links=tuple(_from_zero(self.links, end)),
        )

    def layer_cycles(self) -> dict[str, int]:
        """The cycles of each layer on the PE that spends most on it in a frame, on its core or on an accelerator.

        What a step has an accelerator do piece by piece counts from the first to the last of it. Of a batch's frames
        the first one stands for all.
        """
        steps: dict[tuple[str, int, int, int | None], list[TimeSlice]] = defaultdict(list)
        begun = [start for start, _ in self.frames]
        for piece in self.slices:
            if piece.layer and piece.frame == 0:
                key = piece.layer, piece.pe, bisect_right(begun, piece.start), piece.step
                steps[key].append(piece)
        spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        for (layer, pe, *_), own in steps.items():
            spans[layer, pe] += _spans(own)
        spent: Counter[str] = Counter()
        for (layer, _), own in spans.items():
            spent[layer] = max(spent[layer], _covered(own))
        return {layer: cycles // len(self.frames) for layer, cycles in spent.items()}

    @property
    def pes(self) -> tuple[int, ...]:
        return tuple(sorted({piece.pe for piece in self.slices}))


_Span = TypeVar("_Span", TimeSlice, Movement, LinkUse)


def _from_zero(spans: Iterable[_Span], end: int) -> Iterator[_Span]:
    for span in spans:
        if span.end > 0 and span.start < end:
            yield span if span.start >= 0 else replace(span, start=0)


def _spans(step: Sequence[TimeSlice]) -> list[tuple[int, int]]:
    """The spans of a step's pieces, or the one from the first to the last if an accelerator has some of them."""
    if all(piece.track == CORE for piece in step):
        return [(piece.start, piece.end) for piece in step]
    return [(min(piece.start for piece in step), max(piece.end for piece in step))]


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """Cycles in at least one of them."""
    covered, end = 0, 0
    for start, stop in sorted(spans):
        covered += max(stop - max(start, end), 0)
        end = max(end, stop)
    return covered


class Recorder:
    """Collects slices and movements, in the order in which they become known."""

    def __init__(self) -> None:
        self._slices: list[TimeSlice] = []
        self._movements: list[Movement] = []

    def called(self, pe: int, name: str, start: int, end: int) -> None:
        """A function of the firmware runs on a PE's core."""
        self._slices.append(TimeSlice(pe, CORE, name, start, end))

    def computed(self, pe: PePlan, first: int, spans: Sequence[tuple[int, int]], engine: str) -> None:
        """An engine has done a chain of steps, from number `first` on."""
        track = CORE if engine == CORE_ENGINE else engine
        for number, (start, end) in enumerate(spans, first):
            step = pe.steps[number]
            assert isinstance(step, Compute)
            self._slices.append(TimeSlice(pe.pe, track, step.op, start, end, step.op, number, step.frame))

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
