"""Convolutions over images: exact integer sums, then a requantisation of each channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Padding, Pair
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule, of_window
from npukit.net.ops.kind import Example, OpSpec, names
from npukit.net.ops.shapes import Shape, images, merge_cases, padded, split_cases, taps, windows
from npukit.net.requantize import (
    effective_scales,
    exact_scales,
    finished,
    multiply_by_quantized_multiplier,
    output_channel_axis,
    quantization,
    reach,
    refuse_imprecise,
    refuse_wrapping,
    requantization,
)

KERNEL = "constant w: int8[4,1,1,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"
"""The weights of examples: the identity of four channels."""
_DEPTHWISE = "constant w: int8[1,1,1,4] scale 1.0 zero 0 = [1, 1, 1, 1]"

CHUNK_BYTES = 32 << 20
"""Maximum bytes of columns built at a time, for several cases or some rows of a case."""


@dataclass(frozen=True)
class Conv2d(Attributes):
    """inputs: activation, weights OHWI, [bias]. Groups follow from the weights' I."""

    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class DepthwiseConv2d(Attributes):
    """inputs: activation, weights 1HWO, [bias]. The multiplier is O over the input's channels."""

    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class TransposeConv2d(Attributes):
    """inputs: activation, weights OHWI, [bias]. `padding` is cropped from the full result."""

    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


