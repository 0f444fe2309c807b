"""Test inputs for a single layer: full range, extremes, near a value, and sharp inputs for layers with weights and
softmax.

A small error in a multiplier, bias or rounding shows only if an accumulator lies close to a rounding boundary. Random
inputs seldom get there. Sharp inputs are built window by window. Each window takes the best of several proposals for
the channels still farthest from a boundary. Some proposals are aimed at the accumulator value closest to a boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d, Softmax
from npukit.net.ops.shapes import padded, taps
from npukit.net.ops.softmax import exp_table, shares, terms
from npukit.net.requantize import quantization, requantization, wrap_int32
from npukit.net.value_ranges import LayerWeights, Range, accumulators, filter_of

SHARP, MOST_SHARP = 3, 48
"""Period of non-sharp cases: one in SHARP cases is noise. MOST_SHARP: maximum sharp cases of a layer with weights."""

LEAST_PROPOSALS, MOST_PROPOSALS = 16, 32
"""Minimum and maximum proposals per window. A layer without time for the minimum gets no sharp inputs."""

AIMED, CLOSEST_SUMS, CHANGED_TAPS = 16, 4, 4
"""Aimed proposals per window; closest accumulator values kept per channel and side; taps changed one by one per
proposal."""

WINDOWS, _MOST_PARTS = 128, 2
"""Maximum windows over all sharp inputs of a layer, per part of the output; maximum number of parts that raise it."""

_PRODUCTS, CHANNEL = 32, 20
"""Cost model of a proposal in steps of `work`: products per step, and steps per channel's sum."""

FIRST_UNCLAMPED = 500.0
"""Extra worth of a channel's first unclamped output: like an output within 2^-8 of a step of a rounding boundary."""

_AMPLITUDES = 6
_QUIET = np.exp2(-np.arange(4, dtype=np.float32))
"""Shares of the range that proposals span around the zero point. Full-range inputs mostly give clamped outputs."""


