"""Reference of average and maximum pools. Padding never counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, MaxPool
from npukit.net.reference.window import merge_cases, padded, split_cases, taps


def average_pool(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.attributes, net.tensor(op.output).shape
    assert isinstance(attributes, AveragePool)
    images = merge_cases(operands[0])
    counts = window_sums(np.ones_like(images[:1, :, :, :1]), attributes, shape)
    sums = window_sums(images, attributes, shape)
    means = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
    return split_cases(np.clip(means, *attributes.clamp).astype(np.int8), shape)


def window_sums(images: np.ndarray, attributes: AveragePool, shape: tuple[int, ...]) -> np.ndarray:
    """The sum of each window; padding adds nothing."""
    source = padded(images, attributes.padding, 0).astype(np.int32)
    met = [tap for _, _, tap in taps(source, attributes.window, attributes.strides, (1, 1), shape[1:3])]
    return np.add.reduce(met, dtype=np.int32)


def max_pool(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.attributes, net.tensor(op.output).shape
    assert isinstance(attributes, MaxPool)
    source = padded(merge_cases(operands[0]), attributes.padding, -128)
    met = [tap for _, _, tap in taps(source, attributes.window, attributes.strides, (1, 1), shape[1:3])]
    return split_cases(np.clip(np.max(met, axis=0), *attributes.clamp).astype(np.int8), shape)
