"""Reference of elementwise ops. Each operand has its own quantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Add, Multiply, Quantize, Requantize, Subtract
from npukit.net.requantize import (
    ADD_LEFT_SHIFT,
    add_rescaling,
    product_rescaling,
    quantization,
    rescale,
    scale_ratio,
    subtract_rescaling,
)
from npukit.net.tables import quantised


def add(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    factors = add_rescaling(net, op)
    first, second = (_centred(net, op, operands, index) << ADD_LEFT_SHIFT for index in (0, 1))
    total = rescale(first, factors.first) + rescale(second, factors.second)
    return _finished(net, op, rescale(total, factors.output))


def subtract(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    factors = subtract_rescaling(net, op)
    first, second = (_centred(net, op, operands, index) << ADD_LEFT_SHIFT for index in (0, 1))
    difference = rescale(first, factors.first) - rescale(second, factors.second)
    return _finished(net, op, rescale(difference, factors.output))


def multiply(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    product = _centred(net, op, operands, 0) * _centred(net, op, operands, 1)
    return _finished(net, op, rescale(product, product_rescaling(net, op)))


def minimum(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return np.minimum(*_aligned(net, op, operands))


def maximum(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return np.maximum(*_aligned(net, op, operands))


def prelu(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    data, slopes = _centred(net, op, operands, 0), _centred(net, op, operands, 1)
    negative = rescale(data * slopes, product_rescaling(net, op))
    return _finished(net, op, np.where(data >= 0, rescale(data, scale_ratio(net, op)), negative))


def select(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return np.where(*_aligned(net, op, operands))


def lookup(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    data, table = operands
    return table[data.astype(np.int64) - np.iinfo(data.dtype).min]


def quantize(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    assert isinstance(op.attributes, Quantize)
    value, offset, step = _aligned(net, op, operands)
    zero_point = quantization(net, op.output).zero_point
    return quantised(value, offset, step, zero_point, away=op.attributes.away)


def dequantize(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    scale = np.float32(quantization(net, op.inputs[0]).scale)
    return _centred(net, op, operands, 0).astype(np.float32) * scale


def requantize(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    assert isinstance(op.attributes, Requantize)
    output = net.tensor(op.output)
    limits = np.iinfo(output.dtype)
    moved = rescale(_centred(net, op, operands, 0), scale_ratio(net, op)) + quantization(net, op.output).zero_point
    return np.clip(moved, limits.min, limits.max).astype(output.dtype)


def _aligned(net: Net, op: Op, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Operands that broadcast to the output: axes of size 1 inserted after the case axis, up to the output's rank."""
    rank = len(net.tensor(op.output).shape)
    return [_with_rank(net, name, value, rank) for name, value in zip(op.inputs, operands, strict=True)]


def _with_rank(net: Net, name: str, value: np.ndarray, rank: int) -> np.ndarray:
    if name in net.constants:
        return value
    return value.reshape(len(value), *(1,) * (rank + 1 - value.ndim), *value.shape[1:])


def _centred(net: Net, op: Op, operands: Sequence[np.ndarray], index: int) -> np.ndarray:
    """An operand minus its zero point."""
    value = _aligned(net, op, operands)[index]
    return value.astype(np.int64) - quantization(net, op.inputs[index]).zero_point


def _finished(net: Net, op: Op, scaled: np.ndarray) -> np.ndarray:
    """The scaled result with the output's zero point and clamp applied."""
    attributes = op.attributes
    clamp = attributes.clamp if isinstance(attributes, Add | Subtract | Multiply) else (-128, 127)
    return np.clip(scaled + quantization(net, op.output).zero_point, *clamp).astype(np.int8)
