"""Converters for ONNX ops that TVM's importer turns into opaque loops. They emit readable operators instead.

A converter is a function of the builder, a node's inputs and attributes, and the known parameters. TVM offers no
registration of converters. npukit replaces TVM's table of converters during an import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Constant
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.boxes import LEAST, Suppression
from npukit.frontend.boxes import non_max_suppression as boxes_kept
from npukit.frontend.expressions import elu, extremes, place, taken
from npukit.frontend.onnx.deformable import deform_conv
from npukit.frontend.onnx.halves import in_halves
from npukit.frontend.onnx.integers import INTEGER_OPS, conv, conv_transpose
from npukit.frontend.onnx.node import known, known_real, padded, text_of
from npukit.frontend.onnx.recurrent import RECURRENT
from npukit.frontend.onnx.resize import resize
from npukit.net.importer.expressions import shape_of
from npukit.net.limits import OPERANDS

operators: Any = relax.op
tensor_type: Any = relax.TensorType


def clip(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Constant limits become a clamp, other limits a maximum and a minimum. Old opsets have limits as attributes."""
    data, low, high = padded(inputs, 3)
    least = _limit(low, attr.get("min", -np.inf), params)
    most = _limit(high, attr.get("max", np.inf), params)
    if least is not None and most is not None:
        return operators.clip(data, min(least, most), most)
    data = data if low is None else operators.maximum(data, low)
    return data if high is None else operators.minimum(data, high)


def celu(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    alpha = float(attr.get("alpha", 1.0))
    return elu(inputs[0], alpha, steep=1 / alpha)


def _limit(given: Any, default: float, params: Any) -> float | None:
    """A limit of Clip; None if known only at run time."""
    if given is None:
        return float(default)
    value = known(given, params)
    if value is None or value.size != 1:
        return None
    return default if np.isnan(value.item()) else float(value.item())


WITH_SCALES_AS_INPUT = 13
"""An opset whose Resize takes region, scales and sizes as inputs."""
PADDING = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}
"""Relax's name of each mode of padding."""


