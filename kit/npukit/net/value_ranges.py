"""Range analysis: the values that each channel of a tensor can have, from the actual weights of what makes it.

A channel is a place on the last axis. Tensors of which nothing is known beyond their type have no range.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, Dense, DepthwiseConv2d, MaxPool, Reshape
from npukit.net.requantize import doubling_high_multiply, quantization, requantization, rounding_shift_right

LOWEST, HIGHEST = -128, 127


@dataclass(frozen=True)
class Range:
    """The interval of each channel of a tensor: what the layers before can produce at most."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def full(cls, channels: int) -> Range:
        return cls(np.full(channels, LOWEST, np.int64), np.full(channels, HIGHEST, np.int64))

    def repeated(self, channels: int) -> Range:
        """The range of channels as that of a flattened tensor."""
        times = channels // len(self.low)
        return Range(np.tile(self.low, times), np.tile(self.high, times))

    @property
    def magnitude(self) -> np.ndarray:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def clamped(self, clamp: tuple[int, int]) -> Range:
        return Range(np.clip(self.low, *clamp), np.clip(self.high, *clamp))


@dataclass(frozen=True)
class LayerWeights:
    """A layer of weights with a weight for each pair of channels, or one for each channel where it is `depthwise`.

    The last axis of the weights are channels of the input. Those of the output are the first one, or the last.
    """

    op: Op
    weights: np.ndarray
    bias: np.ndarray
    zero: int
    clamp: tuple[int, int]
    depthwise: bool
    padded: bool

    @property
    def reduced(self) -> tuple[int, ...]:
        """The axes of the weights that a sum goes over."""
        axes = range(self.weights.ndim)
        return tuple(axes[:-1] if self.depthwise else axes[1:])


def filter_of(net: Net, op: Op) -> LayerWeights | None:
    """The op as a filter of int8; None if it is none, or has groups, several rows of inputs, or dilated planes."""
    attributes, weights = op.attributes, net.constant(op, 1)
    if not isinstance(attributes, Conv2d | DepthwiseConv2d | Dense) or weights is None or not _is_single(net, op):
        return None
    depthwise, source = isinstance(attributes, DepthwiseConv2d), net.tensor(op.inputs[0])
    shape = weights.shape
    if isinstance(attributes, Dense):
        takes = source.elements == shape[1]
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
    """True of pools whose output has the range of their input, channel by channel."""
    attributes = op.attributes
    return isinstance(attributes, AveragePool | MaxPool) and not any(attributes.padding) and _is_single(net, op)


def is_renamed(net: Net, op: Op) -> bool:
    """True of a reshape that drops or adds axes of one element and keeps the channels."""
    given, made = (net.tensor(name).shape for name in (op.inputs[0], op.outputs[0]))
    same = [size for size in given if size != 1] == [size for size in made if size != 1] and given[-1:] == made[-1:]
    return isinstance(op.attributes, Reshape) and same and _is_single(net, op)


def _is_single(net: Net, op: Op) -> bool:
    """True if it works on int8 alone, without a batch."""
    tensors = [net.tensor(name) for name in (*net.activations(op), *op.outputs)]
    return all(each.dtype == "int8" and prod(each.shape[:-3]) == 1 for each in tensors)


def value_ranges(net: Net) -> dict[str, Range]:
    """The ranges of tensors whose maker is known."""
    found: dict[str, Range] = {}
    for op in net.ops:
        given = found.get(op.inputs[0]) if op.inputs else None
        made = filter_of(net, op)
        if made is not None:
            found[op.output] = _output_range(net, made, given)
        elif given is not None and passes_on(net, op):
            assert isinstance(op.attributes, AveragePool | MaxPool)
            found[op.output] = given.clamped(op.attributes.clamp)
        elif given is not None and is_renamed(net, op):
            found[op.output] = given
    return found


def accumulators(made: LayerWeights, given: Range | None) -> Range:
    """The sums of each output channel, bias included, of an input of that range."""
    low, high = _centred(made, given)
    wide = made.weights.astype(np.int64)
    least, most = np.minimum(wide * low, wide * high), np.maximum(wide * low, wide * high)
    return Range(least.sum(made.reduced) + made.bias, most.sum(made.reduced) + made.bias)


def _centred(made: LayerWeights, given: Range | None) -> tuple[np.ndarray, np.ndarray]:
    """The interval of input less zero point, with zero where padding brings it in."""
    channels = made.weights.shape[-1]
    known = given.repeated(channels) if given else Range.full(channels)
    low, high = known.low - made.zero, known.high - made.zero
    return (np.minimum(low, 0), np.maximum(high, 0)) if made.padded else (low, high)


def _output_range(net: Net, made: LayerWeights, given: Range | None) -> Range:
    """The interval of each output channel: requantisation never decreases, so the ends map to the ends."""
    sums = accumulators(made, given)
    low, high = (requantized(net, made.op, each) for each in (sums.low, sums.high))
    return Range(low, high).clamped(made.clamp)


def requantized(net: Net, op: Op, sums: np.ndarray) -> np.ndarray:
    """The outputs of sums as all layers with weights make them, before they are clamped. Bounds do not wrap."""
    factors = requantization(net, op)
    shifts = np.asarray(factors.shifts, np.int64)
    product = doubling_high_multiply(sums << np.maximum(shifts, 0), factors.multipliers.astype(np.int64))
    return rounding_shift_right(product, np.maximum(-shifts, 0)) + quantization(net, op.output).zero_point
