"""One small converter for each TFLite builtin, and the table of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tflite
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.tflite.emit import Emitter, dequantize, operators
from npukit.frontend.tflite.file import TfliteOp
from npukit.net.tensor import Quantization

Converter = Callable[[Emitter, TfliteOp], None]
Pair = tuple[int, int]


def conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    data, weights = emitter.real(op.inputs[0]), emitter.real(op.inputs[1])
    strides, dilation = _strides(op), _dilation(op)
    shape = emitter.shape(data)
    _, height, width, channels = emitter.shape(weights)
    padding = _padding(op, shape[1:3], (height, width), strides, dilation)
    if channels == 0 or shape[3] % channels:
        raise NpukitError(f"its weights take {channels} channels a group, its input has {shape[3]}")
    product = _convolve(data, weights, strides, padding, dilation, shape[3] // channels)
    _finish(emitter, op, product)


def depthwise_conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    data, strides, dilation = emitter.real(op.inputs[0]), _strides(op), _dilation(op)
    shape = emitter.shape(data)
    _, height, width, _ = emitter.tensor(op.inputs[1]).shape
    padding = _padding(op, shape[1:3], (height, width), strides, dilation)
    _finish(emitter, op, _convolve(data, _depthwise_weights(emitter, op), strides, padding, dilation, shape[3]))


def _depthwise_weights(emitter: Emitter, op: TfliteOp) -> relax.Expr:
    """1HWO as OHW1, which Relax's grouped convolution wants."""
    tensor = emitter.tensor(op.inputs[1])
    moved = relax.const(np.ascontiguousarray(emitter.constant(op.inputs[1]).transpose(3, 1, 2, 0)))
    if tensor.quantization is None:
        return moved
    given = tensor.quantization
    axis = None if given.axis is None else 0
    return emitter.emit(dequantize(moved, Quantization(given.scales, given.zero_points, axis), tensor.dtype))


def _convolve(
    data: relax.Expr, weights: relax.Expr, strides: Pair, padding: tuple[int, ...], dilation: Pair, groups: int
) -> relax.Expr:
    return operators.nn.conv2d(
        data, weights, strides, padding, dilation, groups, data_layout="NHWC", kernel_layout="OHWI"
    )


def fully_connected(emitter: Emitter, op: TfliteOp) -> None:
    if op.options.get("WeightsFormat"):
        raise NpukitError("its weights are in a shuffled format")
    data, weights = emitter.real(op.inputs[0]), emitter.real(op.inputs[1])
    features = emitter.shape(weights)[1]
    if not op.options.get("KeepNumDims") and len(emitter.shape(data)) != 2:
        data = operators.reshape(data, (-1, features))
    _finish(emitter, op, operators.matmul(emitter.emit(data), operators.permute_dims(weights, [1, 0])))


def _finish(emitter: Emitter, op: TfliteOp, product: relax.Expr) -> None:
    """Bias, activation, result of a convolution or dense op."""
    result = emitter.emit(product)
    if len(op.inputs) > 2 and op.inputs[2] >= 0:
        result = emitter.emit(operators.add(result, _bias(emitter, op)))
    emitter.define_real(op.outputs[0], _activated(op, result))


def _bias(emitter: Emitter, op: TfliteOp) -> relax.Expr:
    """The bias in real numbers; its scale is the product of the input's and the weights', stated or not."""
    data, weights, bias = (emitter.tensor(index) for index in op.inputs[:3])
    if bias.dtype == "float32" or data.quantization is None or weights.quantization is None:
        return emitter.value(op.inputs[2])
    scales = tuple(data.quantization.scale * scale for scale in weights.quantization.scales)
    quantization = Quantization(scales, (0,) * len(scales), None if len(scales) == 1 else 0)
    return emitter.emit(dequantize(emitter.value(op.inputs[2]), quantization, bias.dtype))


