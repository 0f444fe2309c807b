"""The constants of convolutions and dense layers in C: weights in lanes, and factors for requantisation in one step."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from npukit.accel.cortex_m.code.requantize import FastRequantization, exponents, fast_requantization, smallest_exponents
from npukit.accel.groups import groups_of
from npukit.board.cores import CoreType
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d
from npukit.net.requantize import output_channel_axis, quantization, requantization

LANES = 4
"""Output channels computed together from each loaded input."""
PRODUCTS_LANES = 8
"""`LANES` of a core with `products`, whose weights are stored with 128 added."""
VECTOR_LANES = 32
"""`LANES` of a core with vectors. The last block may have fewer channels."""
VECTOR_WEIGHTS = "lanes"
"""The role of weights in vector lanes, which selects the kernel."""
PRESCALED = 2
"""Left shift in bits of the sums before scaling in one step."""
IN_LANES = "[output channels at a time][tap][channel of these], then the other channels [channel][tap]"

_MAGNITUDE = 128
_MOST_BITS = 21
_LAYOUT = {
    "conv2d": IN_LANES,
    "depthwise_conv2d": "[y][x][channel]",
    "dense": IN_LANES,
    "transpose_conv2d": "[output channel][y][x][input channel]",
}


def filter_constants(net: Net, op: Op, output: Box, core: CoreType) -> Iterator[tuple[str, np.ndarray, str]]:
    """The role, the values and the description of each constant."""
    chosen = slice(output.start[-1], output.stop[-1])
    weights = net.constants[op.inputs[1]][(slice(None),) * output_channel_axis(op) + (chosen,)]
    vectors, bias = takes_vectors(net, op, core), _bias(net, op)
    if isinstance(op.attributes, Conv2d | Dense):
        weights = in_vectors(weights) if vectors else in_lanes(net, op, weights, core)
    yield VECTOR_WEIGHTS if vectors else "weights", weights, f"weights {_LAYOUT[op.kind]}"
    if vectors and bias is None:
        bias = np.zeros(net.tensor(op.output).shape[-1], np.int32)
    if bias is not None:
        yield "bias", bias[chosen], "biases"
    factors, fast = requantization(net, op), in_one_step(net, op)
    yield "multipliers", factors.multipliers[chosen], "multipliers of the requantisation, in Q0.31"
    if fast is None:
        yield "shifts", factors.shifts[chosen].astype(np.int8), "of the requantisation, positive to the left"
    else:
        yield "addends", fast.addends[chosen].astype(np.int32), "addends to the scaled sums: zero point and rounding"
        yield "shifts", fast.exponents[chosen].astype(np.int8), "shifts to the right"


def takes_vectors(net: Net, op: Op, core: CoreType) -> bool:
    """True if vectors compute the op's channels: all channels have the same inputs, or each has its own."""
    alone = net.tensor(op.output).shape[-1] == net.tensor(op.inputs[0]).shape[-1]
    fits = isinstance(op.attributes, Dense | Conv2d) and groups_of(net, op) == 1
    fits |= isinstance(op.attributes, DepthwiseConv2d) and alone
    return core.vectors and fits and in_one_step(net, op) is not None


def in_vectors(weights: np.ndarray) -> np.ndarray:
    """The weights of `VECTOR_LANES` output channels together, tap by tap; then of the other channels likewise."""
    of_channels = weights.reshape(len(weights), -1)
    blocks = (of_channels[first : first + VECTOR_LANES] for first in range(0, len(weights), VECTOR_LANES))
    return np.concatenate([block.T.ravel() for block in blocks])


def in_lanes(net: Net, op: Op, weights: np.ndarray, core: CoreType) -> np.ndarray:
    """The weights of `LANES` or `PRODUCTS_LANES` output channels together, tap by tap; then the remaining channels
    singly. With groups each channel has separate inputs and stands alone."""
    if groups_of(net, op) > 1:
        return weights
    lanes, of_channels = PRODUCTS_LANES if core.products else LANES, weights.reshape(len(weights), -1)
    whole = len(weights) - len(weights) % lanes
    blocks = of_channels[:whole].reshape(-1, lanes, of_channels.shape[1])
    arranged = np.concatenate([blocks.swapaxes(1, 2).ravel(), of_channels[whole:].ravel()])
    return (arranged.astype(np.int16) + _MAGNITUDE).astype(np.uint8) if core.products else arranged


def zero_is_in_bias(net: Net, op: Op) -> bool:
    """True if the bias includes the zero point's share: every sum has all taps, and no partial sum overflows."""
    if not isinstance(op.attributes, Conv2d | Dense) or any(getattr(op.attributes, "padding", ())):
        return False
    return _largest_sum(net, op) < 1 << 31


def in_one_step(net: Net, op: Op) -> FastRequantization | None:
    """The requantisation by the high half of one product, or None if shifts or sums are too large."""
    factors = requantization(net, op)
    right = exponents(factors)
    if right.min() < 0 or right.max() > _MOST_BITS or _largest_sum(net, op) >= 1 << (31 - PRESCALED):
        return None
    return fast_requantization(factors, quantization(net, op.output).zero_point, smallest_exponents(factors))


def _largest_sum(net: Net, op: Op) -> int:
    """Upper bound of a sum's magnitude, from the number of products."""
    shape, bias = net.tensor(op.inputs[1]).shape, net.constant(op, 2)
    products = prod(shape[1:3] if isinstance(op.attributes, DepthwiseConv2d) else shape[1:])
    begun = 0 if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
    return begun + products * _MAGNITUDE * (_MAGNITUDE + abs(quantization(net, op.inputs[0]).zero_point))


def _bias(net: Net, op: Op) -> np.ndarray | None:
    bias = net.constant(op, 2)
    zero = quantization(net, op.inputs[0]).zero_point if zero_is_in_bias(net, op) else 0
    if zero == 0:
        return bias
    weights = net.constants[op.inputs[1]]
    return (0 if bias is None else bias) - zero * weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int32)
