"""Golden cases: the inputs in a build folder, chosen for the events that they reach, and their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npukit.measure.cases import Cases, counts, drawn, noise
from npukit.net.net import Net
from npukit.net.ops.kind import ENTRIES
from npukit.net.ops.table import total_macs
from npukit.net.reference.coverage import BY_CHANNEL, Coverage, Key, Seen, Watch
from npukit.net.tensor import Tensor

GOLDEN_CASES, GOLDEN_FRAMES = 8, 4
"""Limit on the cases, and the frames of each case if the network has states. Of the digits' 495 events three cases of
noise reach 156, three chosen cases 173, eight 256, twelve 300. Each case is two frames of every `validate`."""

LEAST_CASES = 3
MOST_TRIED = 200
CANDIDATE_WORK = 200_000_000
"""Budget for candidates in multiply-accumulates, where each element of an activation counts as `WORK_OF_ELEMENT`: about
two seconds."""
WORK_OF_ELEMENT = 30
TRIED_FOR_ONE = 12
"""Candidates for each case kept beyond the least number."""

WEIGHT = 8
"""Weight of a whole layer's event, relative to an event of one lane or of one entry of a table."""

ROUNDS = 4
"""Rounds of changes to the chosen cases. Each round has as many candidates as the first choice."""


@dataclass(frozen=True, eq=False)
class Golden:
    """The cases, and the events of the net that they reach."""

    cases: Cases
    coverage: Coverage

    def to_json(self) -> dict[str, Any]:
        missing = [{"layer": layer, "kind": kind, "count": n} for (layer, kind), n in self.coverage.missing().items()]
        reached = {"reached": self.coverage.count, "events": self.coverage.events, "missing": missing}
        return {"cases": self.cases.count, **reached}


@dataclass(frozen=True, eq=False)
class _Tried:
    """Candidates: the inputs and the reference's outputs of each, [candidate, frame, ...], and the events of each."""

    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]
    seen: Seen

    def events(self, possible: dict[Key, np.ndarray]) -> np.ndarray:
        """The events of each candidate, [candidate, event]. Events of whole layers, and the first of each kind in a
        layer, are there `WEIGHT` times more."""
        each = {key: self.seen[key][:, places] for key, places in possible.items()}
        whole = [
            found.any(axis=1, keepdims=True) if kind in (*BY_CHANNEL, ENTRIES) else found
            for (_, kind), found in each.items()
        ]
        heavy = [np.repeat(found, WEIGHT, axis=1) for found in whole]
        return np.concatenate([np.zeros((len(self.inputs[0]), 0), bool), *each.values(), *heavy], axis=1)

    def only(self, chosen: Sequence[int]) -> _Tried:
        first, second = (tuple(each[list(chosen)] for each in arrays) for arrays in (self.inputs, self.outputs))
        return _Tried(first, second, {key: places[list(chosen)] for key, places in self.seen.items()})

    def __add__(self, other: _Tried) -> _Tried:
        first, second = (
            tuple(map(np.concatenate, zip(mine, others, strict=True)))
            for mine, others in ((self.inputs, other.inputs), (self.outputs, other.outputs))
        )
        none = {key: np.zeros((len(other.inputs[0]), places.shape[1]), bool) for key, places in self.seen.items()}
        seen = {**none, **other.seen}
        return _Tried(first, second, {key: np.concatenate([places, seen[key]]) for key, places in self.seen.items()})


