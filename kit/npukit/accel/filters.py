"""Filters of convolutions and dense layers in the usual form for hardware: rows of weights, words per channel."""

from __future__ import annotations

import numpy as np

from npukit.accel.interface import Tile
from npukit.net.net import Net, Op
from npukit.net.ops import DepthwiseConv2d
from npukit.net.requantize import requantization


def rows_and_biases(net: Net, op: Op) -> tuple[np.ndarray, np.ndarray]:
    """Weights as [channel][product], biases with the input's zero point folded in. Padding has the zero point."""
    values = net.constants[op.inputs[1]]
    depthwise = isinstance(op.attributes, DepthwiseConv2d)
    weights = values.reshape(-1, values.shape[-1]).T if depthwise else values.reshape(values.shape[0], -1)
    given = net.constant(op, 2)
    bias = np.zeros(len(weights), np.int64) if given is None else given.astype(np.int64)
    return weights, bias - net.tensor(op.inputs[0]).zero_point * weights.astype(np.int64).sum(1)


def tile_filter(tile: Tile) -> tuple[np.ndarray, np.ndarray]:
    """A tile's weights as [channel][product], and int32 words per channel: folded bias, multiplier, shift."""
    chosen = slice(tile.output.box.start[-1], tile.output.box.stop[-1])
    weights, biases = rows_and_biases(tile.net, tile.op)
    factors = requantization(tile.net, tile.op)
    words = (biases[chosen], factors.multipliers[chosen], factors.shifts[chosen])
    return np.ascontiguousarray(weights[chosen]), np.stack(words, axis=1).astype(np.int32)