def _filtered(net: Net, op: Op) -> Shape:
    """The shape of a convolution, depthwise or not."""
    told, shape, weights = op.of(Conv2d, DepthwiseConv2d), images(net, op), net.tensor(op.inputs[1]).shape
    if isinstance(told, DepthwiseConv2d):
        fits = len(weights) == 4 and weights[0] == 1 and weights[3] % shape[3] == 0
    else:
        fits = len(weights) == 4 and shape[3] % weights[3] == 0 and weights[0] % (shape[3] // weights[3]) == 0
    if not fits:
        raise NpukitError(f"weights {list(weights)} do not suit an input of {shape[3]} channels")
    rows, columns = windows(shape[1:3], (weights[1], weights[2]), told.strides, told.padding, told.dilation)
    return shape[0], rows, columns, weights[output_channel_axis(op)]


def _transpose_conv2d(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.of(TransposeConv2d), images(net, op), net.tensor(op.inputs[1]).shape
    if len(weights) != 4 or weights[3] != shape[3]:
        raise NpukitError(f"weights {list(weights)} do not suit an input of {shape[3]} channels")
    top, left, bottom, right = attributes.padding
    rows = (shape[1] - 1) * attributes.strides[0] + weights[1] - top - bottom
    columns = (shape[2] - 1) * attributes.strides[1] + weights[2] - left - right
    if min(rows, columns, *attributes.strides) < 1:
        raise NpukitError(f"strides {attributes.strides} and padding {attributes.padding} leave nothing")
    return shape[0], rows, columns, weights[0]


def products_of_a_filter(net: Net, op: Op) -> int:
    return net.tensor(op.output).elements * prod(net.tensor(op.inputs[1]).shape[1:])


def _under_taps(net: Net, op: Op, axis: int) -> AxisRule:
    """The rule of rows or columns of a transposed convolution. Each span has at least one position."""
    attributes, taps = op.of(TransposeConv2d), net.tensor(op.inputs[1]).shape[1 + axis]
    stride, before = attributes.strides[axis], attributes.padding[axis]
    size, made = (net.tensor(name).shape[1 + axis] for name in (op.inputs[0], op.output))
    reached = (
        (max(-(-(place + before - taps + 1) // stride), 0), (place + before) // stride + 1) for place in range(made)
    )
    places = tuple((min(first, size - 1), max(min(end, size), min(first, size - 1) + 1)) for first, end in reached)
    return AxisRule(1 + axis, places=places)


def _window(net: Net, op: Op) -> InputRule:
    attributes = op.of(Conv2d, DepthwiseConv2d)
    kernel = net.tensor(op.inputs[1]).shape[1:3]
    return of_window(kernel, attributes.strides, attributes.padding, attributes.dilation)


def window_of_filter(net: Net, op: Op) -> Shape:
    """Rows, columns and channels of the window of a filter over all channels."""
    return *net.tensor(op.inputs[1]).shape[1:3], net.tensor(op.inputs[0]).shape[-1]


def _keeps_channels(net: Net, op: Op) -> bool:
    return net.tensor(op.output).shape[-1] == net.tensor(op.inputs[0]).shape[-1]


def conv2d(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.of(Conv2d), net.tensor(op.output).shape
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
    attributes, weights, shape = op.of(Conv2d), operands[1], net.tensor(op.output).shape
    size = min(count, shape[1] - top), shape[2]
    read = source[:, top * attributes.strides[0] :]
    columns = np.stack(
        [tap for _, _, tap in taps(read, weights.shape[1:3], attributes.strides, attributes.dilation, size)], axis=3
    )
    sums = grouped_product(columns.astype(np.float64) - quantization(net, op.inputs[0]).zero_point, weights)
    return finish(net, op, sums, operands[2:])


def grouped_product(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
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
    attributes, shape = op.of(DepthwiseConv2d), net.tensor(op.output).shape
    images, weights = merge_cases(operands[0]), operands[1].astype(np.int32)
    zero = quantization(net, op.inputs[0]).zero_point
    source = padded(images, attributes.padding, zero).astype(np.int32) - zero
    source = np.repeat(source, shape[3] // images.shape[3], axis=3)
    sums = np.zeros((len(images), *shape[1:]), np.int32)
    for y, x, tap in taps(source, weights.shape[1:3], attributes.strides, attributes.dilation, shape[1:3]):
        sums += tap * weights[0, y, x]
    return split_cases(finish(net, op, sums, operands[2:]), shape)


def transpose_conv2d(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The transposed convolution. Inputs are scattered to the outputs under their window, then `padding` is cropped."""
    attributes, shape = op.of(TransposeConv2d), net.tensor(op.output).shape
    images, weights = merge_cases(operands[0]), operands[1].astype(np.float64)
    centred = images.astype(np.float64) - quantization(net, op.inputs[0]).zero_point
    top, left, bottom, right = attributes.padding
    height, width = shape[1] + top + max(bottom, 0), shape[2] + left + max(right, 0)
    full = np.zeros((len(images), height, width, shape[3]))
    for y, x, tap in taps(full, weights.shape[1:3], attributes.strides, (1, 1), images.shape[1:3]):
        tap += centred @ weights[:, y, x].T
    kept = full[:, top : top + shape[1], left : left + shape[2]].astype(np.int64)
    return split_cases(finish(net, op, kept, operands[2:]), shape)


def finish(net: Net, op: Op, sums: np.ndarray, bias: Sequence[np.ndarray]) -> np.ndarray:
    """The output: bias, requantisation, zero point and clamp applied to accumulators."""
    if bias:
        sums = sums + bias[0].astype(np.int64)
    factors = requantization(net, op)
    return finished(net, op, multiply_by_quantized_multiplier(sums, factors.multipliers, factors.shifts))


def sums_fit(net: Net, op: Op) -> None:
    """Raise an error if a sum, scaled to the output, can leave 32 bits or is scaled imprecisely."""
    factors, sums = requantization(net, op), _largest_sums(net, op)
    refuse_wrapping(int(np.max(sums << np.maximum(factors.shifts, 0))))
    for used, exact in zip(effective_scales(net, op), exact_scales(net, op), strict=True):
        refuse_imprecise(used, exact, int(sums.max()))


def _largest_sums(net: Net, op: Op) -> np.ndarray:
    """The largest magnitude of each output channel's sum."""
    weights, bias, farthest = net.constants[op.inputs[1]], net.constant(op, 2), reach(net, op.inputs[0])
    axis = output_channel_axis(op)
    others = tuple(each for each in range(weights.ndim) if each != axis)
    magnitudes = np.abs(weights.astype(np.int16)).sum(axis=others, dtype=np.int64) * farthest
    return magnitudes if bias is None else magnitudes + np.abs(bias.astype(np.int64))


OPS = (
    OpSpec(
        Conv2d,
        _filtered,
        conv2d,
        Example("conv2d(x, w)", constants=KERNEL),
        operands=(2, 3),
        weights=True,
        field=lambda net, op: [(AxisRule(0), *_window(net, op), AxisRule())],
        cuttable=lambda net, op: (
            (1, 2, 3) if window_of_filter(net, op)[2] == net.tensor(op.inputs[1]).shape[-1] else ()
        ),
        products=products_of_a_filter,
        names=names("CONV_2D", "Conv QLinearConv STFT"),
        core_cycles=(24, 3.2, 6),
        check=sums_fit,
        window=window_of_filter,
        loops=lambda net, op, output: output.elements * net.tensor(op.inputs[1]).shape[1],
    ),
    OpSpec(
        DepthwiseConv2d,
        _filtered,
        depthwise_conv2d,
        Example("depthwise_conv2d(x, w)", constants=_DEPTHWISE),
        operands=(2, 3),
        weights=True,
        field=lambda net, op: [
            (AxisRule(0), *_window(net, op), AxisRule(3) if _keeps_channels(net, op) else AxisRule())
        ],
        cuttable=lambda net, op: (1, 2, 3) if _keeps_channels(net, op) else (),
        products=lambda net, op: net.tensor(op.output).elements * prod(net.tensor(op.inputs[1]).shape[1:3]),
        names=names("DEPTHWISE_CONV_2D", "Conv QLinearConv"),
        core_cycles=(33, 6.4, 0),
        check=sums_fit,
        window=lambda net, op: (*net.tensor(op.inputs[1]).shape[1:3], net.tensor(op.output).shape[-1]),
    ),
    OpSpec(
        TransposeConv2d,
        _transpose_conv2d,
        transpose_conv2d,
        Example("transpose_conv2d(x, w)", constants=KERNEL),
        operands=(2, 3),
        weights=True,
        field=lambda net, op: [(AxisRule(0), _under_taps(net, op, 0), _under_taps(net, op, 1), AxisRule())],
        products=lambda net, op: net.tensor(op.inputs[0]).elements * prod(net.tensor(op.inputs[1]).shape[:3]),
        names=names("TRANSPOSE_CONV", "ConvTranspose"),
        core_cycles=(35, 8.2, 0),
        check=sums_fit,
        window=window_of_filter,
        steps=lambda net, op, output: (
            net.tensor(op.inputs[1]).elements
            // (net.tensor(op.output).shape[-1] * prod(op.of(TransposeConv2d).strides))
        ),
    ),
)
