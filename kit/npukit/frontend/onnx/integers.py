"""ONNX's arithmetic on integers, and scales that are computed at run time: what is quantised dynamically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.onnx.conv import same_pads
from npukit.frontend.onnx.values import known, padded

OnnxOpConverter: Any = onnx_frontend.OnnxOpConverter
operators: Any = relax.op

CONVOLUTIONS = {3: ("conv1d", "NCW", "OIW"), 4: ("conv2d", "NCHW", "OIHW"), 5: ("conv3d", "NCDHW", "OIDHW")}
"""Relax's operator by rank, and the layouts of data and weights."""


class ConvInteger(OnnxOpConverter):
    """x, w, zero point of x, zero points of w; the result is int32."""

    @classmethod
    def _impl_v10(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data, weights, zero, zeros = padded(inputs, 4)
        rank = len(data.ty.shape)
        mode = attr.get("auto_pad", b"NOTSET")
        pads = attr.get("pads", 0)
        if mode in (b"SAME_UPPER", b"SAME_LOWER"):
            pads = same_pads([data, weights], attr, lower=mode == b"SAME_LOWER")
        name, layout, kernel_layout = CONVOLUTIONS[rank]
        return getattr(operators.nn, name)(
            _centred(bb, data, zero, params, []),
            _centred(bb, weights, zeros, params, [1] * (rank - 1)),
            attr.get("strides", 1),
            pads,
            attr.get("dilations", 1),
            attr.get("group", 1),
            data_layout=layout,
            kernel_layout=kernel_layout,
            out_dtype="int32",
        )


class MatMulInteger(OnnxOpConverter):
    """a, b, zero points of a's rows, zero points of b's columns; the result is int32."""

    @classmethod
    def _impl_v10(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        first, second, zero, zeros = padded(inputs, 4)
        operands = _centred(bb, first, zero, params, [1]), _centred(bb, second, zeros, params, [])
        return operators.matmul(*operands, out_dtype="int32")


def _centred(bb: Any, integers: Any, zero: Any, params: Any, behind: list[int]) -> Any:
    """Integers less their zero point; a vector of zero points stands before axes of the sizes `behind`."""
    value, offset = known(integers, params), np.zeros((), np.int8) if zero is None else known(zero, params)
    if offset is None:
        amount = _vector_before(bb, bb.emit(operators.astype(zero, "int16")), behind)
    else:
        amount = relax.const(_before(offset.astype(np.int16), behind))
    if value is None or offset is None:
        return bb.emit(operators.subtract(operators.astype(integers, "int16"), amount))
    return relax.const(_narrow(value.astype(np.int16) - _before(offset.astype(np.int16), behind)))


def _vector_before(bb: Any, offset: Any, behind: list[int]) -> Any:
    if len(offset.ty.shape) != 1:
        return offset
    return bb.emit(operators.reshape(offset, [int(offset.ty.shape[0]), *behind]))


def _before(offset: np.ndarray, behind: list[int]) -> np.ndarray:
    return offset.reshape(-1, *behind) if offset.ndim == 1 else offset


def _narrow(value: np.ndarray) -> np.ndarray:
    """The same integers in as few bits as hold them."""
    return value.astype(np.int8) if value.min() >= -128 and value.max() <= 127 else value


class DynamicQuantizeLinear(OnnxOpConverter):
    """uint8, with the scale and zero point of these very numbers. As ONNX Runtime, all zeros have scale 1."""

    @classmethod
    def _impl_v11(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data, (zero, one, steps) = inputs[0], (relax.const(value, "float32") for value in (0.0, 1.0, 255.0))
        high = bb.emit(operators.maximum(operators.max(data), zero))
        low = bb.emit(operators.minimum(operators.min(data), zero))
        spread = bb.emit(operators.subtract(high, low))
        scale = bb.emit(operators.where(operators.equal(spread, zero), one, operators.divide(spread, steps)))
        begin = operators.subtract(zero, operators.divide(low, scale))
        offset = bb.emit(operators.round(operators.clip(begin, 0, 255)))
        moved = operators.add(operators.round(operators.divide(data, scale)), offset)
        integers = bb.emit(operators.astype(operators.clip(moved, 0, 255), "uint8"))
        return relax.Tuple([integers, scale, bb.emit(operators.astype(offset, "uint8"))])


class QuantizeLinear(OnnxOpConverter):
    """Relax's own where scales are known, else arithmetic."""

    @classmethod
    def _impl_v10(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data, scale, zero = padded(inputs, 3)
        dtype = _quantised_type(attr, zero)
        zero = relax.const(np.zeros((), dtype)) if zero is None else zero
        if _is_known([scale, zero], attr, params):
            return operators.quantize(data, scale, zero, axis=_axis(attr, data), out_dtype=dtype)
        limits, (scale, zero) = np.iinfo(dtype), _spread(bb, data, attr, params, scale, zero)
        steps = operators.add(operators.round(operators.divide(data, scale)), operators.astype(zero, "float32"))
        return operators.astype(operators.clip(steps, float(limits.min), float(limits.max)), dtype)


class DequantizeLinear(OnnxOpConverter):
    """Relax's own where scales are known, one for a tensor or for each channel, else arithmetic."""

    @classmethod
    def _impl_v10(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data, scale, zero = padded(inputs, 3)
        zero = relax.const(np.zeros((), str(data.ty.dtype))) if zero is None else zero
        if _is_known([scale, zero], attr, params):
            return operators.dequantize(data, scale, zero, axis=_axis(attr, data), out_dtype="float32")
        scale, zero = _spread(bb, data, attr, params, scale, zero)
        real = (bb.emit(operators.astype(each, "float32")) for each in (data, zero))
        return operators.multiply(operators.subtract(*real), scale)


def _quantised_type(attr: Any, zero: Any) -> str:
    stated = attr.get("output_dtype", 0)
    dtype = onnx_frontend.get_type(stated) if stated else "uint8" if zero is None else str(zero.ty.dtype)
    if dtype not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise NpukitError(f"it quantises to {dtype}; npukit computes in int8", tries=["quantise to int8 or uint8"])
    return dtype


def _is_known(ends: Sequence[Any], attr: Any, params: Any) -> bool:
    """True if there is a scale and zero point for the tensor or for each channel, known now."""
    return not attr.get("block_size", 0) and all(known(each, params) is not None for each in ends)


def _axis(attr: Any, data: Any) -> int:
    rank, axis = len(data.ty.shape), int(attr.get("axis", 1))
    return 0 if rank <= 1 else axis % rank


def _spread(bb: Any, data: Any, attr: Any, params: Any, *ends: Any) -> list[Any]:
    """Scale and zero point as they meet the data: for each block repeated, for each channel along its axis."""
    return [bb.emit(_spread_one(data, attr, known(each, params), each)) for each in ends]


def _spread_one(data: Any, attr: Any, value: np.ndarray | None, end: Any) -> Any:
    shape, axis, block = [int(size) for size in data.ty.shape], _axis(attr, data), attr.get("block_size", 0)
    if block and value is None:
        raise NpukitError("it has a scale for each block, which is computed at run time")
    if block and value is not None:
        return relax.const(np.take(np.repeat(value, block, axis), np.arange(shape[axis]), axis))
    if len(end.ty.shape) == 1 and len(shape) > 1:
        return operators.reshape(end, [-1 if place == axis else 1 for place in range(len(shape))])
    return end


INTEGERS: Mapping[str, Any] = {
    "ConvInteger": ConvInteger,
    "DequantizeLinear": DequantizeLinear,
    "DynamicQuantizeLinear": DynamicQuantizeLinear,
    "MatMulInteger": MatMulInteger,
    "QuantizeLinear": QuantizeLinear,
}
