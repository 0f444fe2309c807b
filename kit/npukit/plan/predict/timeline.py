"""Timeline of frames, measured or predicted: the activity of each PE, to the cycle."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

CORE = "core"
WAIT, SEND, RESTORE = "noc_wait", "noc_send", "net_restore"
"""Names of firmware functions: wait for a message, start a message, restore states."""
COUNTED_FRAME = "frame"
"""Name of a frame's slice as the firmware counts it: `net_run`, the call of `net_run`, and the accounting."""


@dataclass(frozen=True)
class TimeSlice:
    """An interval on a PE's core (`CORE`) or on an accelerator, given by name.

    `step`: the index of the PE's step. `layer`: the op computed by the step, empty for all other activity. `frame`: the
    frame of the batch.
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
    """A transfer of bytes from one place to another. A place at or above `DRAM` is a chip's DRAM.

    PE `sender` made the request to its DMA at cycle `asked`. The transfer starts after all earlier requests of the
    sender.
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
    """Cycles in which a link between neighbours is taken. A border between two chips may have several `lane`s."""

    source: int
    target: int
    lane: int
    bytes: int
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """The activity in a run of frames, or of batches if the plan takes `together` frames at once.

    In cycle 0 the root PE begins to count the first frame. Nothing in a timeline begins earlier.
    """

    model: str
    board: str
    clock_hz: int
    frames: tuple[tuple[int, int], ...]
    """Start and end of each frame on the root PE, in the root's count of cycles."""
    slices: tuple[TimeSlice, ...]
    together: int = 1
    sleeps: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """The intervals of sleep of each PE's core."""
    movements: tuple[Movement, ...] = ()
    links: tuple[LinkUse, ...] = ()
    overwritten: int = 0
    """Events overwritten in a device's buffer before the host read them. The timeline lacks their activity."""
    root: int = 0
    """The PE that starts and ends frames."""
    unit: str = "cycles"
    """Unit of the times: `ticks` under QEMU, whose timer counts instructions."""

    @property
    def end(self) -> int:
        return self.frames[-1][1]

    def from_zero(self) -> Timeline:
        """The timeline from the start of the first frame on. Earlier activity is dropped, or cut to begin at 0."""
        end = self.end
        return replace(
            self,
            slices=tuple(_from_zero(self.slices, end)),
            sleeps={pe: tuple((max(a, 0), b) for a, b in spans if b > 0) for pe, spans in self.sleeps.items()},
            movements=tuple(_from_zero(self.movements, end)),
            links=tuple(_from_zero(self.links, end)),
        )

    def layer_cycles(self) -> dict[str, int]:
        """The cycles of each layer in a frame, on the PE with the most cycles of the layer, on the core or an
        accelerator.

        A step computed by an accelerator in pieces counts from the first piece to the last. The first frame of a batch
        stands for all.
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
    """The intervals of a step's pieces on the core. If an accelerator takes part, the interval from first to last."""
    if all(piece.track == CORE for piece in step):
        return [(piece.start, piece.end) for piece in step]
    return [(min(piece.start for piece in step), max(piece.end for piece in step))]


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """Cycles covered by at least one interval."""
    covered, end = 0, 0
    for start, stop in sorted(spans):
        covered += max(stop - max(start, end), 0)
        end = max(end, stop)
    return covered
