"""Reference of convolutions, dense layers and matrix products: exact integer sums, then per-channel requantisation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.net import Net, Op, operand_axes
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d, Matmul, Sums, Total, TransposeConv2d
from npukit.net.reference.window import merge_cases, padded, split_cases, taps
from npukit.net.requantize import (
    matmul_rescaling,
    multiply_by_quantized_multiplier,
    quantization,
    requantization,
    rescale,
)

EXACT = 512
"""Number of int8 products that float32 sums exactly, with the zero point subtracted from one factor: 255 * 128 * 512 <
2^24."""
CHUNK_BYTES = 32 << 20
"""Maximum bytes of columns built at a time, for several cases or some rows of a case."""


def conv2d(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.attributes, net.tensor(op.output).shape
    assert isinstance(attributes, Conv2d)
    images = padded(merge_cases(operands[0]), attributes.padding, quantization(net, op.inputs[0]).zero_point)
    bytes_of_row = 8 * shape[2] * operands[1][0].size
    cases, rows = (max(1, CHUNK_BYTES // each) for each in (bytes_of_row * shape[1], bytes_of_row))
    tops = range(0, shape[1], rows)
    parts = [
        np.concatenate([_rows(net, op, images[case : case + cases], operands, top, rows) for top in tops], axis=1)
        for case in range(0, len(images), cases)
    ]
    return split_cases(np.concatenate(parts), shape)


def _rows(net: Net, op: Op, source: np.ndarray, operands: Sequence[np.ndarray], top: int, count: int) -> np.ndarray:
    """Up to `count` rows of the result, from row `top` on."""
    attributes, weights, shape = op.attributes, operands[1], net.tensor(op.output).shape
    assert isinstance(attributes, Conv2d)
    size = min(count, shape[1] - top), shape[2]
    read = source[:, top * attributes.strides[0] :]
    columns = np.stack(
        [tap for _, _, tap in taps(read, weights.shape[1:3], attributes.strides, attributes.dilation, size)], axis=3
    )
    sums = _grouped_product(columns.astype(np.float64) - quantization(net, op.inputs[0]).zero_point, weights)
    return finish(net, op, sums, operands[2:], attributes.clamp)


def _grouped_product(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[image, y, x, tap, channel] times OHWI. float64 holds every sum of int8 products exactly."""
    outputs, inputs = weights.shape[0], weights.shape[3]
    groups = columns.shape[4] // inputs
    matrix = weights.reshape(groups, outputs // groups, -1).astype(np.float64)
    parts = [
        columns[..., group * inputs : (group + 1) * inputs].reshape(-1, matrix.shape[2]) @ matrix[group].T
        for group in range(groups)
    ]
    return np.concatenate(parts, axis=1).astype(np.int64).reshape(*columns.shape[:3], outputs)


def depthwise_conv2d(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.attributes, net.tensor(op.output).shape
    assert isinstance(attributes, DepthwiseConv2d)
    images, weights = merge_cases(operands[0]), operands[1].astype(np.int32)
    zero = quantization(net, op.inputs[0]).zero_point
    source = padded(images, attributes.padding, zero).astype(np.int32) - zero
    source = np.repeat(source, shape[3] // images.shape[3], axis=3)
    sums = np.zeros((len(images), *shape[1:]), np.int32)
    for y, x, tap in taps(source, weights.shape[1:3], attributes.strides, attributes.dilation, shape[1:3]):
        sums += tap * weights[0, y, x]
    return split_cases(finish(net, op, sums, operands[2:], attributes.clamp), shape)


def dense(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Dense)
    data, weights = operands[0], operands[1]
    zero = quantization(net, op.inputs[0]).zero_point
    return finish(net, op, products(data, zero, weights), operands[2:], attributes.clamp)


def products(data: np.ndarray, zero: int, weights: np.ndarray) -> np.ndarray:
    """The product of `data` minus its zero point and the weights. Products of int8 are summed in float32, in exact
    blocks."""
    kind, most = (np.float32, EXACT) if weights.dtype == np.int8 else (np.float64, weights.shape[-1])
    sums = np.zeros((*data.shape[:-1], len(weights)), np.int64)
    for begin in range(0, weights.shape[-1], most):
        part = data[..., begin : begin + most].astype(kind) - kind(zero)
        sums += (part @ weights[:, begin : begin + most].T.astype(kind)).astype(np.int64)
    return sums


def sums(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Partial sums of a convolution or dense layer over the weights' channels, added to earlier sums if any."""
    made = _sums(net, op, operands)
    return made + operands[2] if len(operands) > 2 else made


def _sums(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, weights = op.attributes, operands[1]
    assert isinstance(attributes, Sums)
    zero = quantization(net, op.inputs[0]).zero_point
    data = operands[0][..., attributes.first : attributes.first + weights.shape[-1] * attributes.groups]
    if weights.ndim == 2:
        return ((data.astype(np.float64) - zero) @ weights.T.astype(np.float64)).astype(np.int32)
    shape = net.tensor(op.output).shape
    source = padded(merge_cases(data), attributes.padding, zero)
    found = taps(source, weights.shape[1:3], attributes.strides, attributes.dilation, shape[1:3])
    columns = np.stack([tap for _, _, tap in found], axis=3)
    return split_cases(_grouped_product(columns.astype(np.float64) - zero, weights).astype(np.int32), shape)


def total(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Total)
    *parts, bias, multipliers, shifts = operands
    whole = sum(part.astype(np.int64) for part in parts) + bias.astype(np.int64)
    scaled = multiply_by_quantized_multiplier(whole, multipliers, shifts)
    return np.clip(scaled + quantization(net, op.output).zero_point, *attributes.clamp).astype(np.int8)


def transpose_conv2d(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The transposed convolution. Inputs are scattered to the outputs under their window, then `padding` is cropped."""
    attributes, shape = op.attributes, net.tensor(op.output).shape
    assert isinstance(attributes, TransposeConv2d)
    images, weights = merge_cases(operands[0]), operands[1].astype(np.float64)
    centred = images.astype(np.float64) - quantization(net, op.inputs[0]).zero_point
    top, left, bottom, right = attributes.padding
    height, width = shape[1] + top + max(bottom, 0), shape[2] + left + max(right, 0)
    full = np.zeros((len(images), height, width, shape[3]))
    for y, x, tap in taps(full, weights.shape[1:3], attributes.strides, (1, 1), images.shape[1:3]):
        tap += centred @ weights[:, y, x].T
    kept = full[:, top : top + shape[1], left : left + shape[2]].astype(np.int64)
    return split_cases(finish(net, op, kept, operands[2:], attributes.clamp), shape)


def matmul(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Matmul)
    rank = max(len(net.tensor(name).shape) for name in op.inputs)
    first, second = (
        _aligned(_moved(value, axes), len(net.tensor(name).shape), rank).astype(np.float64)
        - quantization(net, name).zero_point
        for name, value, axes in zip(op.inputs, operands, operand_axes(op), strict=True)
    )
    scaled = rescale(_moved((first @ second).astype(np.int64), attributes.result), matmul_rescaling(net, op))
    return np.clip(scaled + quantization(net, op.output).zero_point, *attributes.clamp).astype(np.int8)


def _aligned(values: np.ndarray, own: int, rank: int) -> np.ndarray:
    """The operand with axes of size 1 inserted after the case axis, up to `rank`. `own`: the operand's rank without
    cases; constants have no case axis."""
    return values if values.ndim == own else values.reshape(len(values), *(1,) * (rank - own), *values.shape[1:])


def _moved(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The transpose of the last axes. Leading case axes stay."""
    cases = values.ndim - len(axes)
    return values.transpose(*range(cases), *(cases + axis for axis in axes)) if axes else values


def finish(net: Net, op: Op, sums: np.ndarray, bias: Sequence[np.ndarray], clamp: tuple[int, int]) -> np.ndarray:
    """The output: bias, requantisation, zero point and clamp applied to accumulators."""
    if bias:
        sums = sums + bias[0].astype(np.int64)
    factors = requantization(net, op)
    scaled = multiply_by_quantized_multiplier(sums, factors.multipliers, factors.shifts)
    return np.clip(scaled + quantization(net, op.output).zero_point, *clamp).astype(np.int8)
