"""TFLite's SVDF: a dense layer whose results of the last frames are kept, and a filter over these of each unit.

What is kept lies as an image of one row a frame, so that the filter is a convolution by groups.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import tflite
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.qdq import dequantize, quantize
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.fixed_point import clamped, multipliers, requantized, te
from npukit.frontend.tflite.graphs import SVDF_STATE
from npukit.frontend.tflite.linear import bias_of, dequantized_as
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.windows import activated
from npukit.net.tensor import Quantization


def svdf(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, filters of features, filters of frames, [bias], state; outputs: result, new state."""
    if emitter.tensor(op.inputs[SVDF_STATE]).shape[0] != 1 or emitter.tensor(op.inputs[0]).shape[0] not in (0, 1):
        raise NpukitError("it has more than one frame at once")
    if emitter.tensor(op.inputs[SVDF_STATE]).dtype == "int16":
        _in_integers(emitter, op)
    else:
        _in_reals(emitter, op)


def _in_reals(emitter: Emitter, op: TfliteOp) -> None:
    """Emits a dense layer and a convolution: in float, or with a state of 8 bits."""
    data, features, frames, _, state = op.inputs
    fresh = emitter.emit(operators.matmul(emitter.real(data), operators.permute_dims(emitter.real(features), [1, 0])))
    row = emitter.emit(operators.reshape(fresh, (1, 1, 1, -1)))
    emitter.define_real(op.outputs[1], _moved_on(emitter, emitter.real(state), _as_kept(emitter, op, row)))
    kept, rank = emitter.real(op.outputs[1]), op.options["Rank"]
    filters, length = emitter.tensor(frames).shape
    weights = emitter.constant(frames).reshape(filters // rank, rank, length, 1).transpose(0, 2, 3, 1)
    product = operators.nn.conv2d(
        kept, dequantized_as(emitter, frames, weights), groups=filters // rank, data_layout="NHWC", kernel_layout="OHWI"
    )
    result = emitter.emit(product)
    if op.inputs[3] >= 0:
        result = emitter.emit(operators.add(result, bias_of(emitter, state, frames, op.inputs[3])))
    flat = emitter.emit(operators.reshape(result, (1, filters // rank)))
    emitter.define_real(op.outputs[0], activated(op, flat) if _is_float(emitter, op) else flat)
    _check_activation(emitter, op)


def _as_kept(emitter: Emitter, op: TfliteOp, row: relax.Expr) -> relax.Expr:
    """The new row as the state's integers hold it."""
    tensor = emitter.tensor(op.outputs[1])
    if tensor.quantization is None or _is_float(emitter, op):
        return row
    stored = emitter.emit(quantize(row, tensor.quantization, tensor.dtype))
    return emitter.emit(dequantize(stored, tensor.quantization, tensor.dtype))


def _moved_on(emitter: Emitter, state: relax.Expr, row: relax.Expr) -> relax.Expr:
    """The frames but for the oldest, and the new one."""
    length = emitter.shape(state)[1]
    if length == 1:
        return row
    rest = emitter.emit(operators.strided_slice(state, [1], [1], [length]))
    return emitter.emit(operators.concat([rest, row], 1))


def _is_float(emitter: Emitter, op: TfliteOp) -> bool:
    return emitter.tensor(op.inputs[0]).dtype == "float32"


def _check_activation(emitter: Emitter, op: TfliteOp) -> None:
    """Integer kernels take the range of int8 for what ReLU leaves."""
    kind = op.options["FusedActivationFunction"]
    if not _is_float(emitter, op) and kind != tflite.ActivationFunctionType.RELU:
        raise NpukitError("its activation is not ReLU, which alone TFLite's kernels of integers have")


def _in_integers(emitter: Emitter, op: TfliteOp) -> None:
    """Emits loops over integers: with a state of 16 bits, as no other kernel computes it."""
    _check_activation(emitter, op)
    into, weight, filter_, held = (emitter.scale(op.inputs[place]) for place in (0, 1, 2, SVDF_STATE))
    result, frames = emitter.scale(op.outputs[0]), emitter.tensor(op.inputs[2])
    row = emitter.loops(
        partial(_fresh_row, into.zero_point),
        emitter.value(op.inputs[0]),
        "svdf_features",
        emitter.value(op.inputs[1]),
        *multipliers([_factor(into, weight, held)]),
    )
    emitter.define(op.outputs[1], _moved_on(emitter, emitter.value(op.inputs[SVDF_STATE]), row))
    units = frames.shape[0] // op.options["Rank"]
    begin = emitter.value(op.inputs[3]) if op.inputs[3] >= 0 else relax.const(np.zeros(units, np.int32))
    filtered = emitter.loops(
        partial(_filtered, op.options["Rank"], result.zero_point),
        emitter.values[op.outputs[1]],
        "svdf_frames",
        emitter.value(op.inputs[2]),
        begin,
        *multipliers([_factor(held, filter_, result)]),
    )
    emitter.define(op.outputs[0], filtered)


def _factor(first: Quantization, second: Quantization, result: Quantization) -> float:
    """The factor of a sum of products, in single precision as TFLite has it."""
    return float(np.float32(first.scale) * np.float32(second.scale) / np.float32(result.scale))


def _fresh_row(zero_point: int, data: Any, weights: Any, multiplier: Any, shift: Any) -> Any:
    feature = te.reduce_axis((0, weights.shape[1]), "feature")

    def product(filter_: Any) -> Any:
        return te.sum(
            (data[0, feature].astype("int32") - zero_point) * weights[filter_, feature].astype("int32"), axis=feature
        )

    sums = te.compute((weights.shape[0],), product, name="sums")

    def scaled(*place: Any) -> Any:
        return clamped(requantized(sums[place[3]], multiplier[0], shift[0]), "int16")

    return te.compute((1, 1, 1, weights.shape[0]), scaled, name="row")


def _filtered(rank: int, zero_point: int, state: Any, weights: Any, bias: Any, multiplier: Any, shift: Any) -> Any:
    filters, length = weights.shape
    part, frame = te.reduce_axis((0, rank), "part"), te.reduce_axis((0, length), "frame")

    def product(unit: Any) -> Any:
        filter_ = unit * rank + part
        kept, weight = state[0, frame, 0, filter_], weights[filter_, frame]
        return te.sum(kept.astype("int32") * weight.astype("int32"), axis=[part, frame])

    sums = te.compute((filters // rank,), product, name="sums")

    def scaled(_: Any, unit: Any) -> Any:
        return clamped(requantized(sums[unit] + bias[unit], multiplier[0], shift[0]) + zero_point, "int8")

    return te.compute((1, filters // rank), scaled, name="units")
