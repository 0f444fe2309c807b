"""ONNX's explicit padding of convolutions, integer arithmetic, and quantisation with scales found at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.onnx.node import known, padded

operators: Any = relax.op

CONVOLUTIONS = {3: ("conv1d", "NCW", "OIW"), 4: ("conv2d", "NCHW", "OIHW"), 5: ("conv3d", "NCDHW", "OIDHW")}
"""Relax's operator by rank, and the layouts of data and weights."""


STEP_ATTRIBUTES = ("strides", "dilations")


FEW_SUMS = 1024
"""Most sums of a layer whose corrections are held for each. An image's corrections outgrow the layer's weights."""

SIGN = 128
"""Difference between a number as uint8 and as int8."""


def conv_integer(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Inputs: x, w, zero point of x, zero points of w. The result is int32."""
    data, weights, zero, zeros = padded(inputs, 4)
    rank, mode, pads = len(data.ty.shape), attr.get("auto_pad", b"NOTSET"), attr.get("pads", 0)
    if mode in (b"SAME_UPPER", b"SAME_LOWER"):
        pads = same_pads([data, weights], attr, lower=mode == b"SAME_LOWER")
    name, layout, kernel_layout = CONVOLUTIONS[rank]
    kernel = _centred(bb, weights, zeros, params, [1] * (rank - 1))
    steps = (attr.get(key, 1) for key in STEP_ATTRIBUTES)
    strides, dilations = ([each] * (rank - 2) if isinstance(each, int) else each for each in steps)
    around = [pads] * 2 * (rank - 2) if isinstance(pads, int) else pads

    groups = attr.get("group", 1)

    def layer(data: Any) -> Any:
        options = {"data_layout": layout, "kernel_layout": kernel_layout, "out_dtype": "int32"}
        parts = [
            getattr(operators.nn, name)(data, part, strides, around, dilations, groups, **options)
            for part in _in_int8(kernel, groups, params)
        ]
        return parts[0] if len(parts) == 1 else operators.subtract(*map(bb.emit, parts))

    reach = _moved_weights(data, zero, kernel, params)
    if reach is None:
        return layer(_centred(bb, data, zero, params, []))
    reach, positions = reach.sum(axis=1, dtype=np.int32), []
    for axis, size in enumerate([int(size) for size in data.ty.shape][2:]):
        ends = around[axis], around[axis + rank - 2]
        inside, like = _kinds(size, ends, strides[axis], np.arange(reach.shape[axis + 1]) * dilations[axis])
        reach = np.moveaxis(np.tensordot(reach, inside.astype(np.int32), ([axis + 1], [1])), -1, axis + 1)
        positions.append(like)
    return _moved(bb, layer(_less_sign(bb, data)), zero, reach, positions)


def _kinds(size: int, around: tuple[int, int], stride: int, taps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The taps on data for each kind of position of a window along an axis, and the kind of each position."""
    places = np.arange(-around[0], size + around[1] - taps[-1], stride)[:, None] + taps
    inside, like = np.unique((places >= 0) & (places < size), axis=0, return_inverse=True)
    return inside, like.ravel()


def _in_int8(weights: Any, groups: int, params: Any) -> list[Any]:
    """Constant weights as int8, or for a convolution of groups as two parts in int8, the second subtracted. Weights of
    uint8 minus a zero point have nine bits. Other weights stay as they are."""
    value = known(weights, params)
    if groups == 1 or value is None or value.dtype == np.int8:
        return [weights]
    first = np.clip(value, -128, 127)
    return [relax.const(part.astype(np.int8)) for part in (first, first - value)]


def matmul_integer(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Inputs: a, b, zero points of a's rows, zero points of b's columns. The result is int32."""
    first, second, zero, zeros = padded(inputs, 4)
    other = _centred(bb, second, zeros, params, [])
    reach = _moved_weights(first, zero, other, params)
    if reach is None:
        return operators.matmul(_centred(bb, first, zero, params, [1]), other, out_dtype="int32")
    sums = operators.matmul(_less_sign(bb, first), other, out_dtype="int32")
    return _moved(bb, sums, zero, reach.sum(-2, dtype=np.int32))


def _moved_weights(data: Any, zero: Any, weights: Any, params: Any) -> np.ndarray | None:
    """The weights of a layer on uint8 data with a single zero point known only at run time; None for other layers. The
    layer's sums are computed in int8, then corrected by the zero point."""
    open_zero = zero is not None and known(zero, params) is None and all(int(size) == 1 for size in zero.ty.shape)
    return known(weights, params) if open_zero and str(data.ty.dtype) == "uint8" else None


def _less_sign(bb: Any, integers: Any) -> Any:
    wide = operators.subtract(operators.astype(integers, "int16"), relax.const(SIGN, "int16"))
    return bb.emit(operators.astype(wide, "int8"))


def _moved(bb: Any, sums: Any, zero: Any, reach: np.ndarray, positions: Sequence[np.ndarray] = ()) -> Any:
    """Sums corrected by the zero point. `reach`: for each kind of position of the window, the total of the weights on
    data. `positions`: the kind of each position, for each axis of an image. Positions away from the edges are alike."""
    begin = operators.subtract(operators.astype(zero, "int32"), relax.const(SIGN, "int32"))
    if reach.shape[0] * prod(map(len, positions)) <= FEW_SUMS:
        reach, positions = reach[np.ix_(np.arange(reach.shape[0]), *positions)] if positions else reach, ()
    amount = bb.emit(operators.multiply(bb.emit(operators.reshape(begin, [])), relax.const(reach, "int32")))
    for axis, kinds in enumerate(positions, 1):
        if reach.shape[axis] > 1:
            amount = bb.emit(operators.take(amount, relax.const(kinds.astype(np.int32)), axis=axis, mode="fast"))
    return operators.subtract(bb.emit(sums), amount)


def _centred(bb: Any, integers: Any, zero: Any, params: Any, behind: list[int]) -> Any:
    """Integers minus their zero point. `behind`: sizes of trailing axes to broadcast a vector of zero points over."""
    value, offset = known(integers, params), np.zeros((), np.int16) if zero is None else known(zero, params)
    if value is None and offset is not None and offset.size == 1 and str(integers.ty.dtype) == "uint8":
        integers, offset = _less_sign(bb, integers), offset.astype(np.int16).reshape(()) - np.int16(SIGN)
    if offset is None:
        amount = bb.emit(operators.astype(zero, "int16"))
        if len(amount.ty.shape) == 1:
            amount = bb.emit(operators.reshape(amount, [int(amount.ty.shape[0]), *behind]))
        return bb.emit(operators.subtract(operators.astype(integers, "int16"), amount))
    offset = offset.astype(np.int16)
    offset = offset.reshape(-1, *behind) if offset.ndim == 1 else offset
    if value is None:
        return bb.emit(operators.subtract(operators.astype(integers, "int16"), relax.const(offset)))
    centred = value.astype(np.int16) - offset
    return relax.const(centred.astype(np.int8) if centred.min() >= -128 and centred.max() <= 127 else centred)


def dynamic_quantize_linear(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Quantises to uint8 with scale and zero point of the data itself. All zeros have scale 1, as in ONNX Runtime."""
    data, (zero, one, steps) = inputs[0], (relax.const(value, "float32") for value in (0.0, 1.0, 255.0))
    high = bb.emit(operators.maximum(operators.max(_of_rows(bb, operators.max, data)), zero))
    low = bb.emit(operators.minimum(operators.min(_of_rows(bb, operators.min, data)), zero))
    spread = bb.emit(operators.subtract(high, low))
    scale = bb.emit(operators.where(operators.equal(spread, zero), one, operators.divide(spread, steps)))
    begin = operators.subtract(zero, operators.divide(low, scale))
    offset = bb.emit(operators.round(operators.clip(begin, 0, 255)))
    moved = operators.add(operators.round(operators.divide(data, scale)), offset)
    integers = bb.emit(operators.astype(operators.clip(moved, 0, 255), "uint8"))
    return relax.Tuple([integers, scale, bb.emit(operators.astype(offset, "uint8"))])


def _of_rows(bb: Any, limit: Any, data: Any) -> Any:
    """The largest or least number of each row, which PEs compute independently. For a single row, the data itself."""
    rank = len(data.ty.shape)
    if rank < 2 or int(data.ty.shape[rank - 2]) == 1:
        return data
    return bb.emit(limit(data, [axis for axis in range(rank) if axis != rank - 2], keepdims=True))


def quantize_linear(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Relax's own operator where scales are known at import, else arithmetic."""
    data, scale, zero = padded(inputs, 3)
    stated = attr.get("output_dtype", 0)
    dtype = onnx_frontend.get_type(stated) if stated else "uint8" if zero is None else str(zero.ty.dtype)
    if dtype not in ("int8", "uint8", "int16", "uint16", "int32"):
        raise NpukitError(f"it quantises to {dtype}; npukit computes in int8", tries=["quantise to int8 or uint8"])
    zero = relax.const(np.zeros((), dtype)) if zero is None else zero
    if _is_known([scale, zero], attr, params):
        return operators.quantize(data, scale, zero, axis=_axis(attr, data), out_dtype=dtype)
    limits, (scale, zero) = np.iinfo(dtype), _spread(bb, data, attr, params, scale, zero)
    steps = operators.add(operators.round(operators.divide(data, scale)), operators.astype(zero, "float32"))
    return operators.astype(operators.clip(steps, float(limits.min), float(limits.max)), dtype)


def dequantize_linear(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Relax's own operator for scales known at import, for the tensor or for each channel; else arithmetic."""
    data, scale, zero = padded(inputs, 3)
    zero = relax.const(np.zeros((), str(data.ty.dtype))) if zero is None else zero
    if _is_known([scale, zero], attr, params):
        return operators.dequantize(data, scale, zero, axis=_axis(attr, data), out_dtype="float32")
    scale, zero = _spread(bb, data, attr, params, scale, zero)
    real = (bb.emit(operators.astype(each, "float32")) for each in (data, zero))
    return operators.multiply(operators.subtract(*real), scale)


def _is_known(ends: Sequence[Any], attr: Any, params: Any) -> bool:
    """True if scale and zero point, for the tensor or for each channel, are known at import."""
    return not attr.get("block_size", 0) and all(known(each, params) is not None for each in ends)


def _axis(attr: Any, data: Any) -> int:
    rank, axis = len(data.ty.shape), int(attr.get("axis", 1))
    return 0 if rank <= 1 else axis % rank


def _spread(bb: Any, data: Any, attr: Any, params: Any, *ends: Any) -> list[Any]:
    """Scale and zero point in shapes that match the data: repeated for each block, or aligned with the channel axis."""
    shape, axis, block = [int(size) for size in data.ty.shape], _axis(attr, data), attr.get("block_size", 0)
    spread = []
    for end in ends:
        value = known(end, params)
        if block and value is None:
            raise NpukitError("it has a scale for each block, which is computed at run time")
        if block and value is not None:
            end = relax.const(np.take(np.repeat(value, block, axis), np.arange(shape[axis]), axis))
        elif len(end.ty.shape) == 1 and len(shape) > 1:
            end = operators.reshape(end, [-1 if place == axis else 1 for place in range(len(shape))])
        spread.append(bb.emit(end))
    return spread


INTEGER_OPS: Mapping[str, Any] = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize_linear,
    "MatMulInteger": matmul_integer,
    "QuantizeLinear": quantize_linear,
}


def conv(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """A convolution with explicit instead of automatic padding. The padding stays an attribute of the operator."""
    if (mode := attr.pop("auto_pad", b"NOTSET")) in (b"SAME_UPPER", b"SAME_LOWER"):
        attr["pads"] = same_pads(inputs, attr, lower=mode == b"SAME_LOWER")
    return usual(bb, inputs, attr, params)


def same_pads(inputs: Any, attr: Any, *, lower: bool) -> list[int]:
    """ONNX's pads: all starts, then all ends. The larger half goes to the end, or to the start if `lower`."""
    totals = [
        max((-(-side // stride) - 1) * stride + (extent - 1) * step + 1 - side, 0)
        for side, extent, stride, step in _windows(inputs, attr)
    ]
    return _halves(totals, lower=lower)


def _windows(inputs: Any, attr: Any) -> list[tuple[int, int, int, int]]:
    """The image's size, and the window's size, stride and dilation, along each axis."""
    size, window = ([int(side) for side in value.ty.shape][2:] for value in inputs[:2])
    strides, dilations = (attr.get(key, [1] * len(size)) for key in ("strides", "dilations"))
    return list(zip(size, window, strides, dilations, strict=True))


def _halves(totals: list[int], *, lower: bool) -> list[int]:
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return large + small if lower else small + large


def conv_transpose(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """A transposed convolution whose result is cropped or padded to the size that the model states."""
    wanted = attr.pop("output_shape", None)
    if wanted is not None:
        lower = attr.pop("auto_pad", b"NOTSET") not in (b"SAME_UPPER", "SAME_UPPER")
        axes = _windows(inputs, attr)
        excess = [
            (side - 1) * stride + (extent - 1) * gap + 1 - int(result)
            for (side, extent, stride, gap), result in zip(axes, wanted[-len(axes) :], strict=True)
        ]
        attr["output_padding"] = [max(-each, 0) for each in excess]
        attr["pads"] = _halves([max(each, 0) for each in excess], lower=lower)
    return usual(bb, inputs, attr, params)
