"""Reference of ops that average neighbours or whole axes: mean and bilinear resize."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Mean, ResizeBilinear
from npukit.net.requantize import mean_rescaling, quantization, rescale

ONE = 1 << 10
"""Distance between two neighbouring rows or columns, in units of 1/1024."""


def mean(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Mean)
    count = prod(shape[axis] for axis in attributes.axes)
    sums = operands[0].sum(axis=tuple(axis + 1 for axis in attributes.axes), dtype=np.int64, keepdims=True)
    centred = sums - quantization(net, op.inputs[0]).zero_point * count
    scaled = rescale(centred, mean_rescaling(net, op, count))
    return np.clip(scaled + quantization(net, op.output).zero_point, -128, 127).astype(np.int8)


def resize_bilinear(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, ResizeBilinear)
    tall = _blended(operands[0].astype(np.int64), attributes.rows, axis=2)
    total = _blended(tall, attributes.columns, axis=3)
    half = ONE * ONE // 2
    rounded = np.sign(total) * ((np.abs(total) + half) // (ONE * ONE))
    return rounded.astype(operands[0].dtype)


def _blended(data: np.ndarray, places: tuple[tuple[int, int, int], ...], axis: int) -> np.ndarray:
    """Interpolated values along an axis, times 1024."""
    low, high, step = (np.array(part) for part in zip(*places, strict=True))
    steps = step.reshape([-1 if index == axis else 1 for index in range(data.ndim)])
    return data.take(low, axis) * (ONE - steps) + data.take(high, axis) * steps
