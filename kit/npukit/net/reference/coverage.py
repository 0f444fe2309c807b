"""Coverage: how many of the possible kernel mistakes in a net a set of inputs would reveal.

An event is a value that a likely mistake would change: an off-by-one clamp, a missing or doubled rounding, a shift
without its rounding half, a wrong padding value, a wrong table entry. An event is reached if the mistake would change
the layer's output after its clamp. Events ruled out by the actual weights are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, DepthwiseConv2d, Softmax
from npukit.net.ops.kind import CLOSE, ENTRIES, HALF, HIGH, LOW, PADDING, ROUNDED, TIES, TWICE, Events, any_of
from npukit.net.ops.softmax import exp_table
from npukit.net.ops.table import SPECS
from npukit.net.reference.interpreter import Held, evaluate, run_op
from npukit.net.requantize import Rescaling, clamp_of, quantization, rescalings, wrap_int32
from npukit.net.value_ranges import Range, accumulators, filter_of, requantized, value_ranges

_LANES = 16
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
        """The reference's values and the reached events of each case. Inputs have a leading case axis. `padding`:
        include padding events, at the cost of two more evaluations of each padded convolution."""
        seen: Seen = {}

        def run(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
            with rescalings() as calls:
                result = run_op(net, op, operands)
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

    def _events(self, op: Op, operands: Sequence[np.ndarray], result: np.ndarray, calls: Sequence[Rescaling]) -> Events:
        if result.dtype == np.int8:
            yield from _rescaled(self._net, op, result, calls)
        yield from SPECS[op.kind].events(self._net, op, operands, result)

    def _can_be(self, op: Op, kind: str, places: np.ndarray) -> np.ndarray:
        """Mask of the places where the event is possible within the value ranges."""
        allowed = np.ones(places.shape, bool)
        given = self._ranges.get(op.inputs[0])
        if kind == ENTRIES:
            return _entries(self._net, op, given)
        if kind == TIES and quantization(self._net, op.output).zero_point == clamp_of(op)[0]:
            return ~allowed
        made = filter_of(self._net, op)
        if made is None or kind not in BY_CHANNEL:
            return allowed
        sums = accumulators(made, given)
        low, high = (requantized(self._net, op, each) for each in (sums.low, sums.high))
        (least, most), live = made.clamp, np.clip(low, *made.clamp) < np.clip(high, *made.clamp)
        can = {LOW: low < least, HIGH: high > most}.get(kind, live)
        return _by_group(can[np.newaxis])[0]


BY_CHANNEL = (LOW, HIGH, ROUNDED, TWICE)
"""Kinds of event counted per lane of channels."""


def _by_group(events: np.ndarray) -> np.ndarray:
    """Events [case, ..., channel] merged by the channel's lane. Channels of a last, partial block stay separate."""
    flat = _over(events.reshape(len(events), -1, events.shape[-1]), 1)
    whole = flat.shape[1] // _LANES * _LANES
    parts = [flat[:, whole:]]
    if whole:
        parts.insert(0, _over(flat[:, :whole].reshape(len(flat), -1, _LANES), 1))
    return np.concatenate(parts, axis=1)


def _over(events: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(events.any(axis=axis))


def _rescaled(net: Net, op: Op, result: np.ndarray, calls: Sequence[Rescaling]) -> Events:
    """Events of the output's rescaling: TensorFlow Lite's two roundings, and the clamp.

    Both roundings equal a single floor of `total` / 2^(31 + right). `total` includes the halves of both roundings and
    the correction of negative ties (accel/cortex_m/code/requantize.py). The distance of `total` from the nearest
    boundary of the floor shows which mistakes would be visible.
    """
    whole = _of_output(result, calls)
    if whole is None:
        return
    value, multiplier, shift = whole
    lowest, highest = clamp_of(op)
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
    grouped = _by_group if np.size(multiplier) > 1 else any_of
    yield LOW, grouped(known & (made < lowest))
    yield HIGH, grouped(known & (made > highest))
    if sum(each.value.size for each in calls) == result.size:  # earlier roundings would make this rounding nearly exact
        yield ROUNDED, grouped(down & (below < 1 << 30))
        yield TWICE, grouped(up & (above <= 1 << 30))
    yield HALF, any_of(down & (below < half))
    yield TIES, any_of(up & tied & (above <= 1 << 31))
    steps = [np.int64(1) << (31 + right - power) for power in CLOSEST]
    close = [any_of(each) for step in steps for each in (up & (above <= step), down & (below < step))]
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


def _padding(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Events:
    """Events of padding: sides where the border pixel would give another result, and padding off by one."""
    attributes, image = op.of(Conv2d, DepthwiseConv2d), operands[0]
    top, left, bottom, right = attributes.padding
    if not any(attributes.padding) or min(attributes.padding) < 0:
        return
    around = ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0))
    bare = replace(op, attributes=replace(attributes, padding=(0, 0, 0, 0)))
    zero = quantization(net, op.inputs[0]).zero_point
    one_off = np.pad(image, around, constant_values=zero + 1 if zero < 127 else zero - 1)
    inside = np.pad(image, around, mode="edge")
    wrong = [(run_op(net, bare, [each, *operands[1:]]) != result).any(axis=(1, 4)) for each in (inside, one_off)]
    edges = wrong[0][:, 0], wrong[0][:, :, 0], wrong[0][:, -1], wrong[0][:, :, -1]
    sides = [any_of(edge) for edge, count in zip(edges, attributes.padding, strict=True) if count]
    yield PADDING, np.concatenate([*sides, any_of(wrong[1])], axis=1)


def _entries(net: Net, op: Op, given: Range | None) -> np.ndarray:
    """Mask of the table entries within the input's range."""
    low, high = (int(given.low.min()), int(given.high.max())) if given else (-128, 127)
    if op.kind == Softmax.kind:
        assert isinstance(op.attributes, Softmax)
        table = exp_table(quantization(net, op.inputs[0]).scale, op.attributes.beta)
        return (table > 0) & (np.arange(256) <= high - low)
    size = net.constants[op.inputs[1]].size
    return np.ones(size, bool) if size != 256 else (np.arange(256) >= low + 128) & (np.arange(256) <= high + 128)