def inputs_alone(
    net: Net, ranges: dict[str, Range], count: int, work: int, boxes: Sequence[Box] = ()
) -> list[np.ndarray]:
    """`count` test cases for each input of a net with one int8 layer, within `ranges`. Deterministic. `boxes`: parts of
    the output with constants of their own; each part gets sharp windows. The last cases are sharp, in the layer's first
    input."""
    rng, first = np.random.default_rng(crc32(net.name.encode())), net.ops[0].inputs[0]
    wanted = (count - -(-count // SHARP)) * (first in net.inputs)
    if isinstance(net.ops[0].attributes, Softmax):
        sharp = sharp_rows(net, _limits(net, ranges, first), wanted, rng)
    else:
        sharp = _sharp(net, ranges, min(wanted, MOST_SHARP), work, boxes, rng)
    drawn = {name: _drawn(net, ranges, name, count, rng) for name in net.inputs}
    if sharp is not None:
        drawn[first][count - len(sharp) :] = sharp
    return list(drawn.values())


def _limits(net: Net, ranges: dict[str, Range], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper bound of each element."""
    tensor = net.tensor(name)
    known = ranges[name] if name in ranges else Range.full(1)
    return tuple(np.resize(each, tensor.elements) for each in (known.low, known.high))  # pyright: ignore[reportReturnType]


def _drawn(net: Net, ranges: dict[str, Range], name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random values: full range, extremes, around the zero point or a random value, closer in later cases."""
    tensor, (low, high) = net.tensor(name), _limits(net, ranges, name)
    cases = np.arange(count)[:, np.newaxis]
    values = rng.integers(low, high + 1, (count, len(low)))
    often = rng.uniform(0, 1, (count, 1)) ** 2
    ends = np.where(rng.uniform(0, 1, values.shape) < often, low, high)
    around = np.where(cases % 4 == 2, quantization(net, name).zero_point, rng.integers(-128, 128, (count, 1)))
    close = np.clip(np.rint(around + (values - around) / np.exp2(cases // 4 % _AMPLITUDES)), low, high)
    found = np.select([cases % 4 == 0, cases % 4 == 1], [values, ends], close)
    return found.astype(tensor.dtype).reshape(count, *tensor.shape)


# ---- sharp ----


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer as a matrix product: weights by tap, and the input index at each tap of each window (-1 for padding)."""

    made: LayerWeights
    windows: np.ndarray
    weights: np.ndarray
    parts: np.ndarray
    """The part of the output of each window."""


def _sharp(
    net: Net, ranges: dict[str, Range], count: int, work: int, boxes: Sequence[Box], rng: np.random.Generator
) -> np.ndarray | None:
    """`count` sharp inputs. None for a layer without weights, with too many for `work`, or fused with other shapes."""
    made = filter_of(net, net.ops[0])
    if made is None or count == 0 or made.weights.size * LEAST_PROPOSALS > work * _PRODUCTS:
        return None
    if net.tensor(net.outputs[0]).shape != net.tensor(made.op.output).shape:
        return None
    layer, tensor = _layer_of(net, made, boxes), net.tensor(made.op.inputs[0])
    windows = min(len(layer.windows), -(-WINDOWS * min(int(layer.parts.max()) + 1, _MOST_PARTS) // count))
    proposals = work // (count * windows * (layer.weights.size // _PRODUCTS + CHANNEL * layer.weights.shape[1]))
    if proposals < LEAST_PROPOSALS:
        return None
    best = np.zeros((layer.parts.max() + 1, 2, layer.weights.shape[1]))
    limits, sums = _limits(net, ranges, tensor.name), accumulators(made, ranges.get(tensor.name))
    search = _Search(net, layer, limits, _closest(net, made, sums), windows, min(proposals, MOST_PROPOSALS), best, rng)
    return np.stack([search.input() for _ in range(count)]).astype(tensor.dtype).reshape(count, *tensor.shape)


def _layer_of(net: Net, made: LayerWeights, boxes: Sequence[Box]) -> _Layer:
    attributes, shape = made.op.attributes, net.tensor(made.op.inputs[0]).shape
    if isinstance(attributes, Dense):
        return _Layer(made, np.arange(made.weights.shape[1])[np.newaxis], made.weights.T, np.zeros(1, np.int64))
    assert isinstance(attributes, Conv2d | DepthwiseConv2d)
    kernel, out = made.weights.shape[1:3], net.tensor(made.op.output).shape[1:3]
    places = padded(np.arange(np.prod(shape)).reshape(1, *shape[-3:]), attributes.padding, -1)
    each = [tap for _, _, tap in taps(places, kernel, attributes.strides, attributes.dilation, out)]
    windows = np.stack(each, axis=3).reshape(out[0] * out[1], -1)
    parts = np.zeros(out, np.int64)
    for number, (y, x) in enumerate(dict.fromkeys(tuple(zip(b.start, b.stop, strict=True))[-3:-1] for b in boxes)):
        parts[slice(*y), slice(*x)] = number
    return _Layer(made, windows, _by_tap(made), parts.ravel())


def _by_tap(made: LayerWeights) -> np.ndarray:
    """The weights as [tap, channel]. Depthwise weights are 0 between different channels."""
    if not made.depthwise:
        return made.weights.reshape(len(made.weights), -1).T
    channels = made.weights.shape[-1]
    planes = made.weights.reshape(-1, channels, 1)
    return (planes * np.eye(channels, dtype=planes.dtype)).reshape(-1, channels)


@dataclass(frozen=True, eq=False)
class _Search:
    """Search for sharp inputs: `windows` windows per input, each the best of `proposals` proposals. `closest`:
    accumulators of each channel closest to a rounding boundary, [rank, above or below, channel]. `best`: how close each
    channel has come, in bits, [part of the output, above or below, channel]."""

    net: Net
    layer: _Layer
    limits: tuple[np.ndarray, np.ndarray]
    closest: np.ndarray
    windows: int
    proposals: int
    best: np.ndarray
    rng: np.random.Generator

    def input(self) -> np.ndarray:
        """One input. Each window sets only elements left free by earlier windows."""
        layer, (low, high) = self.layer, self.limits
        values, free = self.rng.integers(low, high + 1), np.ones(len(low), bool)
        for window in self.rng.permutation(len(layer.windows))[: self.windows]:
            places = layer.windows[window]
            inside = places >= 0
            own = np.flatnonzero(inside & free[places])
            proposed = np.tile(np.where(inside, values[places], layer.made.zero), (self.proposals, 1))
            proposed[:, own] = self._proposed(own, low[places[own]], high[places[own]])
            best = self.best[layer.parts[window]]
            if len(own):
                self._aim(proposed, own, (low[places[own]], high[places[own]]), best)
            values[places[own]] = proposed[self._chosen(proposed, best), own]
            free[places[inside]] = False
        return values

    def _proposed(self, taps: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Values for the taps of a window. Some taps are at the extreme that drives a random channel."""
        shape, zero, rng = (self.proposals, len(taps)), self.layer.made.zero, self.rng
        loud = rng.random(shape, np.float32) * (high - low).astype(np.float32) + (low - zero).astype(np.float32)
        values = np.rint(loud * np.resize(_QUIET, (self.proposals, 1))) + zero
        channels = rng.integers(0, self.layer.weights.shape[1], self.proposals)
        up = (self.layer.weights.T[channels][:, taps] > 0) == (rng.random((self.proposals, 1)) < 0.5)
        ends = rng.random(shape, np.float32) < np.maximum(rng.uniform(-0.5, 1, (self.proposals, 1)), 0)
        return np.clip(np.where(ends, np.where(up, high, low), values), low, high)

    def _aim(
        self, proposed: np.ndarray, taps: np.ndarray, limits: tuple[np.ndarray, np.ndarray], best: np.ndarray
    ) -> None:
        """Change taps of the first proposals to move a channel's accumulator to one of its closest values. All taps
        share the change, then single taps correct the rest. Half of the proposals aim at the channels farthest from a
        boundary."""
        count, rng = min(AIMED, len(proposed)), self.rng
        far = np.resize(best.argsort(axis=None), count // 2)
        side, channel = np.divmod(np.concatenate([far, rng.integers(0, best.size, count - len(far))]), best.shape[1])
        weights, rows = self.layer.weights[:, channel].T.astype(np.float64), np.arange(count)
        left = self.closest[rng.integers(0, CLOSEST_SUMS, count), side, channel] - self.layer.made.bias[channel]
        left = left - ((proposed[:count] - self.layer.made.zero) * weights).sum(axis=1)
        weights = weights[:, taps]
        inverse = np.divide(1, weights, out=np.zeros_like(weights), where=weights != 0)
        down, up = (limit - proposed[:count, taps] for limit in limits)
        most = np.where(weights * left[:, np.newaxis] > 0, up, down)
        gain = (most * weights).sum(axis=1)
        share = np.divide(left, gain, out=np.zeros_like(left), where=gain != 0)
        steps = np.rint(most * np.minimum(share, 1)[:, np.newaxis])
        proposed[:count, taps] += steps.astype(proposed.dtype)
        left -= (steps * weights).sum(axis=1)
        down, up = down - steps, up - steps
        for _ in range(CHANGED_TAPS):
            steps = np.minimum(np.maximum(np.rint(left[:, np.newaxis] * inverse), down), up)
            tap = np.abs(left[:, np.newaxis] - steps * weights).argmin(axis=1)
            step = steps[rows, tap].astype(proposed.dtype)
            proposed[rows, taps[tap]] += step
            left -= step * weights[rows, tap]
            down[rows, tap] -= step
            up[rows, tap] -= step

    def _chosen(self, proposed: np.ndarray, best: np.ndarray) -> int:
        """The index of the proposal that improves most on `best`. Updates `best`."""
        made = self.layer.made
        sums = ((proposed - made.zero) @ self.layer.weights.astype(np.float64)).astype(np.int64) + made.bias
        bits = _sharpness(self.net, made, sums)
        chosen = int(np.maximum(_worth(bits) - _worth(best), 0).sum(axis=(1, 2)).argmax())
        np.maximum(best, bits[chosen], out=best)
        return chosen


def _closest(net: Net, made: LayerWeights, sums: Range) -> np.ndarray:
    """The accumulators where the smallest multiplier error changes the output, [rank, above or below, channel]."""
    factors, (least, most) = requantization(net, made.op), made.clamp
    outputs = np.arange(least + 1, most + 1)[:, np.newaxis] - quantization(net, made.op.output).zero_point
    scale = np.ldexp(factors.multipliers.astype(np.float64), factors.shifts - 31)
    edges = np.floor((outputs - 0.5) / scale).astype(np.int64)
    every = np.clip(np.concatenate([edges, edges + 1]), sums.low, sums.high)
    bits = _sharpness(net, made, every)
    worth = np.where(bits > 0, bits + np.log2(np.abs(every) + 1)[:, np.newaxis], 0)
    order = np.argsort(-worth, axis=0)[np.arange(CLOSEST_SUMS) % len(worth)]
    return np.take_along_axis(every[:, np.newaxis], order, axis=0)


def _worth(bits: np.ndarray) -> np.ndarray:
    """The worth of each channel's closeness. Any unclamped output adds FIRST_UNCLAMPED."""
    return bits**3 + (bits > 0) * FIRST_UNCLAMPED


def _sharpness(net: Net, made: LayerWeights, sums: np.ndarray) -> np.ndarray:
    """The closeness of accumulators to a rounding boundary: [sum, above or below, channel], in bits below an output
    step. As in `coverage.py`, both roundings are one floor."""
    factors = requantization(net, made.op)
    right, left = (np.maximum(sign * factors.shifts.astype(np.int64), 0) for sign in (-1, 1))
    product = wrap_int32(sums << left) * factors.multipliers.astype(np.int64) + (1 << 30)
    total = product + np.where(right > 0, (1 << (30 + right)) - np.where(product < 0, 1 << 31, 0), 0)
    step = np.int64(1) << (31 + right)
    result = (total >> (31 + right)) + quantization(net, made.op.output).zero_point
    below = (total & (step - 1)) + 1
    least, most = made.clamp
    bits = np.log2(step / np.stack([below, step + 1 - below], axis=1))
    live = np.stack([(result > least) & (result <= most), (result >= least) & (result < most)], axis=1)
    return np.where(live, bits, 0)


MOST_SHARP_ROWS, MOST_ELEMENTS = 1024, 1 << 18
"""Maximum different rows, and maximum elements of all rows."""

CLOSEST_EDGES, ROWS_PER_EDGE = 16, 10
"""Number of closest edges overall, and rows for each of them, with the output at different positions."""

TRIES, SPARE = 48, 2
"""Attempts per row, which succeed if two elements can supply the rest of the sum; rows attempted per wanted row."""

MOST_DRAWN, GREEDY, MOST_LOUD = 10, 2, 6
"""Maximum drawn elements of a row; how many of the last ones take the largest term that fits; maximum sum of a row in
units of the largest term."""

SMALL, MOST_SMALL = 3, 8
"""Elements of a row with small terms, unless the row is short; maximum excess of a small term over the smallest."""

_ENTRIES = 256


def sharp_rows(
    net: Net, limits: tuple[np.ndarray, np.ndarray], count: int, rng: np.random.Generator
) -> np.ndarray | None:
    """`count` inputs of sharp rows for a net with a single softmax. None if rows are too short or no row is found."""
    op, tensor = net.ops[0], net.tensor(net.inputs[0])
    length, rows = tensor.shape[-1], count * tensor.elements // tensor.shape[-1]
    table = exp_table(quantization(net, op.inputs[0]).scale, op.of(Softmax).beta)
    rows = min(rows, MOST_SHARP_ROWS, MOST_ELEMENTS // length)
    found = _differences(table, length, rows, rng) if length >= 4 and rows else np.zeros((0, length))
    if len(found) == 0:
        return None
    top, bottom = int(limits[1].min()), int(limits[0].max())
    widest = found.max(axis=1, keepdims=True)
    largest = rng.integers(np.minimum(bottom + widest, top), top + 1)
    values = np.resize(largest - found, (count, tensor.elements))
    return np.clip(values, *limits).astype(tensor.dtype).reshape(count, *tensor.shape)


def _differences(table: np.ndarray, length: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Differences to each row's maximum, [row, element]. The edge's element moves through all positions."""
    own = terms(table)
    entries, sums = (each[: SPARE * count] for each in _edges(table, own, length))
    more, every = own - own[-1], np.arange(len(sums))[:, np.newaxis]
    left = sums - own[0] - own[entries] - (length - 2) * own[-1]
    small, drawn, left = _drawn_terms(more, left, length - 4, rng)
    pairs = np.full(2 * more[0] + 1, -1)
    pairs[(more + more[:, np.newaxis]).ravel()] = np.arange(_ENTRIES**2)
    exact = np.where((left >= 0) & (left < len(pairs)), pairs[np.clip(left, 0, len(pairs) - 1)], -1)
    best = exact.argmax(axis=1)[:, np.newaxis]
    pair = exact[every, best]
    rest = np.concatenate([0 * pair, pair // _ENTRIES, pair % _ENTRIES, drawn[every[:, 0], best[:, 0]], small], axis=1)
    rows = np.column_stack([entries, rng.permuted(rest, axis=1)])
    turned = (np.arange(length) - every // CLOSEST_EDGES) % length
    return np.take_along_axis(rows, turned, axis=1)[pair[:, 0] >= 0][:count]


def _edges(table: np.ndarray, own: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Table entries and sums of edges: the closest `ROWS_PER_EDGE` times, then each entry's in turn."""
    entries, outputs, side = np.meshgrid(np.arange(_ENTRIES), np.arange(_ENTRIES - 1), np.arange(2), indexing="ij")
    sums = np.floor(table[entries] / 16 / (outputs + 0.5)).astype(np.int64) + side
    least = own[0] + own[entries] + (length - 2) * own[-1]
    possible = (sums >= least) & (sums <= least + min(length - 2, MOST_LOUD) * (own[0] - own[-1]))
    entries, sums, side = entries[possible], sums[possible], side[possible]
    share, shift = shares(table[entries], sums)
    above = (share + (1 << (shift - 1))) & ((1 << shift) - 1)
    distance = np.minimum(above, (1 << shift) - 1 - above) / table[entries]
    group = 2 * entries + side
    order = np.lexsort((distance, group))
    rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    closest = np.tile(np.argsort(distance, kind="stable")[:CLOSEST_EDGES], ROWS_PER_EDGE)
    order = np.concatenate([closest, order[np.lexsort((distance[order], rank))]])
    return entries[order], sums[order]


def _drawn_terms(
    more: np.ndarray, left: np.ndarray, length: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw elements and return differences of small terms, [row, element], of other terms, [row, try, element], and the
    rest of each sum. `more`: the excess of each entry's term over the smallest term. `left`: the excess to distribute
    in each row."""
    rising, count = more[::-1], min(max(length - SMALL, min(length, 3)), MOST_DRAWN)
    first, behind = (np.searchsorted(rising, rising, side) for side in ("left", "right"))
    small = np.arange(len(left) * (length - count)) % np.searchsorted(rising, MOST_SMALL, "right")
    small = small.reshape(len(left), length - count)
    left = np.repeat((left - rising[small].sum(axis=1))[:, np.newaxis], TRIES, axis=1)
    drawn = np.zeros((*left.shape, count), np.int64)
    for place in range(count):
        wanted = left if place >= count - GREEDY else left * rng.random(left.shape) ** 2
        found = np.maximum(np.searchsorted(rising, wanted, "right") - 1, 0)
        drawn[..., place] = rng.integers(first[found], behind[found])
        left = left - rising[found]
    return _ENTRIES - 1 - small, _ENTRIES - 1 - drawn, left
