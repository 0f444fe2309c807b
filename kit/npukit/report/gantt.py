"""A frame as a Gantt chart: one row for each PE, with the work of core and accelerators over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from npukit.plan.predict.timeline import CORE, SEND, WAIT, Timeline, TimeSlice

CHART_ROWS = 32
WIDTH = 1000
"""Units of the chart from the start of the first frame to the end of the last."""
_LEAST_WIDTH = 0.4
"""Smallest width of a bar. A narrower piece is merged into the bar before."""
_LABEL_WIDTH = 46
_KINDS = {WAIT: "wait", SEND: "send"}


@dataclass(frozen=True)
class Bar:
    """An interval of time. `kind`: npu, cpu, send, wait or other."""

    x: float
    width: float
    kind: str
    label: str
    title: str


@dataclass(frozen=True)
class GanttRow:
    """The row of a PE: the accelerators' bars above the core's bars."""

    pe: int
    upper: tuple[Bar, ...]
    lower: tuple[Bar, ...]


@dataclass(frozen=True)
class Gantt:
    rows: tuple[GanttRow, ...]
    of: int
    """PEs that run the network, possibly more than there are rows."""
    cycles: int
    ticks: tuple[tuple[float, str], ...]


def gantt(timeline: Timeline) -> Gantt:
    """The chart of the whole timeline, with at most `CHART_ROWS` PEs. In a round, each bar's title names the frame."""
    pes = timeline.pes
    count = min(len(pes), CHART_ROWS)
    chosen = [pes[index * len(pes) // count] for index in range(count)]
    scale = WIDTH / timeline.end
    several = timeline.together > 1
    rows = tuple(_row(pe, [s for s in timeline.slices if s.pe == pe], scale, several) for pe in chosen)
    return Gantt(rows, len(pes), timeline.end, tuple(_ticks(timeline.end, scale)))


def _row(pe: int, slices: Sequence[TimeSlice], scale: float, several: bool) -> GanttRow:
    core = [s for s in slices if s.track == CORE and (s.layer or s.name in _KINDS)]
    accelerators = [s for s in slices if s.track != CORE]
    return GanttRow(pe, tuple(_bars(accelerators, scale, several)), tuple(_bars(core, scale, several)))


def _bars(slices: Iterable[TimeSlice], scale: float, several: bool) -> Iterator[Bar]:
    reached = -1.0
    for piece in sorted(slices, key=lambda piece: piece.start):
        x, width = piece.start * scale, piece.cycles * scale
        if width < _LEAST_WIDTH and x < reached + _LEAST_WIDTH:
            continue
        reached = x + width
        label = piece.layer if width >= _LABEL_WIDTH else ""
        drawn = round(x, 2), round(max(width, _LEAST_WIDTH), 2)
        yield Bar(*drawn, _kind(piece), label, _title(piece, several))


def _kind(piece: TimeSlice) -> str:
    if piece.track != CORE:
        return "npu"
    return "cpu" if piece.layer else _KINDS.get(piece.name, "other")


def _title(piece: TimeSlice, several: bool) -> str:
    what = piece.layer or _KINDS.get(piece.name, piece.name)
    what += f" of frame {piece.frame}" if several and piece.layer else ""
    return f"PE {piece.pe}, {piece.track}: {what}, {piece.cycles:,} cycles from {piece.start:,}"


def _ticks(cycles: int, scale: float) -> Iterator[tuple[float, str]]:
    """Four to nine round numbers."""
    step = 10 ** (len(str(cycles)) - 1)
    while cycles / step < 4:
        step //= 2
    return ((round(at * scale, 2), f"{at:,}") for at in range(0, cycles, max(step, 1)))
