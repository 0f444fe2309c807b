"""The filter of an op for the array, in one form for convolutions, depthwise convolutions, dense layers and means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.accel.filters import rows_and_biases
from npukit.accel.geometry import window_of
from npukit.net.net import Net, Op
from npukit.net.ops import Add, Mean, Sums
from npukit.net.requantize import mean_rescaling, multiply_by_quantized_multiplier, requantization

LOWEST, HIGHEST = -128, 127
LEAST_NIBBLE, LARGEST_NIBBLE = -8, 7


@dataclass(frozen=True, eq=False)
class Filter:
    """`weights` [channel, depth], and per channel the bias (input zero point folded in), multiplier and shift."""

    weights: np.ndarray
    bias: np.ndarray
    multipliers: np.ndarray
    shifts: np.ndarray

    @property
    def bits(self) -> int:
        """Accumulator bits that the filter can need."""
        return bits_needed(*accumulator_bounds(self.weights, self.bias))

    def select(self, start: int, stop: int) -> Filter:
        return Filter(*(a[start:stop] for a in (self.weights, self.bias, self.multipliers, self.shifts)))


class KnownFilters:
    """Cache of filters: the tiles of an op, thousands on a large mesh, are lowered one after the other."""

    def __init__(self, accumulator_bits: int) -> None:
        self._bits = accumulator_bits
        self._known: dict[str, tuple[Net, Op, Filter]] = {}
        self._narrow: dict[str, tuple[np.ndarray, bool]] = {}

    def of(self, net: Net, op: Op) -> Filter:
        known = self._known.get(op.name)
        if known is None or known[0] is not net or known[1] is not op:
            known = self._known[op.name] = (net, op, filter_of(net, op, self._bits))
        return known[2]

    def four_bits(self, net: Net, op: Op) -> bool:
        """True if all weights lie between -8 and 7: two fit in a byte."""
        weights = net.constants.get(op.inputs[1]) if len(op.inputs) > 1 else None
        if weights is None or isinstance(op.attributes, Add):
            return False
        known = self._narrow.get(op.name)
        if known is None or known[0] is not weights:
            low, high = int(weights.min()), int(weights.max())
            known = self._narrow[op.name] = weights, low >= LEAST_NIBBLE and high <= LARGEST_NIBBLE
        return known[1]


def filter_of(net: Net, op: Op, accumulator_bits: int) -> Filter:
    """The op's filter. A channel that can overflow but has a single possible result becomes a constant."""
    if op.kind == Mean.kind:
        return _sums(net, op)
    weights, folded = rows_and_biases(net, op)
    if isinstance(op.attributes, Sums):
        return Filter(weights, folded, np.zeros_like(folded), np.zeros_like(folded))
    scaling = requantization(net, op)
    factors = (np.asarray(each, np.int64) for each in (scaling.multipliers, scaling.shifts))
    return _settle(Filter(weights, folded, *factors), net, op, accumulator_bits)


def _sums(net: Net, op: Op) -> Filter:
    """A mean over all pixels as a depthwise convolution with ones. No int8 image overflows the accumulator."""
    taps, channels = window_of(net, op).taps, net.tensor(op.output).shape[-1]
    scaling, bias = mean_rescaling(net, op, taps), -taps * net.tensor(op.inputs[0]).zero_point
    columns = (np.full(channels, value, np.int64) for value in (bias, scaling.multiplier, scaling.shift))
    return Filter(np.ones((channels, taps), np.int64), *columns)


def _settle(raw: Filter, net: Net, op: Op, accumulator_bits: int) -> Filter:
    """Replace channels that overflow but saturate. Requantisation is monotone: both bounds stand for all inputs."""
    low, high = accumulator_bounds(raw.weights, raw.bias)
    limit = 1 << (accumulator_bits - 1)
    wide = (low < -limit) | (high >= limit)
    if not wide.any():
        return raw
    results = [_output(net, op, raw, acc) for acc in (low, high)]
    # A left shift can wrap and is then not monotone.
    constant = wide & (results[0] == results[1]) & (raw.shifts <= 0)
    weights, bias = raw.weights.copy(), raw.bias.copy()
    multipliers, shifts = raw.multipliers.copy(), raw.shifts.copy()
    weights[constant] = 0
    bias[constant] = results[0][constant] - net.tensor(op.output).zero_point
    # Shifted left by 1, then multiplied by 1/2, the bias is unchanged.
    multipliers[constant], shifts[constant] = 1 << 30, 1
    return Filter(weights, bias, multipliers, shifts)


def _output(net: Net, op: Op, raw: Filter, accumulator: np.ndarray) -> np.ndarray:
    clipped = np.clip(accumulator, -(1 << 31), (1 << 31) - 1)
    scaled = multiply_by_quantized_multiplier(clipped, raw.multipliers, raw.shifts)
    low, high = op.attributes.clamp  # pyright: ignore[reportAttributeAccessIssue]
    return np.clip(scaled + net.tensor(op.output).zero_point, low, high)


def accumulator_bounds(weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest sum of each channel over all int8 inputs; `weights` [channel, depth]."""
    wide = weights.astype(np.int64)
    negative, positive = np.minimum(wide, 0).sum(1), np.maximum(wide, 0).sum(1)
    return bias + positive * LOWEST + negative * HIGHEST, bias + positive * HIGHEST + negative * LOWEST


def bits_needed(low: np.ndarray, high: np.ndarray) -> int:
    """Bits of the narrowest two's complement accumulator for final sums in these bounds; intermediate sums may wrap."""
    return max(int(max(-low.min() - 1, high.max(), 0)).bit_length() + 1, 1)