def add(emitter: Emitter, op: TfliteOp) -> None:
    first, second = (emitter.real(index) for index in op.inputs)
    emitter.define_real(op.outputs[0], _activated(op, emitter.emit(operators.add(first, second))))


def average_pool_2d(emitter: Emitter, op: TfliteOp) -> None:
    _pool(emitter, op, operators.nn.avg_pool2d)


def max_pool_2d(emitter: Emitter, op: TfliteOp) -> None:
    _pool(emitter, op, operators.nn.max_pool2d)


def _pool(emitter: Emitter, op: TfliteOp, pool: Any) -> None:
    data = emitter.real(op.inputs[0])
    window, strides = (op.options["FilterHeight"], op.options["FilterWidth"]), _strides(op)
    padding = _padding(op, emitter.shape(data)[1:3], window, strides, (1, 1))
    pooled = emitter.emit(pool(data, pool_size=window, strides=strides, padding=padding, layout="NHWC"))
    emitter.define_real(op.outputs[0], _activated(op, pooled))


def reshape(emitter: Emitter, op: TfliteOp) -> None:
    given = emitter.tensor(op.inputs[1]).value if len(op.inputs) > 1 else op.options["NewShapeAsNumpy"]
    shape = emitter.tensor(op.outputs[0]).shape if given is None else np.ravel(given).tolist()
    emitter.define_real(op.outputs[0], operators.reshape(emitter.real(op.inputs[0]), list(shape)))


def softmax(emitter: Emitter, op: TfliteOp) -> None:
    data, beta = emitter.real(op.inputs[0]), op.options["Beta"]
    if beta != 1:
        data = emitter.emit(operators.multiply(data, relax.const(float(beta), "float32")))
    emitter.define_real(op.outputs[0], operators.nn.softmax(data, axis=-1))


def _strides(op: TfliteOp) -> Pair:
    return _positive("stride", op.options["StrideH"], op.options["StrideW"])


def _dilation(op: TfliteOp) -> Pair:
    return _positive("dilation", op.options["DilationHFactor"], op.options["DilationWFactor"])


def _positive(what: str, height: int, width: int) -> Pair:
    if min(height, width) < 1:
        raise NpukitError(f"its {what} is {height} x {width}")
    return height, width


def _padding(
    op: TfliteOp, size: tuple[int, ...], window: tuple[int, ...], strides: Pair, dilation: Pair
) -> tuple[int, int, int, int]:
    """Top, left, bottom, right; SAME puts the odd one at the end."""
    if op.options["Padding"] == tflite.Padding.VALID:
        return 0, 0, 0, 0
    totals = [_same(*sizes) for sizes in zip(size, window, strides, dilation, strict=True)]
    top, left = (total // 2 for total in totals)
    return top, left, totals[0] - top, totals[1] - left


def _same(size: int, window: int, stride: int, dilation: int) -> int:
    outputs = -(-size // stride)
    return max((outputs - 1) * stride + (window - 1) * dilation + 1 - size, 0)


def _activated(op: TfliteOp, expression: relax.Expr) -> relax.Expr:
    kind = op.options.get("FusedActivationFunction", tflite.ActivationFunctionType.NONE)
    if kind == tflite.ActivationFunctionType.NONE:
        return expression
    if kind == tflite.ActivationFunctionType.RELU:
        return operators.nn.relu(expression)
    if kind not in _CLIPS:
        raise NpukitError(f"its fused activation (number {kind}) has no int8 form")
    return operators.clip(expression, *_CLIPS[kind])


_CLIPS = {
    tflite.ActivationFunctionType.RELU6: (0, 6),
    tflite.ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
}

CONVERTERS: Mapping[str, Converter] = {
    "ADD": add,
    "AVERAGE_POOL_2D": average_pool_2d,
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "FULLY_CONNECTED": fully_connected,
    "MAX_POOL_2D": max_pool_2d,
    "RESHAPE": reshape,
    "SOFTMAX": softmax,
}
