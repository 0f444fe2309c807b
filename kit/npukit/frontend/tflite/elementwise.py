"""Elementwise ops, pools and reductions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import pi
from typing import Any

import numpy as np
import tflite
from tvm import relax, topi

from npukit.errors import NpukitError
from npukit.frontend.fold import value_of
from npukit.frontend.tflite import wide
from npukit.frontend.tflite.emit import Converter, Emitter, operators
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.windows import activated, finite, padding_of, strides_of, window_of
from npukit.net.importer.expressions import callee
from npukit.net.limits import OPERANDS


def binary(name: str) -> Converter:
    """The converter of a binary op, perhaps with a fused activation. `name`: Relax's name for the op."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        first, second = (emitter.real(index) for index in op.inputs)
        result = emitter.emit(getattr(operators, name)(first, second))
        emitter.define_real(op.outputs[0], activated(op, result))

    return convert


def unary(function: Callable[[Any], Any]) -> Converter:
    """The converter of a unary op."""
    return lambda emitter, op: emitter.define_real(op.outputs[0], function(emitter.real(op.inputs[0])))


def clip(low: float, high: float) -> Converter:
    return unary(lambda real: operators.clip(real, low, high))


def hard_swish(real: relax.Expr) -> relax.Expr:
    gate = operators.clip(operators.add(real, relax.const(3.0, "float32")), 0, 6)
    return operators.multiply(real, operators.divide(gate, relax.const(6.0, "float32")))


def elu(real: relax.Expr) -> relax.Expr:
    one = relax.const(1.0, "float32")
    negative = operators.subtract(operators.exp(operators.minimum(real, relax.const(0.0, "float32"))), one)
    return operators.add(operators.nn.relu(real), negative)


def gelu(emitter: Emitter, op: TfliteOp) -> None:
    unary(operators.nn.gelu_tanh if op.options.get("Approximate") else operators.nn.gelu)(emitter, op)


def leaky_relu(emitter: Emitter, op: TfliteOp) -> None:
    slope = finite(op, "Alpha")
    unary(lambda real: operators.nn.leakyrelu(real, slope))(emitter, op)


def prelu(emitter: Emitter, op: TfliteOp) -> None:
    """PReLU. Relax's slopes lie along a single axis; TFLite's usually lie along the channels."""
    data, slopes = (emitter.real(index) for index in op.inputs)
    shape = emitter.shape(slopes)
    if any(size != 1 for size in shape[:-1]):
        raise NpukitError(f"its slopes have the shape {list(shape)}; npukit reads one slope a channel")
    flat = emitter.emit(operators.reshape(slopes, [shape[-1]]))
    emitter.define_real(op.outputs[0], operators.nn.prelu(data, flat, len(emitter.shape(data)) - 1))


def softmax(emitter: Emitter, op: TfliteOp) -> None:
    data, beta = emitter.real(op.inputs[0]), finite(op, "Beta")
    if beta <= 0:
        raise NpukitError(f"its Beta is {beta}, not above 0")
    if beta != 1:
        data = emitter.emit(operators.multiply(data, relax.const(beta, "float32")))
    emitter.define_real(op.outputs[0], operators.nn.softmax(data, axis=-1))


def requantize(emitter: Emitter, op: TfliteOp) -> None:
    """QUANTIZE and DEQUANTIZE: the same numbers, stored as the output declares. Only constants may be float16."""
    if emitter.tensor(op.inputs[0]).dtype == "float16":
        emitter.fold(op.outputs[0], emitter.constant(op.inputs[0]).astype(np.float32))
        return
    kinds = {emitter.tensor(index).dtype for index in (op.inputs[0], op.outputs[0])}
    if "float32" not in kinds and not kinds <= {"int8", "uint8"}:
        wide.requantize(emitter, op)
        return
    emitter.define_real(op.outputs[0], emitter.real(op.inputs[0]))


def dequantize_in_float(emitter: Emitter, op: TfliteOp) -> None:
    """DEQUANTIZE in a float model, whose tables may be int8."""
    rows = None if emitter.tensor(op.inputs[0]).dtype == "float16" else _of_table(emitter, op.inputs[0])
    if rows is None:
        requantize(emitter, op)
    else:
        emitter.define_real(op.outputs[0], rows)


