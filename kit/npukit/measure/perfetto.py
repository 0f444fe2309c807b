"""A timeline as a trace for ui.perfetto.dev and chrome://tracing (Trace Event Format)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf, nextafter
from typing import Any

from npukit.board.noc import DRAM
from npukit.plan.ir.plan import Buffer, Plan
from npukit.plan.predict.timeline import CORE, COUNTED_FRAME, LinkUse, Movement, Timeline, TimeSlice
from npukit.project.images.calls import FRAME

Event = dict[str, Any]

_LINKS = 1 << 20
"""The process of the links. PE n is process n + 1."""
_CORE_THREAD, _OUT_THREAD, _IN_THREAD, _FIRST_ACCELERATOR = 1, 2, 3, 4
_CATEGORIES = {"noc_wait": "wait", "noc_send": "communication", FRAME: "frame", COUNTED_FRAME: "frame"}


def perfetto(timeline: Timeline, plan: Plan, pes: Collection[int]) -> dict[str, Any]:
    """The trace of some of the PEs. Times are in microseconds at the board's clock. Each slice also has its cycles."""
    writer = _Writer(timeline, plan, frozenset(pes))
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "model": timeline.model,
            "board": timeline.board,
            "clock_hz": timeline.clock_hz,
            "unit": timeline.unit,
        },
        "traceEvents": list(writer.events()),
    }


class _Writer:
    def __init__(self, timeline: Timeline, plan: Plan, pes: frozenset[int]) -> None:
        self._timeline = timeline
        self._plan = plan
        self._pes = pes
        names = sorted({piece.track for piece in timeline.slices} - {CORE})
        self._threads = {CORE: _CORE_THREAD, **{name: _FIRST_ACCELERATOR + i for i, name in enumerate(names)}}

    def events(self) -> Iterator[Event]:
        yield from self._titles()
        yield from (self._slice(piece) for piece in self._timeline.slices if piece.pe in self._pes)
        for pe in sorted(self._timeline.sleeps.keys() & self._pes):
            inside = (span for span in self._timeline.sleeps[pe] if span[1] <= self._timeline.end)
            yield from (self._complete(pe + 1, _CORE_THREAD, "asleep", "asleep", *span) for span in inside)
        yield from self._messages()
        yield from self._links()
        alive = {pe.pe: _alive(pe.buffers, len(pe.steps)) for pe in self._plan.pes if pe.pe in self._pes}
        for piece in self._timeline.slices:
            if piece.step is not None and piece.pe in alive:
                yield self._count(piece.pe + 1, "SRAM, activations alive", piece.start, alive[piece.pe][piece.step])

    def _nanoseconds(self, cycle: int) -> int:
        return cycle * 1_000_000_000 // self._timeline.clock_hz

    def _at(self, cycle: int) -> float:
        return _microseconds(self._nanoseconds(cycle))

    def _complete(
        self, process: int, thread: int, name: str, category: str, start: int, end: int, **more: Any
    ) -> Event:
        return {
            "ph": "X",
            "pid": process,
            "tid": thread,
            "name": name,
            "cat": category,
            "ts": self._at(start),
            "dur": _microseconds(self._nanoseconds(end) - self._nanoseconds(start)),
            "args": {"cycle": start, "cycles": end - start, **more},
        }

    def _titles(self) -> Iterator[Event]:
        threads = {**self._threads, "messages out": _OUT_THREAD, "messages in": _IN_THREAD}
        for pe in sorted(self._pes):
            yield _title("process", pe + 1, 0, f"PE {pe}")
            yield from (_title("thread", pe + 1, thread, name) for name, thread in threads.items())
        yield _title("process", _LINKS, 0, "links")

    def _slice(self, piece: TimeSlice) -> Event:
        name = piece.layer if piece.layer and piece.track == CORE else piece.name
        category = _CATEGORIES.get(piece.name, "compute" if piece.layer else "runtime")
        more: Event = {"function": piece.name} if piece.track == CORE else {}
        if piece.layer and self._timeline.together > 1:
            more["frame"] = piece.frame
        return self._complete(piece.pe + 1, self._threads[piece.track], name, category, piece.start, piece.end, **more)

    def _messages(self) -> Iterator[Event]:
        """Departures and arrivals of messages, with an arrow between the two."""
        own = [m for m in self._timeline.movements if m.source in self._pes or m.target in self._pes]
        for number, (movement, end) in enumerate(zip(own, _free_until(own), strict=True)):
            yield from self._message(number, movement, end)

    def _message(self, number: int, movement: Movement, leaves_until: int) -> Iterator[Event]:
        told = {"bytes": movement.bytes, "from": _place(movement.source), "to": _place(movement.target)}
        arrow = {"name": "message", "cat": "communication", "id": number}
        if movement.source in self._pes:
            process = movement.source + 1
            yield self._complete(
                process, _OUT_THREAD, f"to {told['to']}", "communication", movement.start, leaves_until, **told
            )
            yield {**arrow, "ph": "s", "pid": process, "tid": _OUT_THREAD, "ts": self._at(movement.start)}
        if movement.target in self._pes:
            process, start = movement.target + 1, movement.end - 1
            yield self._complete(
                process, _IN_THREAD, f"from {told['from']}", "communication", start, movement.end, **told
            )
            yield {**arrow, "ph": "f", "bp": "e", "pid": process, "tid": _IN_THREAD, "ts": self._at(start)}

    def _links(self) -> Iterator[Event]:
        """A track for each link, and the number of links in use."""
        own = [link for link in self._timeline.links if link.source in self._pes or link.target in self._pes]
        threads = {way: number for number, way in enumerate(sorted({_way(link) for link in own}), 1)}
        for way, thread in threads.items():
            yield _title("thread", _LINKS, thread, way)
        for link in own:
            yield self._complete(
                _LINKS, threads[_way(link)], f"{link.bytes} bytes", "communication", link.start, link.end
            )
        changes: dict[int, int] = defaultdict(int)
        for link in own:
            changes[link.start] += 1
            changes[link.end] -= 1
        times = sorted(changes)
        for time, taken in zip(times, accumulate(changes[time] for time in times), strict=True):
            yield self._count(_LINKS, "links taken", time, taken)

    def _count(self, process: int, name: str, cycle: int, value: int) -> Event:
        return {"ph": "C", "pid": process, "tid": 0, "name": name, "ts": self._at(cycle), "args": {"value": value}}