def golden(net: Net) -> Golden:
    """Inputs that reach as many of the net's events as possible, with their outputs: the same on every machine.

    Candidates are noise of several kinds. The candidates that reach most events together are kept, then changed at
    random as long as they reach more.
    """
    watch, frames = Watch(net), GOLDEN_FRAMES if net.states else 1
    elements = sum(net.tensor(part.output).elements for op in net.ops for part in op.parts)
    work = total_macs(net) + WORK_OF_ELEMENT * elements
    tried = min(max(CANDIDATE_WORK // max(work, 1), LEAST_CASES), MOST_TRIED)
    at_first = max(tried // (1 + ROUNDS), min(tried, LEAST_CASES))
    found = _tried(net, watch, _candidates(net, frames, at_first), padding=True)
    possible, most = watch.possible(found.seen), min(max(tried // TRIED_FOR_ONE, LEAST_CASES), GOLDEN_CASES)
    found = found.only(_greedy(found.events(possible), most))
    for number in range(ROUNDS if tried > ROUNDS + at_first else 0):
        found += _tried(net, watch, _changed(net, found.inputs, (tried - at_first) // ROUNDS, number), padding=False)
        found = found.only(_greedy(found.events(possible), most))
    reached = {key: np.asarray(places.any(axis=0)) for key, places in found.seen.items()}
    inputs, outputs = (
        tuple(each.reshape(-1, *each.shape[2:]) for each in some) for some in (found.inputs, found.outputs)
    )
    cases = Cases(inputs, dict(enumerate(outputs)), None, frames if net.states else None, bool(net.states))
    return Golden(cases, Coverage(possible, reached))


def _tried(net: Net, watch: Watch, inputs: tuple[np.ndarray, ...], *, padding: bool) -> _Tried:
    """Evaluate the candidates, frame by frame."""
    values, seen, outputs = None, Seen(), list[list[np.ndarray]]()
    for frame in range(inputs[0].shape[1]):
        values, each = watch.frame([array[:, frame] for array in inputs], values, padding=padding)
        seen = {key: places | seen[key] if key in seen else places for key, places in each.items()}
        outputs.append([values[name] for name in net.outputs])
    return _Tried(inputs, tuple(np.stack(column, axis=1) for column in zip(*outputs, strict=True)), seen)


def _greedy(events: np.ndarray, most: int) -> list[int]:
    """A greedy choice of at most `most` candidates: each adds the most events to those before."""
    chosen, reached = list[int](), np.zeros(events.shape[1], bool)
    while len(chosen) < min(most, len(events)):
        gains = (events & ~reached).sum(axis=1)
        gains[chosen] = -1
        best = int(gains.argmax())
        if gains[best] == 0 and len(chosen) >= LEAST_CASES:
            break
        chosen.append(best)
        reached |= events[best]
    return chosen


# --- candidates ---


def _candidates(net: Net, frames: int, count: int) -> tuple[np.ndarray, ...]:
    """Noise for each input, of a different kind in each candidate."""
    every = (noise(net, name, count * frames) for name in net.inputs)
    return tuple(
        np.stack([_formed(net.tensor(name), case, number) for number, case in enumerate(array)])
        for name, array in zip(net.inputs, (a.reshape(count, frames, *a.shape[1:]) for a in every), strict=True)
    )


def _formed(tensor: Tensor, values: np.ndarray, number: int) -> np.ndarray:
    """Noise unchanged, or in another form: two values, quiet, in blocks, a ramp, a single value."""
    if counts(tensor) or tensor.dtype == "bool":
        return values
    lowest, highest, middle = _limits(tensor, values)
    place = (values - lowest) / max(highest - lowest, 1e-9)
    forms = (
        values,
        np.where(place < 0.5, lowest, highest),
        np.where(place < 0.9, lowest, highest),
        _blocks(values, 4),
        middle + (values - middle) / 4,
        _blocks(np.where(place < 0.5, lowest, highest), 2),
        np.where(place < 0.1, lowest, highest),
        _blocks(values, 2),
        middle + (values - middle) / 16,
        np.full(values.shape, highest),
        np.full(values.shape, lowest),
        np.linspace(lowest, highest, values.size).reshape(values.shape),
    )
    formed = forms[number % len(forms)]
    return (np.rint(formed) if np.dtype(tensor.dtype).kind in "iu" else formed).astype(tensor.dtype)


def _limits(tensor: Tensor, values: np.ndarray) -> tuple[float, float, float]:
    """The lowest value, the highest value, and the representation of 0."""
    if np.dtype(tensor.dtype).kind not in "iu":
        return float(values.min()), float(values.max()), 0.0
    limits = np.iinfo(tensor.dtype)
    return float(limits.min), float(limits.max), float(tensor.zero_point)


def _blocks(values: np.ndarray, size: int) -> np.ndarray:
    """Values made equal over blocks along the axes of an image, or of a row."""
    for axis in range(1, max(values.ndim - 1, 2)):
        if axis < values.ndim:
            values = np.take(values, np.arange(values.shape[axis]) // size * size, axis=axis)
    return values


def _changed(net: Net, inputs: tuple[np.ndarray, ...], count: int, number: int) -> tuple[np.ndarray, ...]:
    """`count` new cases: each is one of the inputs with some elements from another, or from noise."""
    return tuple(
        np.stack(list(_crossed(net, name, a, count, number))) for name, a in zip(net.inputs, inputs, strict=True)
    )


def _crossed(net: Net, name: str, given: np.ndarray, count: int, number: int) -> Iterator[np.ndarray]:
    frames = given.shape[1]
    fresh = noise(net, name, count * frames, f"change {number}").reshape(count, *given.shape[1:])
    parts = drawn(net, name, count * frames, f"part {number}", "uint8").reshape(fresh.shape)
    for child, (new, part) in enumerate(zip(fresh, parts, strict=True)):
        parent, other = given[child % len(given)], given[(child * 5 + number + 1) % len(given)]
        yield np.where(part < 256 >> 1 + child % 5, new if child % 3 else other, parent)