def _of_table(emitter: Emitter, index: int) -> Any:
    """The real numbers of rows of a constant table, before they are quantised again; None for other tensors."""
    quantised: Any = emitter.defined(emitter.values.get(index))
    taken: Any = emitter.defined(quantised.args[0]) if callee(quantised) == "quantize" else None
    table: Any = emitter.defined(taken.args[0]) if callee(taken) == "take" else None
    return quantised.args[0] if callee(table) == "dequantize" and value_of(table.args[0]) is not None else None


def pool(name: str) -> Converter:
    """The converter of a pool. `name`: Relax's name for the op."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        data, strides, window = emitter.real(op.inputs[0]), strides_of(op), window_of(op)
        padding = padding_of(op, emitter.shape(data)[1:3], window, strides, (1, 1))
        function = getattr(operators.nn, name)
        pooled = emitter.emit(function(data, pool_size=window, strides=strides, padding=padding, layout="NHWC"))
        emitter.define_real(op.outputs[0], activated(op, pooled))

    return convert


def reduction(name: str) -> Converter:
    """The converter of a reduction over axes. `name`: Relax's name for the op."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        axes, keep = emitter.integers(op.inputs[1]), bool(op.options.get("KeepDims"))
        emitter.define_real(op.outputs[0], getattr(operators, name)(emitter.real(op.inputs[0]), axes, keep))

    return convert


def place_of(name: str) -> Converter:
    """The converter of ARG_MAX or ARG_MIN. `name`: Relax's name for the op."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        (axis,) = emitter.integers(op.inputs[1])
        found = emitter.emit(getattr(operators, name)(emitter.real(op.inputs[0]), axis))
        wanted = "int64" if op.options.get("OutputType") == tflite.TensorType.INT64 else "int32"
        emitter.define(op.outputs[0], operators.astype(found, wanted))

    return convert


def of_truth(name: str) -> Converter:
    """The converter of a comparison or logical function, with a Boolean result. `name`: Relax's name for the op."""
    return lambda emitter, op: emitter.define(
        op.outputs[0], getattr(operators, name)(*(emitter.real(index) for index in op.inputs))
    )


def select(emitter: Emitter, op: TfliteOp) -> None:
    condition, *choices = op.inputs
    chosen = operators.where(emitter.value(condition), *(emitter.real(index) for index in choices))
    emitter.define_real(op.outputs[0], chosen)


def atan2(emitter: Emitter, op: TfliteOp) -> None:
    """The angle of a point (x, y). Inputs: y, x."""
    y, x = (emitter.emit(emitter.real(index)) for index in op.inputs)
    zero, one = (relax.const(each, "float32") for each in (0.0, 1.0))
    is_low, is_left, on_axis = (
        emitter.emit(each) for each in (operators.less(y, zero), operators.less(x, zero), operators.equal(x, zero))
    )
    slope = emitter.emit(operators.divide(y, operators.where(on_axis, one, x)))
    turn, quarter = (
        operators.where(is_low, relax.const(-each, "float32"), relax.const(each, "float32")) for each in (pi, pi / 2)
    )
    aside = emitter.emit(operators.add(operators.atan(slope), operators.where(is_left, turn, zero)))
    upright = emitter.emit(operators.where(operators.equal(y, zero), zero, quarter))
    emitter.define_real(op.outputs[0], operators.where(on_axis, upright, aside))


def local_response_normalization(emitter: Emitter, op: TfliteOp) -> None:
    """Data divided by a power of the sum of squares of neighbouring channels."""
    radius, bias, alpha, beta = (op.options[name] for name in ("Radius", "Bias", "Alpha", "Beta"))
    OPERANDS.check(size := 2 * int(radius) + 1, "its window")
    data = emitter.emit(emitter.real(op.inputs[0]))
    axis = len(emitter.shape(data)) - 1
    loops = partial(topi.nn.lrn, size=size, axis=axis, alpha=alpha * size, beta=beta, bias=bias)  # of means
    emitter.define_real(op.outputs[0], emitter.loops(loops, data, "local_response_normalization"))


def add_n(emitter: Emitter, op: TfliteOp) -> None:
    total, *rest = (emitter.real(index) for index in op.inputs)
    for each in rest:
        total = emitter.emit(operators.add(total, each))
    emitter.define_real(op.outputs[0], total)


def squared_difference(emitter: Emitter, op: TfliteOp) -> None:
    first, second = (emitter.real(index) for index in op.inputs)
    emitter.define_real(op.outputs[0], operators.square(emitter.emit(operators.subtract(first, second))))