def _microseconds(nanoseconds: int) -> float:
    """Whole nanoseconds in microseconds, safe for readers that multiply by 1000 and truncate. Perfetto does, and drops
    a slice whose end is then a nanosecond after the end of its parent."""
    told = nanoseconds / 1000
    return told if int(told * 1000) == nanoseconds else nextafter(told, inf)


def _title(what: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": f"{what}_name", "args": {"name": name}}


def _place(place: int) -> str:
    return f"PE {place}" if place < DRAM else f"DRAM of chip {place - DRAM}"


def _way(link: LinkUse) -> str:
    return f"{link.source:>4} to {link.target}" + (f", lane {link.lane}" if link.lane else "")


def _free_until(movements: Sequence[Movement]) -> list[int]:
    """The cycle in which each message has arrived, or the next message leaves the same place: slices of a track must
    not overlap. Messages that leave at the same time, as in a multicast, may overlap."""
    by_source: dict[int, set[int]] = defaultdict(set)
    for movement in movements:
        by_source[movement.source].add(movement.start)
    following = {source: dict(pairwise(sorted(starts))) for source, starts in by_source.items()}
    return [min(each.end, following[each.source].get(each.start, each.end)) for each in movements]


def _alive(buffers: Sequence[Buffer], steps: int) -> list[int]:
    """Bytes in use in each step. Overlapping buffers count once."""
    found = list[int]()
    for step in range(steps):
        total = reached = 0
        for start, end in sorted((b.offset, b.offset + b.bytes) for b in buffers if b.first <= step <= b.last):
            total += max(end - max(start, reached), 0)
            reached = max(reached, end)
        found.append(total)
    return found