def pad(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Padding by known amounts uses Relax's own operator. TVM converts everything else."""
    data, pads, value, axes = padded(inputs, 4)
    rank = len(data.ty.shape)
    amounts, level = known(pads, params), known(value, params) if value is not None else np.zeros(())
    places = known(axes, params) if axes is not None else np.arange(rank)
    mode = PADDING.get(text_of(attr, "mode", "constant"))
    if mode is None or amounts is None or level is None or places is None:
        return usual(bb, inputs, attr, params)
    widths = np.zeros((rank, 2), int)
    widths[places] = amounts.reshape(2, -1).T
    return operators.nn.pad(data, widths.ravel().tolist(), mode, float(level.item()))


def gather(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Constant, evenly spaced indices become a slice. Other indices are clamped to the axis."""
    data: Any = inputs[0]
    axis = attr.get("axis", 0)
    if not isinstance(data.ty, tensor_type):
        return usual(bb, inputs, attr, params)
    indices = known(inputs[1], params)
    data = data if isinstance(data, relax.Var | Constant) else bb.emit(data)
    size = int(data.ty.shape[axis])
    if indices is None:  # negative indices count from the end
        given, dtype = inputs[1], str(inputs[1].ty.dtype)
        negative = bb.emit(operators.less(given, relax.const(0, dtype)))
        within = bb.emit(operators.where(negative, operators.add(given, relax.const(size, dtype)), given))
        return operators.take(data, within, axis, mode="clip")
    if isinstance(data, relax.Var) and indices.ndim == 0:
        return place(bb, data, axis, int(indices))
    part = taken(bb, data, axis, indices.tolist()) if isinstance(data, relax.Var) and indices.ndim == 1 else None
    within = np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)
    return operators.take(data, relax.const(within), axis, mode="clip") if part is None else part


def scatter_elements(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Elements in place of elements of the data. TVM converts those at places computed at run time, or added up."""
    data, indices, updates = inputs
    shape, axis, places = shape_of(data), attr.get("axis", 0), known(indices, params)
    if places is None or text_of(attr, "reduction", "none") != "none":
        return usual(bb, inputs, attr, params)
    into: Any = list(np.indices(places.shape))
    into[axis] = places % shape[axis]
    return _in_place(bb, data, into, updates, shape)


def scatter_nd(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Rows in place of rows of the data. TVM converts those at places computed at run time, or added up."""
    data, indices, updates = inputs
    places = known(indices, params)
    if places is None or text_of(attr, "reduction", "none") != "none":
        return usual(bb, inputs, attr, params)
    shape = shape_of(data)[: places.shape[-1]]
    into = np.moveaxis(places, -1, 0) % np.reshape(shape, (-1, *[1] * (places.ndim - 1)))
    return _in_place(bb, data, list(into), updates, shape)


def _in_place(bb: Any, data: Any, into: Sequence[np.ndarray], updates: Any, shape: tuple[int, ...]) -> Any:
    """The data with updates at some rows: each row is taken from the data and the updates, joined. `shape`: the axes of
    the data that rows count. `into`: the places on each of these axes."""
    count, places = prod(shape), np.asarray(np.ravel_multi_index(tuple(into), shape))
    rows = np.arange(count)
    rows[places.ravel()] = count + np.arange(places.size)
    given = zip((data, updates), (count, places.size), strict=True)
    both = [bb.emit(operators.reshape(each, (size, prod(shape_of(data)) // count))) for each, size in given]
    found = bb.emit(operators.take(bb.emit(operators.concat(both, 0)), relax.const(rows), 0, mode="clip"))
    return operators.reshape(found, shape_of(data))


def top_k(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """The largest or least numbers, sorted even if the model does not ask for an order."""
    count = known(inputs[1], params) if len(inputs) > 1 else np.array(attr.get("k", 1))
    if count is None or count.size != 1:
        raise NpukitError("TopK's K is computed at run time, or no single number")
    attr.get("sorted", 1)
    axis, largest = attr.get("axis", -1), bool(attr.get("largest", 1))
    values, places = extremes(bb, bb.normalize(inputs[0]), int(count.item()), axis, largest=largest)
    return relax.Tuple([values, bb.emit(operators.astype(places, "int64"))])


def unsqueeze(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Unsqueeze with known axes. TVM's converter crashes on others."""
    axes = known(inputs[1], params) if len(inputs) > 1 else np.zeros(0, int)
    if axes is None or axes.dtype.kind != "i":
        raise NpukitError("Unsqueeze's axes are computed at run time, or no whole numbers")
    return usual(bb, inputs, attr, params)


def one_hot_codes(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """The second value at the index of each code, else the first. Negative indices count from the end."""
    indices, *ends = inputs
    depth, values = (known(each, params) for each in ends)
    if depth is None or values is None:
        raise NpukitError("OneHot's depth or values are computed at run time")
    rank, count = len(indices.ty.shape) + 1, int(depth.item())
    OPERANDS.check(count, "its depth")
    axis, places = attr.get("axis", -1) % rank, bb.emit(operators.astype(indices, "int64"))
    from_end = bb.emit(operators.add(places, relax.const(count, "int64")))
    negative = bb.emit(operators.less(places, relax.const(0, "int64")))
    apart = bb.emit(operators.expand_dims(bb.emit(operators.where(negative, from_end, places)), axis))
    steps = relax.const(np.arange(count).reshape([-1 if each == axis else 1 for each in range(rank)]))
    return operators.where(bb.emit(operators.equal(apart, steps)), relax.const(values[1]), relax.const(values[0]))


def max_unpool(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Indices are those of the inferred shape, to which a stated shape adds zeros."""
    found = bb.emit(usual(bb, padded(inputs[:2], 3), attr, params))
    if len(inputs) < 3:
        return found
    shape = known(inputs[2], params)
    if shape is None:
        raise NpukitError("MaxUnpool's shape is computed at run time")
    more = shape - np.array([int(size) for size in found.ty.shape])
    return operators.nn.pad(found, np.stack([0 * more, more], 1).ravel().tolist(), "constant", 0.0)


def upsample(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """A Resize without shifts of pixels. Old opsets have the scales as an attribute."""
    scales = inputs[1] if len(inputs) > 1 else relax.const(np.array(attr.get("scales"), np.float32))
    attr["coordinate_transformation_mode"], attr["nearest_mode"] = b"asymmetric", b"floor"
    usual = onnx_frontend.Resize.get_converter(WITH_SCALES_AS_INPUT)
    return resize(usual, bb, [inputs[0], None, scales], attr, params)


def rms_normalization(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """RMS norm. TVM's loops need an axis outside the norm."""
    data, gains = inputs
    if attr.get("axis", -1) % len(data.ty.shape):
        return usual(bb, inputs, attr, params)
    attr["axis"] = 1
    found = usual(bb, [bb.emit(operators.expand_dims(data, 0)), gains], attr, params)
    return operators.squeeze(bb.emit(found), [0])


def roi_align(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    if text_of(attr, "mode", "avg") != "avg":
        raise NpukitError("it takes the largest sample, before or after interpolation: runtimes differ")
    return usual(bb, inputs, attr, params)


def power(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Converts an exponent of another type to the base's type."""
    base, exponent = inputs
    dtype, value = str(base.ty.dtype), known(exponent, params)
    if value is not None:
        exponent = relax.const(value.astype(dtype), dtype)
    elif str(exponent.ty.dtype) != dtype:
        exponent = bb.normalize(operators.astype(exponent, dtype))
    return usual(bb, [base, exponent], attr, params)


def layer_normalization(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Layer norm, if needed with mean and inverse standard deviation, for which TVM's converter returns zeros."""
    data, rank = inputs[0], len(inputs[0].ty.shape)
    norm, *_ = usual(bb, inputs, attr, params)
    if attr["tvm_custom"]["num_outputs"] == 1:
        return norm
    axes = list(range(int(attr.get("axis", -1)) % rank, rank))
    mean = bb.emit(operators.mean(data, axes, keepdims=True))
    variance = bb.emit(operators.mean(operators.square(operators.subtract(data, mean)), axes, keepdims=True))
    epsilon = relax.const(float(attr.get("epsilon", 1e-5)), "float32")
    return relax.Tuple([norm, mean, bb.emit(operators.rsqrt(operators.add(variance, epsilon)))])


def norm_of_groups(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """The norm of each group of channels, or of each channel. Factors of groups (opset 18) are repeated by channel."""
    data, *factors = inputs
    channels, axes = int(data.ty.shape[1]), list(range(2, len(data.ty.shape)))
    groups, epsilon = int(attr.get("num_groups", channels)), float(attr.get("epsilon", 1e-5))
    if int(factors[0].ty.shape[0]) != channels:
        factors = [bb.emit(operators.repeat(each, channels // groups, 0)) for each in factors]
    gains, biases = factors
    return operators.nn.group_norm(data, gains, biases, groups, 1, axes, epsilon)


def batch_normalization(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Batch norm for inference: with known numbers a product and a sum by channel. Raises an error in training mode."""
    if attr.get("training_mode", 0):
        raise NpukitError("it is in training mode", tries=["export the model for inference: model.eval()"])
    attr.get("momentum")  # for training alone
    data, *ends = inputs
    values = [known_real(bb, end, params) for end in ends]
    if any(value is None for value in values) or attr["tvm_custom"]["num_outputs"] != 1:
        return usual(bb, inputs, attr, params)
    gains, biases, means, variances = (np.asarray(value, np.float64) for value in values)
    factors = gains / np.sqrt(variances + attr.get("epsilon", 1e-5))
    shape, dtype = (-1, *(1,) * (len(data.ty.shape) - 2)), str(data.ty.dtype)
    numbers = (each.reshape(shape).astype(dtype) for each in (factors, biases - means * factors))
    factor, addend = (relax.const(each, dtype) for each in numbers)
    return operators.add(bb.emit(operators.multiply(data, factor)), addend)


def non_max_suppression(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """ONNX Runtime's rows, followed by rows of -1 up to the maximum number."""
    boxes, scores, *limits = padded(inputs, 5)
    values = [known(each, params) for each in limits]
    if any(value is None and each is not None for value, each in zip(values, limits, strict=True)):
        raise NpukitError("its limits are computed at run time")
    by_centre = attr.get("center_point_box", 0)
    most, common, threshold = (None if value is None else float(np.float32(value.item())) for value in values)
    limits = Suppression(int(most or 0), common or 0.0, LEAST if threshold is None else threshold, by_centre)
    return boxes_kept(bb, boxes, scores, limits)


OWN: Mapping[str, Callable[..., Any]] = {
    "Celu": celu,
    "Clip": clip,
    "DeformConv": deform_conv,
    **dict.fromkeys(("GroupNormalization", "InstanceNormalization"), norm_of_groups),
    "Max": lambda bb, inputs, attr, params: reduce(operators.maximum, inputs),
    "Min": lambda bb, inputs, attr, params: reduce(operators.minimum, inputs),
    "NonMaxSuppression": non_max_suppression,
    "OneHot": one_hot_codes,
    "TopK": top_k,
    "Upsample": upsample,
    **INTEGER_OPS,
    **RECURRENT,
}
"""Converters in place of TVM's."""

AROUND: Mapping[str, Callable[..., Any]] = {
    "BatchNormalization": batch_normalization,
    "Conv": lambda usual, *given: in_halves(partial(conv, usual), *given),
    "ConvTranspose": conv_transpose,
    "Gather": gather,
    "Gemm": in_halves,
    "LayerNormalization": layer_normalization,
    "MatMul": in_halves,
    "MaxUnpool": max_unpool,
    "Pad": pad,
    "Pow": power,
    "RMSNormalization": rms_normalization,
    "Resize": resize,
    "RoiAlign": roi_align,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Unsqueeze": unsqueeze,
}
"""Converters around TVM's. The first argument is the converter of TVM."""


class _Entry:
    """An entry of TVM's table of converters: gives the function for an opset."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_converter(self, opset: int) -> Callable[..., Any]:
        if self.name in OWN:
            return OWN[self.name]
        return partial(AROUND[self.name], getattr(onnx_frontend, self.name).get_converter(opset))


CONVERTERS = {name: _Entry(name) for name in (*OWN, *AROUND)}


@contextmanager
def readable_converters() -> Iterator[None]:
    """Replaces TVM's table of converters within the context."""
    table = onnx_frontend._get_convert_map
    onnx_frontend._get_convert_map = lambda: {**table(), **CONVERTERS}
    try:
        yield
    finally:
        onnx_frontend._get_convert_map = table
