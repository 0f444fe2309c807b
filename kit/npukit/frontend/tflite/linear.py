"""Convolutions, dense layers and products of two activations."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np
import tflite
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.expressions import dequantize
from npukit.frontend.tflite import wide_linear
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.wide import by_width
from npukit.frontend.tflite.windows import Pair, activated, dilation_of, padding_of, same_padding, strides_of
from npukit.net.tensor import Quantization

LAYOUTS = {"data_layout": "NHWC", "kernel_layout": "OHWI"}


def _check_zero(emitter: Emitter, weights: int) -> None:
    """Raises an error if int8 weights have a zero point other than 0. TFLite's convolution kernels ignore it."""
    tensor = emitter.tensor(weights)
    if tensor.dtype == "int8" and tensor.quantization is not None and any(tensor.quantization.zero_points):
        raise NpukitError("its int8 weights have a zero point other than 0")


def conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    _check_zero(emitter, op.inputs[1])
    data, weights = emitter.real(op.inputs[0]), emitter.real(op.inputs[1])
    strides, dilation = strides_of(op), dilation_of(op)
    shape = emitter.shape(data)
    _, height, width, channels = emitter.shape(weights)
    padding = padding_of(op, shape[1:3], (height, width), strides, dilation)
    if channels == 0 or shape[3] % channels:
        raise NpukitError(f"its weights take {channels} channels a group, its input has {shape[3]}")
    product = _convolve(data, weights, strides, padding, dilation, shape[3] // channels)
    finish(emitter, op, product)


def depthwise_conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    _check_zero(emitter, op.inputs[1])
    data, strides, dilation = emitter.real(op.inputs[0]), strides_of(op), dilation_of(op)
    shape = emitter.shape(data)
    _, height, width, channels = emitter.tensor(op.inputs[1]).shape
    op.options.check_count("DepthMultiplier", channels // shape[3])
    padding = padding_of(op, shape[1:3], (height, width), strides, dilation)
    # 1HWO as OHW1, the layout of Relax's grouped convolution
    known, order = emitter.known(op.inputs[1]), (3, 1, 2, 0)
    if known is None:
        weights = emitter.emit(operators.permute_dims(emitter.real(op.inputs[1]), order))
    else:
        weights = dequantized_as(emitter, op.inputs[1], known.transpose(order))
    finish(emitter, op, _convolve(data, weights, strides, padding, dilation, shape[3]))


def dequantized_as(emitter: Emitter, index: int, moved: np.ndarray) -> relax.Expr:
    """The real numbers of a constant. `moved`: the values, permuted to have the axis of the scales first."""
    tensor, value = emitter.tensor(index), relax.const(np.ascontiguousarray(moved))
    if tensor.quantization is None or moved.dtype == np.float32:
        return value
    given = tensor.quantization
    axis = None if given.axis is None else 0
    return emitter.emit(dequantize(value, Quantization(given.scales, given.zero_points, axis), tensor.dtype))


def _convolve(
    data: relax.Expr, weights: relax.Expr, strides: Pair, padding: tuple[int, ...], dilation: Pair, groups: int
) -> relax.Expr:
    return operators.nn.conv2d(data, weights, strides, padding, dilation, groups, **LAYOUTS)


def fully_connected(emitter: Emitter, op: TfliteOp) -> None:
    if op.options.get("WeightsFormat"):
        raise NpukitError("its weights are in a shuffled format")
    data, weights = emitter.real(op.inputs[0]), emitter.real(op.inputs[1])
    features = emitter.shape(weights)[1]
    if not op.options.get("KeepNumDims") and len(emitter.shape(data)) != 2:
        data = operators.reshape(data, (-1, features))
    finish(emitter, op, operators.matmul(emitter.emit(data), operators.permute_dims(weights, [1, 0])))


def finish(emitter: Emitter, op: TfliteOp, product: relax.Expr) -> None:
    """Adds bias and activation to a convolution or dense op and defines the result."""
    result = emitter.emit(product)
    if len(op.inputs) > 2 and op.inputs[2] >= 0:
        result = emitter.emit(operators.add(result, bias_of(emitter, *op.inputs[:3])))
    emitter.define_real(op.outputs[0], activated(op, result))


def bias_of(emitter: Emitter, *operands: int) -> relax.Expr:
    """The bias in real numbers. Its scale is the product of the scales of data and weights, whether stated or not."""
    data, weights, bias = (emitter.tensor(index) for index in operands)
    if bias.dtype == "float32" or data.quantization is None or weights.quantization is None:
        return emitter.value(operands[2])
    scales = tuple(data.quantization.scale * scale for scale in weights.quantization.scales)
    quantization = Quantization(scales, (0,) * len(scales), None if len(scales) == 1 else 0)
    return emitter.emit(dequantize(emitter.value(operands[2]), quantization, bias.dtype))


def transpose_conv(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: output shape, weights, data, [bias]. The output's declared shape replaces an unknown first input."""
    wanted = emitter.known(op.inputs[0])
    size = emitter.tensor(op.outputs[0]).shape[1:3] if wanted is None else wanted.tolist()[1:3]
    operands = (op.inputs[2], op.inputs[1], *op.inputs[3:])
    is_valid = op.options["Padding"] == tflite.Padding.VALID
    _transposed(emitter, replace(op, inputs=operands), size, strides_of(op), is_valid)


def mediapipe_transpose_conv(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, weights, bias. Options: padding (1 for SAME, 2 for VALID), strides along a row and a column."""
    padding, right, down = struct.unpack("<3i", op.custom)
    if padding not in (1, 2) or min(right, down) < 1:
        raise NpukitError(f"its options are the padding {padding} and the strides {down} and {right}")
    size = emitter.tensor(op.outputs[0]).shape[1:3]
    _transposed(emitter, op, size, (down, right), padding == 2)


def _transposed(emitter: Emitter, op: TfliteOp, size: Sequence[int], strides: Pair, is_valid: bool) -> None:
    """A transposed convolution of data, weights and perhaps a bias. `size`: height and width of the result."""
    _check_zero(emitter, op.inputs[1])
    window = emitter.tensor(op.inputs[1]).shape[1:3]
    starts = [same_padding(*sides, 1) // 2 for sides in zip(size, window, strides, strict=True)]
    places = size, strides, [0, 0] if is_valid else starts
    by_width(partial(wide_linear.transpose_conv, places=places), partial(_of_reals, places=places))(emitter, op)


def _of_reals(emitter: Emitter, op: TfliteOp, places: tuple[Sequence[int], Pair, Sequence[int]]) -> None:
    data, weights, (size, strides, starts) = emitter.real(op.inputs[0]), emitter.real(op.inputs[1]), places
    window, given = emitter.shape(weights)[1:3], emitter.shape(data)[1:3]
    ends = [
        (side - 1) * stride + extent - start - wanted
        for side, stride, extent, start, wanted in zip(given, strides, window, starts, size, strict=True)
    ]
    padding = (*starts, *(max(end, 0) for end in ends))
    extra = tuple(max(-end, 0) for end in ends)
    finish(emitter, op, operators.nn.conv2d_transpose(data, weights, strides, padding, extra, **LAYOUTS))


def batch_matmul(emitter: Emitter, op: TfliteOp) -> None:
    """A single constant matrix loses its leading axes, and is a dense layer."""
    first, second = (emitter.real(index) for index in op.inputs)
    first = _swapped(emitter, first) if op.options["AdjX"] else first
    second = _swapped(emitter, second) if op.options["AdjY"] else second
    known = emitter.known(op.inputs[1])
    if known is not None and len(emitter.shape(first)) >= known.ndim and matrix_of(known) is not None:
        second = emitter.emit(operators.reshape(second, emitter.shape(second)[-2:]))
    emitter.define_real(op.outputs[0], operators.matmul(first, second))


def matrix_of(value: np.ndarray) -> tuple[int, int] | None:
    """The sizes of a constant's only matrix; None for several matrices."""
    *leading, rows, columns = value.shape
    return (rows, columns) if prod(leading) == 1 else None


def _swapped(emitter: Emitter, matrices: relax.Expr) -> relax.Expr:
    """The matrices with their last two axes exchanged."""
    rank = len(emitter.shape(matrices))
    return emitter.emit(operators.permute_dims(matrices, [*range(rank - 2), rank - 1, rank - 2]))
