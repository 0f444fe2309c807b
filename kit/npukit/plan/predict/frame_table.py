"""The cycles of a frame as rows that add up: a row per layer, one for waiting for messages, one for setup.

The rows are the critical path: the chain of causes up to the end of the frame on the root PE. The path is walked
backwards. While a core computes, its layer is charged. While a core sleeps until an accelerator is done, the
accelerator's layer is charged. While a core waits for a message, messages are charged from the message's departure on,
and the walk continues at the departure on the sending PE. All other cycles of starting messages or waiting for them are
charged to messages too. The rest is setup: the firmware's cycles in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from npukit.board.board import Board
from npukit.net.net import Net
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.simulate import predicted_timeline
from npukit.plan.predict.timeline import CORE, WAIT, Movement, Timeline, TimeSlice

MESSAGES = "waiting for messages"
SETUP = "setup"
_MESSAGING = "noc_"
"""Prefix of the firmware's functions for messages."""


FrameTable = Mapping[str, int]
"""The cycles of a frame by row: layers in the order of their beginning, then `MESSAGES` and `SETUP`."""


def to_json(table: FrameTable) -> list[dict[str, Any]]:
    return [{"name": name, "cycles": cycles} for name, cycles in table.items()]


def from_json(found: Iterable[dict[str, Any]]) -> FrameTable:
    """The table from the output of `to_json`."""
    return {row["name"]: row["cycles"] for row in found}


def frame_table(timeline: Timeline) -> FrameTable:
    """The rows of a timeline's first frame, measured or predicted."""
    start, end = timeline.frames[0]
    spent: Counter[str] = Counter()
    for name, cycles in _critical_path(timeline, start, end):
        spent[name] += cycles
    computed = sorted((piece for piece in timeline.slices if piece.layer), key=lambda piece: piece.start)
    names = dict.fromkeys(piece.layer for piece in computed if piece.start < end)
    return {name: spent[name] for name in (*names, MESSAGES, SETUP)}


def predicted_frame(net: Net, board: Board, plan: Plan) -> FrameTable:
    """The rows of a plan's first frame. The root's messages to other chips before and after are charged to messages."""
    table = frame_table(predicted_timeline(net, board, plan))
    beside = plan.predicted.latency_cycles - sum(table.values())
    return {**table, MESSAGES: table[MESSAGES] + beside}


def _critical_path(timeline: Timeline, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Names of rows with the cycles charged to each, from the end of a frame back to its start."""
    pieces = [piece for piece in timeline.slices if piece.layer or piece.name.startswith(_MESSAGING)]
    core = _by_pe(piece for piece in pieces if piece.track == CORE)
    accelerators = _by_pe(piece for piece in pieces if piece.track != CORE)
    arrivals: dict[int, list[Movement]] = defaultdict(list)
    for movement in sorted(timeline.movements, key=lambda each: each.end):
        arrivals[movement.target].append(movement)
    pe, at = timeline.root, end
    while at > start:
        piece = _at(core[pe], at) or _at(accelerators[pe], at)
        if piece is None:
            name, begin = SETUP, max((each.end for each in (*core[pe], *accelerators[pe]) if each.end < at), default=0)
        else:
            name, begin = piece.layer or MESSAGES, piece.start
            if not piece.layer and piece.name == WAIT and (arrived := _last_arrival(arrivals[pe], begin, at)):
                begin, pe = arrived.asked, arrived.sender
        yield name, at - max(begin, start)
        at = begin


def _last_arrival(movements: Sequence[Movement], after: int, until: int) -> Movement | None:
    """The last movement to arrive after `after` and not after `until`, or None. `movements`: in order of arrival."""
    place = bisect_right(movements, until, key=lambda each: each.end)
    return movements[place - 1] if place and movements[place - 1].end > after else None


def _at(pieces: Sequence[TimeSlice], time: int) -> TimeSlice | None:
    """The slice with the cycle before `time`, the latest to begin if there are several."""
    place = bisect_left(pieces, time, key=lambda piece: piece.start)
    return pieces[place - 1] if place and pieces[place - 1].end >= time else None


def _by_pe(pieces: Iterable[TimeSlice]) -> defaultdict[int, list[TimeSlice]]:
    found: defaultdict[int, list[TimeSlice]] = defaultdict(list)
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        found[piece.pe].append(piece)
    return found
