"""Layers of int8 weights on float data (dynamic range quantisation), as LiteRT's hybrid kernels compute them.

Each row of a dense layer, or each image, is quantised to int8 at run time. The sums of products are integers, and a
result is the sum times both scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from npukit.frontend.tflite import linear
from npukit.frontend.tflite.elementwise import requantize
from npukit.frontend.tflite.emit import Converter, Converters, Emitter, operators
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.windows import activated, dilation_of, padding_of, strides_of
from npukit.net.importer.expressions import callee

LEAST_ZERO, INT8_SPAN, REACH = -128, 255, 127
"""Zero point of data that are never negative; steps between the ends of a range; largest symmetric integer."""
LEAST_RANGE = 1e-30
"""Smallest range of data that is divided by. All data in a smaller range become 0."""
POSITIVE = ("nn.relu", "nn.relu6", "nn.softmax", "sigmoid", "abs", "square", "exp", "sqrt")
"""Operators whose results are never negative."""
MOVED = ("reshape", "permute_dims", "nn.max_pool2d", "nn.avg_pool2d", "mean", "squeeze", "expand_dims", "strided_slice")
"""Operators whose results are never negative if their data are not."""


@dataclass(frozen=True)
class Quantised:
    """Data as int8. A real number is scale * (integer - zero). `zero`: a number known at import, or an expression."""

    integers: relax.Expr
    scale: relax.Expr
    zero: Any = 0


def hybrid(own: Converter, usual: Converter) -> Converter:
    """The converter `own` for float data and symmetric int8 weights, else `usual`."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        data, weights = (emitter.tensor(index) for index in op.inputs[:2])
        given, known = weights.quantization, emitter.known(op.inputs[1])
        narrow = data.dtype == "float32" and weights.dtype == "int8" and known is not None
        (own if narrow and given and not any(given.zero_points) else usual)(emitter, op)

    return convert


def fully_connected(emitter: Emitter, op: TfliteOp) -> None:
    weights, data = emitter.constant(op.inputs[1]), emitter.real(op.inputs[0])
    if not op.options.get("KeepNumDims") and len(emitter.shape(data)) != 2:
        data = emitter.emit(operators.reshape(data, (-1, weights.shape[1])))
    _dense(emitter, op, data, weights)


def batch_matmul(emitter: Emitter, op: TfliteOp) -> None:
    """A product with a single constant matrix is a dense layer."""
    value, given = emitter.constant(op.inputs[1]), emitter.tensor(op.inputs[1]).quantization
    if linear.matrix_of(value) is None or op.options["AdjX"] or given is None or given.axis is not None:
        linear.batch_matmul(emitter, op)
        return
    matrix = value.reshape(value.shape[-2:])
    _dense(emitter, op, emitter.real(op.inputs[0]), matrix if op.options["AdjY"] else matrix.T)


def _dense(emitter: Emitter, op: TfliteOp, data: relax.Expr, weights: np.ndarray) -> None:
    """Weights are [out, in]."""
    found = _quantised(emitter, data, [len(emitter.shape(data)) - 1], bool(op.options.get("AsymmetricQuantizeInputs")))
    across = relax.const(np.ascontiguousarray(weights.T))
    _finish(emitter, op, found, weights, lambda data: operators.matmul(data, across, out_dtype="int32"))


def conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights are OHWI. Their I determines the number of groups."""
    weights, channels = emitter.constant(op.inputs[1]), emitter.shape(emitter.value(op.inputs[0]))[3]
    _convolution(emitter, op, weights, channels // weights.shape[3])


def depthwise_conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights are 1HWO. There are as many groups as channels."""
    weights, channels = emitter.constant(op.inputs[1]), emitter.shape(emitter.value(op.inputs[0]))[3]
    op.options.check_count("DepthMultiplier", weights.shape[3] // channels)
    _convolution(emitter, op, np.ascontiguousarray(weights.transpose(3, 1, 2, 0)), channels)


def _convolution(emitter: Emitter, op: TfliteOp, weights: np.ndarray, groups: int) -> None:
    """Weights with a scale for each channel take asymmetric data. Zeros around an image are quantised with the image if
    its zero point is known only at run time."""
    data, strides, dilation = emitter.real(op.inputs[0]), strides_of(op), dilation_of(op)
    around = padding_of(op, emitter.shape(data)[1:3], weights.shape[1:3], strides, dilation)
    given = emitter.tensor(op.inputs[1]).quantization
    by_channel = groups > 1 or (given is not None and given.axis is not None)
    if by_channel and any(around) and not _is_positive(emitter, data):
        top, left, bottom, right = around
        data = emitter.emit(operators.nn.pad(data, [0, 0, top, bottom, left, right, 0, 0], "constant", 0.0))
        around = (0, 0, 0, 0)
    held, options = relax.const(weights), {**linear.LAYOUTS, "out_dtype": "int32"}
    windows = strides, around, dilation, groups
    found = _quantised(emitter, data, [2, 3], by_channel)
    _finish(emitter, op, found, weights, lambda data: operators.nn.conv2d(data, held, *windows, **options))


def _quantised(emitter: Emitter, data: relax.Expr, axes: Sequence[int], asymmetric: bool) -> Quantised:
    """Data quantised by the range along `axes`, and for images along their rows too."""
    if not asymmetric:
        reach = _limit(emitter, operators.max, emitter.emit(operators.abs(data)), axes)
        return _steps(emitter, data, reach, REACH, 0)
    high = _limit(emitter, operators.max, data, axes)
    if _is_positive(emitter, data):
        return _steps(emitter, data, high, INT8_SPAN, LEAST_ZERO)
    high = emitter.emit(operators.maximum(high, _number(0)))
    low = emitter.emit(operators.minimum(_limit(emitter, operators.min, data, axes), _number(0)))
    spread = emitter.emit(operators.subtract(high, low))
    inverse = _inverse(emitter, spread, INT8_SPAN)
    begin = operators.subtract(_number(LEAST_ZERO), emitter.emit(operators.multiply(low, inverse)))
    zero = emitter.emit(operators.clip(emitter.emit(operators.round(begin)), -128, 127))
    return _steps(emitter, data, spread, INT8_SPAN, zero)


def _limit(emitter: Emitter, limit: Callable[..., Any], data: relax.Expr, axes: Sequence[int]) -> relax.Expr:
    """The largest or least number of each row of a matrix or of each image. PEs compute rows independently."""
    found = emitter.emit(limit(data, axes, keepdims=True))
    return emitter.emit(limit(found, [1], keepdims=True)) if len(axes) > 1 else found


def _steps(emitter: Emitter, data: relax.Expr, spread: relax.Expr, steps: int, zero: Any) -> Quantised:
    """Data as integers. `spread`: range of the data, which becomes a number of steps."""
    moved = emitter.emit(operators.round(emitter.emit(operators.multiply(data, _inverse(emitter, spread, steps)))))
    if not isinstance(zero, int) or zero:
        moved = emitter.emit(operators.add(moved, _number(zero) if isinstance(zero, int) else zero))
    least = -REACH if steps == REACH else LEAST_ZERO
    integers = emitter.emit(operators.astype(emitter.emit(operators.clip(moved, least, REACH)), "int8"))
    return Quantised(integers, emitter.emit(operators.multiply(spread, _number(1 / steps))), zero)


def _inverse(emitter: Emitter, spread: relax.Expr, steps: int) -> relax.Expr:
    held = emitter.emit(operators.maximum(spread, _number(LEAST_RANGE)))
    return emitter.emit(operators.divide(_number(steps), held))


def _number(value: float) -> relax.Expr:
    return relax.const(float(value), "float32")


def _is_positive(emitter: Emitter, data: relax.Expr) -> bool:
    """True if data are known to be never negative."""
    value = emitter.defined(data)
    while callee(value) in MOVED:
        value = emitter.defined(value.args[0])
    return callee(value) in POSITIVE or (callee(value) == "clip" and float(value.args[1].value) >= 0)


def _finish(
    emitter: Emitter, op: TfliteOp, data: Quantised, weights: np.ndarray, layer: Callable[[relax.Expr], relax.Expr]
) -> None:
    """Defines the result from integer sums. `weights`: the channels of the result are the first axis."""
    integers = data.integers
    if isinstance(data.zero, int) and data.zero:
        wide = emitter.emit(operators.astype(integers, "int16"))
        integers = emitter.emit(operators.subtract(wide, relax.const(data.zero, "int16")))
    sums = emitter.emit(layer(integers))
    if not isinstance(data.zero, int):
        reach = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int32)
        moved = operators.multiply(emitter.emit(operators.astype(data.zero, "int32")), relax.const(reach))
        sums = emitter.emit(operators.subtract(sums, emitter.emit(moved)))
    given = emitter.tensor(op.inputs[1]).quantization
    assert given is not None
    result = emitter.emit(operators.multiply(emitter.emit(operators.astype(sums, "float32")), data.scale))
    result = emitter.emit(operators.multiply(result, relax.const(np.array(given.scales, np.float32))))
    if len(op.inputs) > 2 and op.inputs[2] >= 0:
        result = emitter.emit(operators.add(result, emitter.real(op.inputs[2])))
    emitter.define_real(op.outputs[0], activated(op, result))


def hybrids(usual: Converters) -> Mapping[str, Converter]:
    """The converters of all layers with hybrid kernels; rows of int8 tables stay integers. `usual`: the converters for
    other data and weights."""
    own = {
        "BATCH_MATMUL": batch_matmul,
        "CONV_2D": conv_2d,
        "DEPTHWISE_CONV_2D": depthwise_conv_2d,
        "FULLY_CONNECTED": fully_connected,
    }
    return {kind: hybrid(convert, usual[kind]) for kind, convert in own.items()} | {"DEQUANTIZE": requantize}
