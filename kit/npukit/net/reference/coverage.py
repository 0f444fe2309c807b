"""Coverage: how many of the possible kernel mistakes in a net a set of inputs would reveal.

An event is a value that a likely mistake would change: an off-by-one clamp, a missing or doubled rounding, a shift
without its rounding half, a wrong padding value, a wrong table entry. An event is reached if the mistake would change
the layer's output after its clamp. Events ruled out by the actual weights are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Softmax
from npukit.net.reference.interpreter import KERNELS, Held, evaluate
from npukit.net.reference.pooling import window_sums
from npukit.net.reference.softmax import exp_table
from npukit.net.requantize import Rescaling, quantization, rescalings, wrap_int32
from npukit.net.value_ranges import Range, accumulators, filter_of, requantized, value_ranges

LANES = 16
"""Block of channels within which kernels and accelerators may treat each channel differently."""

CLOSEST = (4, 8, 11, 12, 13, 14, 15)
"""Exponents n of the distances 2^-n from a rounding boundary, in output steps, that count as events."""

Key = tuple[str, str]
"""Name of a layer, or of a part of a fused op, and kind of event."""

Seen = dict[Key, np.ndarray]
"""Reached events by kind: a mask [case, place]."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """The possible events of a net, and the events reached by a set of inputs."""

    possible: Mapping[Key, np.ndarray]
    reached: Mapping[Key, np.ndarray]

    @property
    def events(self) -> int:
        return sum(int(places.sum()) for places in self.possible.values())

    @property
    def count(self) -> int:
        """The number of reached events."""
        return self.events - sum(self.missing().values())

    def missing(self) -> dict[Key, int]:
        """The number of unreached events per kind, without zeros."""
        left = {key: int((places & ~self.reached[key]).sum()) for key, places in self.possible.items()}
        return {key: count for key, count in left.items() if count}


class Watch:
    """Detector of a net's events, possible and reached."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._ranges = value_ranges(net)

    def frame(
        self, inputs: Sequence[np.ndarray], before: Held | None = None, *, padding: bool = True
    ) -> tuple[dict[str, np.ndarray], Seen]:
        """The reference's values and the reached events of each case. Inputs have a leading case axis.

        `padding`: include padding events, at the cost of two more evaluations of each padded convolution.
        """
        seen: Seen = {}

        def run(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
            with rescalings() as calls:
                result = KERNELS[op.kind](net, op, operands)
            events = [self._events(op, operands, result, calls)]
            if padding and isinstance(op.attributes, Conv2d | DepthwiseConv2d):
                events.append(_padding(net, op, operands, result))
            seen.update({(op.name, kind): places for kind, places in chain(*events)})
            return result

        return evaluate(self._net, inputs, before, run), seen

    def possible(self, seen: Seen) -> dict[Key, np.ndarray]:
        """The possible events of each kind in `seen`, without those ruled out by the weights."""
        ops = {part.name: part for op in self._net.ops for part in op.parts}
        return {(layer, kind): self._can_be(ops[layer], kind, places[0]) for (layer, kind), places in seen.items()}

    def _events(
        self, op: Op, operands: Sequence[np.ndarray], result: np.ndarray, calls: Sequence[Rescaling]
    ) -> Iterator[tuple[str, np.ndarray]]:
        if result.dtype == np.int8:
            yield from _rescaled(self._net, op, result, calls)
        if op.kind in _OTHERS:
            yield from _OTHERS[op.kind](self._net, op, operands, result)

    def _can_be(self, op: Op, kind: str, places: np.ndarray) -> np.ndarray:
        """Mask of the places where the event is possible within the value ranges."""
        allowed = np.ones(places.shape, bool)
        given = self._ranges.get(op.inputs[0])
        if kind == ENTRIES:
            return _entries(self._net, op, given)
        if (
            kind == TIES
            and quantization(self._net, op.output).zero_point == getattr(op.attributes, "clamp", (-128,))[0]
        ):
            return ~allowed
        made = filter_of(self._net, op)
        if made is None or kind not in BY_CHANNEL:
            return allowed
        sums = accumulators(made, given)
        low, high = (requantized(self._net, op, each) for each in (sums.low, sums.high))
        (least, most), live = made.clamp, np.clip(low, *made.clamp) < np.clip(high, *made.clamp)
        can = {LOW: low < least, HIGH: high > most}.get(kind, live)
        return _by_group(can[np.newaxis])[0]


LOW, HIGH, ROUNDED, TWICE = "clamped low", "clamped high", "first rounding", "rounding twice"
CLOSE, HALF, TIES = "close to the next rounding", "second rounding", "negative ties"
PADDING, ENTRIES, POOLED, BORDER = "padding", "table entries", "mean's rounding", "padding that never counts"

BY_CHANNEL = (LOW, HIGH, ROUNDED, TWICE)
"""Kinds of event counted per lane of channels."""


def _by_group(events: np.ndarray) -> np.ndarray:
    """Events [case, ..., channel] merged by the channel's lane. Channels of a last, partial block stay separate."""
    flat = _over(events.reshape(len(events), -1, events.shape[-1]), 1)
    whole = flat.shape[1] // LANES * LANES
    parts = [flat[:, whole:]]
    if whole:
        parts.insert(0, _over(flat[:, :whole].reshape(len(flat), -1, LANES), 1))
    return np.concatenate(parts, axis=1)


def _over(events: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(events.any(axis=axis))


def _any(events: np.ndarray) -> np.ndarray:
    return np.asarray(events.reshape(len(events), -1).any(axis=1, keepdims=True))


def _rescaled(net: Net, op: Op, result: np.ndarray, calls: Sequence[Rescaling]) -> Iterator[tuple[str, np.ndarray]]:
    """Events of the output's rescaling: TensorFlow Lite's two roundings, and the clamp.

    Both roundings equal a single floor of `total` / 2^(31 + right). `total` includes the halves of both roundings and
    the correction of negative ties (accel/cortex_m/code/requantize.py). The distance of `total` from the nearest
    boundary of the floor shows which mistakes would be visible.
    """
    whole = _of_output(result, calls)
    if whole is None:
        return
    value, multiplier, shift = whole
    lowest, highest = getattr(op.attributes, "clamp", (-128, 127))
    right = np.maximum(-shift, 0)
    product = wrap_int32(value << np.maximum(shift, 0)) * multiplier + (1 << 30)
    half = np.where(right > 0, np.int64(1) << (30 + right), 0)
    tied = (right > 0) & (product < 0)
    total = product + half - np.where(tied, np.int64(1) << 31, 0)
    made = (total >> (31 + right)) + quantization(net, op.output).zero_point
    known = np.clip(made, lowest, highest) == result
    below = total & ((np.int64(1) << (31 + right)) - 1)
    above = (np.int64(1) << (31 + right)) - below
    down, up = known & (made > lowest) & (made <= highest), known & (made >= lowest) & (made < highest)
    grouped = _by_group if np.size(multiplier) > 1 else _any
    yield LOW, grouped(known & (made < lowest))
    yield HIGH, grouped(known & (made > highest))
    if sum(each.value.size for each in calls) == result.size:  # earlier roundings would make this rounding nearly exact
        yield ROUNDED, grouped(down & (below < 1 << 30))
        yield TWICE, grouped(up & (above <= 1 << 30))
    yield HALF, _any(down & (below < half))
    yield TIES, _any(up & tied & (above <= 1 << 31))
    steps = [np.int64(1) << (31 + right - power) for power in CLOSEST]
    close = [_any(each) for step in steps for each in (up & (above <= step), down & (below < step))]
    yield CLOSE, np.concatenate(close, axis=1)


def _of_output(result: np.ndarray, calls: Sequence[Rescaling]) -> Rescaling | None:
    """The rescaling of the whole output, joined from the parts of a large convolution. None if there is none."""
    if calls and calls[-1].value.size == result.size:
        value = calls[-1].value
    elif calls and sum(each.value.size for each in calls) == result.size:
        value = np.concatenate([each.value.ravel() for each in calls])
    else:
        return None
    return Rescaling(value.reshape(result.shape), calls[-1].multiplier, calls[-1].shift)


def _padding(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Events of padding: each side where the border pixel would give another result than padding, and padding off by
    one."""
    attributes, image = op.attributes, operands[0]
    assert isinstance(attributes, Conv2d | DepthwiseConv2d)
    top, left, bottom, right = attributes.padding
    if not any(attributes.padding) or min(attributes.padding) < 0:
        return
    around = ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0))
    bare = replace(op, attributes=replace(attributes, padding=(0, 0, 0, 0)))
    zero = quantization(net, op.inputs[0]).zero_point
    one_off = np.pad(image, around, constant_values=zero + 1 if zero < 127 else zero - 1)
    inside = np.pad(image, around, mode="edge")
    wrong = [
        (KERNELS[op.kind](net, bare, [each, *operands[1:]]) != result).any(axis=(1, 4)) for each in (inside, one_off)
    ]
    edges = wrong[0][:, 0], wrong[0][:, :, 0], wrong[0][:, -1], wrong[0][:, :, -1]
    sides = [_any(edge) for edge, count in zip(edges, attributes.padding, strict=True) if count]
    yield PADDING, np.concatenate([*sides, _any(wrong[1])], axis=1)


def _lookup(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    data = operands[0]
    yield ENTRIES, _used(data.astype(np.int64) - np.iinfo(data.dtype).min, len(operands[1]))


def _softmax(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    data = operands[0].astype(np.int64)
    yield ENTRIES, _used(data.max(axis=-1, keepdims=True) - data, 256)
    yield HIGH, _any(result == 127)


def _used(entries: np.ndarray, size: int) -> np.ndarray:
    return np.stack([np.bincount(each.ravel(), minlength=size) > 0 for each in entries])


def _entries(net: Net, op: Op, given: Range | None) -> np.ndarray:
    """Mask of the table entries within the input's range."""
    low, high = (int(given.low.min()), int(given.high.max())) if given else (-128, 127)
    if op.kind == Softmax.kind:
        assert isinstance(op.attributes, Softmax)
        table = exp_table(quantization(net, op.inputs[0]).scale, op.attributes.beta)
        return (table > 0) & (np.arange(256) <= high - low)
    size = net.constants[op.inputs[1]].size
    return np.ones(size, bool) if size != 256 else (np.arange(256) >= low + 128) & (np.arange(256) <= high + 128)


def _average(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Events of an average pool: negative and positive means rounded away from zero, and border windows with fewer
    elements."""
    attributes, shape = op.attributes, net.tensor(op.output).shape
    assert isinstance(attributes, AveragePool)
    images = operands[0].reshape(-1, *operands[0].shape[2:])
    counts = window_sums(np.ones_like(images[:1, :, :, :1]), attributes, shape)
    sums = window_sums(images, attributes, shape)
    up = np.abs(sums) // counts != (np.abs(sums) + counts // 2) // counts
    yield POOLED, np.stack([(up & sign).reshape(len(result), -1).any(axis=1) for sign in (sums < 0, sums > 0)], axis=1)
    if any(attributes.padding):
        full = attributes.window[0] * attributes.window[1]
        yield BORDER, _any((sums // full != sums // counts).reshape(len(result), -1))


def _maximum(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Events of a max pool: border maxima below 0 and below the zero point. Padding of either value, if counted, would
    hide the maximum."""
    assert isinstance(op.attributes, MaxPool)
    if any(op.attributes.padding):
        border = np.concatenate([result[:, :, [0, -1]].ravel(), result[:, :, :, [0, -1]].ravel()]).reshape(
            len(result), -1
        )
        yield BORDER, _any(border < min(0, quantization(net, op.inputs[0]).zero_point))


_Events = Callable[[Net, Op, Sequence[np.ndarray], np.ndarray], Iterator[tuple[str, np.ndarray]]]
_OTHERS: Mapping[str, _Events] = {
    "average_pool": _average,
    "lookup": _lookup,
    "max_pool": _maximum,
    "softmax": _softmax,
}
