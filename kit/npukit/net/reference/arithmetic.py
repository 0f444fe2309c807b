"""Element by element, both operands quantised on their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Add
from npukit.net.requantize import ADD_LEFT_SHIFT, add_rescaling, quantization, rescale


def add(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Add)
    factors = add_rescaling(net, op)
    first, second = (_shifted(net, name, value) for name, value in zip(op.inputs, operands, strict=True))
    total = rescale(first, factors.first) + rescale(second, factors.second)
    output = rescale(total, factors.output) + quantization(net, op.output).zero_point
    return np.clip(output, *attributes.clamp).astype(np.int8)


def _shifted(net: Net, name: str, value: np.ndarray) -> np.ndarray:
    return (value.astype(np.int64) - quantization(net, name).zero_point) << ADD_LEFT_SHIFT
