"""Cycles that cores spend on messages, layer by layer, from a timeline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from npukit.plan.predict.timeline import CORE, SEND, WAIT, Timeline, TimeSlice


def waits(timeline: Timeline) -> dict[str, int]:
    """The cycles of a frame in which the PE that waits longest waits for messages before each layer."""
    return _most(timeline, WAIT)


def sends(timeline: Timeline) -> dict[str, int]:
    """The cycles of a frame in which the PE that sends longest starts messages after each layer."""
    return _most(timeline, SEND)


def _most(timeline: Timeline, function: str) -> dict[str, int]:
    spent: Counter[tuple[str, int]] = Counter()
    for pe, own in _by_pe(timeline).items():
        for layer, cycles in _around(own, function):
            spent[layer, pe] += cycles
    most: Counter[str] = Counter()
    for (layer, _), cycles in spent.items():
        most[layer] = max(most[layer], cycles)
    return {layer: cycles // (len(timeline.frames) * timeline.together) for layer, cycles in most.items()}


def _by_pe(timeline: Timeline) -> dict[int, list[TimeSlice]]:
    found: dict[int, list[TimeSlice]] = defaultdict(list)
    for piece in sorted(timeline.slices, key=lambda piece: piece.start):
        found[piece.pe].append(piece)
    return found


def _around(pieces: Sequence[TimeSlice], function: str) -> Iterator[tuple[str, int]]:
    """Cycles in the function, and the layer they belong to: waiting to the next one begun, sending to the last."""
    waited, before = 0, ""
    for piece in pieces:
        if piece.layer:
            before = piece.layer
            yield piece.layer, waited
            waited = 0
        elif piece.name == function == WAIT:
            waited += piece.cycles
        elif piece.name == function and before and piece.track == CORE:
            yield before, piece.cycles
