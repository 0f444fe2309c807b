"""Range analysis: bounds on the values of each channel of a tensor, derived from the actual weights.

Channels are indices of the last axis. Tensors without bounds tighter than their type have no range.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d
from npukit.net.ops.table import SPECS
from npukit.net.requantize import clamp_of, doubling_high_multiply, quantization, requantization, rounding_shift_right

LOWEST, HIGHEST = -128, 127


@dataclass(frozen=True)
class Range:
    """Lower and upper bound of each channel of a tensor."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def full(cls, channels: int) -> Range:
        return cls(np.full(channels, LOWEST, np.int64), np.full(channels, HIGHEST, np.int64))

    def repeated(self, channels: int) -> Range:
        """The range of a flattened tensor: channels repeated up to `channels`."""
        times = channels // len(self.low)
        return Range(np.tile(self.low, times), np.tile(self.high, times))

    @property
    def magnitude(self) -> np.ndarray:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def clamped(self, clamp: tuple[int, int]) -> Range:
        return Range(np.clip(self.low, *clamp), np.clip(self.high, *clamp))


@dataclass(frozen=True)
class LayerWeights:
    """A layer with weights: one weight per pair of channels and tap, or per channel and tap if `depthwise`. The last
    axis of the weights is the input channel. The first axis is the output channel, or the last if `depthwise`."""

    op: Op
    weights: np.ndarray
    bias: np.ndarray
    zero: int
    clamp: tuple[int, int]
    depthwise: bool
    padded: bool

    @property
    def reduced(self) -> tuple[int, ...]:
        """The weight axes that each sum runs over."""
        axes = range(self.weights.ndim)
        return tuple(axes[:-1] if self.depthwise else axes[1:])


def filter_of(net: Net, op: Op, *, rows: bool = False) -> LayerWeights | None:
    """The op as an int8 filter. None for other ops, groups, a channel multiplier, a dilated depthwise convolution, or,
    without `rows`, a dense layer on several rows."""
    attributes, weights = op.attributes, net.constant(op, 1)
    if not isinstance(attributes, Conv2d | DepthwiseConv2d | Dense) or weights is None or not _is_single(net, op):
        return None
    depthwise, source = isinstance(attributes, DepthwiseConv2d), net.tensor(op.inputs[0])
    shape = weights.shape
    if isinstance(attributes, Dense):
        takes = source.elements == shape[1] or (rows and source.shape[-1] == shape[1])
    else:
        takes = shape[-1] == source.shape[-1] and (not depthwise or attributes.dilation == (1, 1))
    if not takes:
        return None
    bias = net.constant(op, 2)
    values = np.zeros(shape[-1 if depthwise else 0], np.int64) if bias is None else bias.astype(np.int64)
    padded = not isinstance(attributes, Dense) and any(attributes.padding)
    zero = quantization(net, op.inputs[0]).zero_point
    return LayerWeights(op, weights, values, zero, attributes.clamp, depthwise, padded)


def passes_on(net: Net, op: Op) -> bool:
    """True for an op whose output has the range of its input, channel by channel, but for a clamp."""
    return op.parts == (op,) and SPECS[op.kind].keeps_range(net, op) and _is_single(net, op)


def _is_single(net: Net, op: Op) -> bool:
    """True if all activations are int8 and the batch size is 1."""
    tensors = [net.tensor(name) for name in (*net.activations(op), *op.outputs)]
    return all(each.dtype == "int8" and prod(each.shape[:-3]) == 1 for each in tensors)


def value_ranges(net: Net) -> dict[str, Range]:
    """The range of each tensor with a known maker."""
    found: dict[str, Range] = {}
    for op in net.ops:
        given = found.get(op.inputs[0]) if op.inputs else None
        made = filter_of(net, op)
        if made is not None:
            found[op.output] = _output_range(net, made, given)
        elif given is not None and passes_on(net, op):
            found[op.output] = given.clamped(clamp_of(op))
    return found


def accumulators(made: LayerWeights, given: Range | None) -> Range:
    """Bounds on the accumulator of each output channel, bias included. `given`: range of the input."""
    low, high = _centred(made, given)
    wide = made.weights.astype(np.int64)
    least, most = np.minimum(wide * low, wide * high), np.maximum(wide * low, wide * high)
    return Range(least.sum(made.reduced) + made.bias, most.sum(made.reduced) + made.bias)


def _centred(made: LayerWeights, given: Range | None) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on input minus zero point. Extended to 0 if there is padding."""
    channels = made.weights.shape[-1]
    known = given.repeated(channels) if given else Range.full(channels)
    low, high = known.low - made.zero, known.high - made.zero
    return (np.minimum(low, 0), np.maximum(high, 0)) if made.padded else (low, high)


def _output_range(net: Net, made: LayerWeights, given: Range | None) -> Range:
    """Bounds on each output channel. Requantisation is monotonic, so the bounds map to bounds."""
    sums = accumulators(made, given)
    low, high = (requantized(net, made.op, each) for each in (sums.low, sums.high))
    return Range(low, high).clamped(made.clamp)


def requantized(net: Net, op: Op, sums: np.ndarray) -> np.ndarray:
    """The requantised accumulators before the clamp. Unlike in kernels, large bounds do not wrap."""
    factors = requantization(net, op)
    shifts = np.asarray(factors.shifts, np.int64)
    product = doubling_high_multiply(sums << np.maximum(shifts, 0), factors.multipliers.astype(np.int64))
    return rounding_shift_right(product, np.maximum(-shifts, 0)) + quantization(net, op.output).zero_point
