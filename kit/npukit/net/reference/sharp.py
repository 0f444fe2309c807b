"""Inputs for a layer alone: of its whole range, at its ends, close to a value; and sharp ones for a layer of weights.

A multiplier that is a little off, a bias or a rounding shows only in an output whose sum lies close to where it is
rounded up, or just was. Noise seldom comes there. Sharp inputs are put together window by window, each the best of some
proposals for the channels that have not come as close yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d
from npukit.net.reference.window import padded, taps
from npukit.net.requantize import quantization, requantization, wrap_int32
from npukit.net.value_ranges import LayerWeights, Range, filter_of

SHARP, MOST_SHARP = 3, 48
"""Cases of a layer of weights of which one is noise, and the others are sharp; the most sharp ones."""

LEAST, MOST = 16, 128
"""Proposals for a window: a layer for which there is no time for the least has no sharp inputs."""

WINDOWS = 192
"""The most windows of a layer's sharp inputs, together."""

PRODUCTS, CHANNEL = 32, 20
"""The cost of a proposal, of `work`: a step for so many products, so many steps for the sum of each channel."""

FIRST = 500.0
"""The worth of a channel's first output that is not clamped: as of one within 2^-8 of a step of where it changes."""

_AMPLITUDES = 6
_QUIET = np.exp2(-np.arange(4, dtype=np.float32))
"""Shares of the range that proposals go from the zero point: most sums of the whole range are clamped."""


def inputs_alone(
    net: Net, ranges: dict[str, Range], count: int, work: int, boxes: Sequence[Box] = ()
) -> list[np.ndarray]:
    """`count` cases of the inputs of a net of one int8 layer, in these ranges, the same each time.

    `boxes` are the parts of the output that have constants of their own: each is to see sharp ones.
    """
    rng = np.random.default_rng(crc32(net.name.encode()))
    sharp = _sharp(net, ranges, min(count - -(-count // SHARP), MOST_SHARP), work, boxes, rng)
    count -= 0 if sharp is None else len(sharp)
    drawn = [_drawn(net, ranges, name, count, rng) for name in net.inputs]
    return drawn if sharp is None else [np.concatenate([drawn[0], sharp])]


def _limits(net: Net, ranges: dict[str, Range], name: str) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each element."""
    tensor = net.tensor(name)
    known = ranges[name] if name in ranges else Range.full(1)
    return tuple(np.resize(each, tensor.elements) for each in (known.low, known.high))  # pyright: ignore[reportReturnType]


def _drawn(net: Net, ranges: dict[str, Range], name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Values anywhere, at the ends, and around the zero point or another value, closer and closer."""
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
    """A layer as a product: which input each window reads at each tap, -1 for padding, and the weights by tap."""

    made: LayerWeights
    windows: np.ndarray
    weights: np.ndarray
    parts: np.ndarray
    """The part of the output that each window is in."""


def _sharp(
    net: Net, ranges: dict[str, Range], count: int, work: int, boxes: Sequence[Box], rng: np.random.Generator
) -> np.ndarray | None:
    """`count` sharp inputs; None if the layer has no weights, or too many for `work`."""
    made = filter_of(net, net.ops[0]) if len(net.ops) == 1 and len(net.inputs) == 1 else None
    if made is None or count == 0 or made.weights.size * LEAST > work * PRODUCTS:
        return None
    layer, tensor = _layer_of(net, made, boxes), net.tensor(net.inputs[0])
    windows = min(len(layer.windows), -(-WINDOWS // count))
    proposals = work // (count * windows * (layer.weights.size // PRODUCTS + CHANNEL * layer.weights.shape[1]))
    if proposals < LEAST:
        return None
    best = np.zeros((layer.parts.max() + 1, 2, layer.weights.shape[1]))
    search = _Search(net, layer, _limits(net, ranges, net.inputs[0]), windows, min(proposals, MOST), best, rng)
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
    """The weights, [tap, channel]; those of planes are 0 for other channels."""
    if not made.depthwise:
        return made.weights.reshape(len(made.weights), -1).T
    channels = made.weights.shape[-1]
    planes = made.weights.reshape(-1, channels, 1)
    return (planes * np.eye(channels, dtype=planes.dtype)).reshape(-1, channels)


@dataclass(frozen=True, eq=False)
class _Search:
    """A search of so many windows in each input, the best of so many proposals each.

    `best` is how close each channel has come, in bits, [part of the image, above or below, channel].
    """

    net: Net
    layer: _Layer
    limits: tuple[np.ndarray, np.ndarray]
    windows: int
    proposals: int
    best: np.ndarray
    rng: np.random.Generator

    def input(self) -> np.ndarray:
        """One input; windows have what elements those before have left free."""
        layer, (low, high) = self.layer, self.limits
        values, free = self.rng.integers(low, high + 1), np.ones(len(low), bool)
        for window in self.rng.permutation(len(layer.windows))[: self.windows]:
            places = layer.windows[window]
            inside = places >= 0
            own = np.flatnonzero(inside & free[places])
            proposed = np.tile(np.where(inside, values[places], layer.made.zero), (self.proposals, 1))
            proposed[:, own] = self._proposed(own, low[places[own]], high[places[own]])
            values[places[own]] = proposed[self._chosen(proposed, self.best[layer.parts[window]]), own]
            free[places[inside]] = False
        return values

    def _proposed(self, taps: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Values for taps of a window, more or less quiet; some are at the end that drives one channel up, or down."""
        shape, zero, rng = (self.proposals, len(taps)), self.layer.made.zero, self.rng
        loud = rng.random(shape, np.float32) * (high - low).astype(np.float32) + (low - zero).astype(np.float32)
        values = np.rint(loud * np.resize(_QUIET, (self.proposals, 1))) + zero
        channels = rng.integers(0, self.layer.weights.shape[1], self.proposals)
        up = (self.layer.weights.T[channels][:, taps] > 0) == (rng.random((self.proposals, 1)) < 0.5)
        ends = rng.random(shape, np.float32) < np.maximum(rng.uniform(-0.5, 1, (self.proposals, 1)), 0)
        return np.clip(np.where(ends, np.where(up, high, low), values), low, high)

    def _chosen(self, proposed: np.ndarray, best: np.ndarray) -> int:
        """The proposal that is worth most beyond the best so far, which it becomes part of."""
        made = self.layer.made
        sums = ((proposed - made.zero) @ self.layer.weights.astype(np.float64)).astype(np.int64) + made.bias
        bits = _sharpness(self.net, made, sums)
        chosen = int(np.maximum(_worth(bits) - _worth(best), 0).sum(axis=(1, 2)).argmax())
        np.maximum(best, bits[chosen], out=best)
        return chosen


def _worth(bits: np.ndarray) -> np.ndarray:
    """The worth of channels coming so close: most of all of an output that is not clamped."""
    return bits**3 + (bits > 0) * FIRST


def _sharpness(net: Net, made: LayerWeights, sums: np.ndarray) -> np.ndarray:
    """The closeness of sums to where the output changes: [sum, above or below, channel], in bits of a step.

    As in `coverage.py`, both roundings are one floor.
    """
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
