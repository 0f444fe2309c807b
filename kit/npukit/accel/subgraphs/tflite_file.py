"""A subgraph as a TFLite model, for TFLite compilers. TFLite Micro computes the same integers.

TFLite pads a window as SAME or VALID. Any other padding becomes a separate op here, and also a clamp without a fused
activation in TFLite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tflite

from npukit.accel.geometry import Window, window_of
from npukit.accel.subgraphs.tflite_writer import Model, ModelWriter
from npukit.errors import NpukitError
from npukit.net import ops
from npukit.net.net import Net, Op
from npukit.net.requantize import quantization
from npukit.net.tensor import Quantization, Tensor

_WHOLE = (-128, 127)
_ACTIVATION = tflite.ActivationFunctionType


def subgraph_tflite(net: Net, op: Op) -> bytes:
    """The op's parts as a TFLite file. Raises NpukitError for a kind of op without a TFLite form."""
    model = Model(net.alone(op))
    for part in model.net.ops:
        write = _FORMS.get(type(part.attributes))
        if write is None:
            fact = f"{part.name}: TFLite has no form of {part.kind} here"
            raise NpukitError(fact, tries=["refuse this kind in the plug-in"])
        write(model, part)
    return ModelWriter(model).finish()


# --- windows


def _padded(model: Model, op: Op, filler: int | None) -> tuple[str, int]:
    """The input and TFLite's name of the padding. A padding without a name becomes a separate op."""
    net, window, name = model.net, window_of(model.net, op), op.inputs[0]
    if not any(window.padding):
        return name, tflite.Padding.VALID
    sides = zip(net.tensor(name).shape[1:3], net.tensor(op.output).shape[1:3], strict=True)
    if window.padding == _same([*sides], window):
        return name, tflite.Padding.SAME
    if filler is None:
        raise NpukitError(f"{op.name}: TFLite has no average pool with padding {window.padding}")
    source = model.tensors[name]
    top, left, bottom, right = window.padding
    batch, height, width, channels = source.shape
    shape = (batch, height + top + bottom, width + left + right, channels)
    target = model.between(Tensor(f"{op.name} padded", shape, source.dtype, source.quantization))
    _add_pad(model, op, name, target, [(0, 0), (top, bottom), (left, right), (0, 0)], filler)
    return target, tflite.Padding.VALID


def _same(sides: Sequence[tuple[int, int]], window: Window) -> ops.Padding | None:
    """The SAME padding (top, left, bottom, right), or None if SAME gives another size of the result."""
    each = list(zip(sides, window.kernel, window.strides, window.dilation, strict=True))
    if any(result != -(-size // stride) for (size, result), _, stride, _ in each):
        return None
    totals = [max((result - 1) * s + (k - 1) * d + 1 - size, 0) for (size, result), k, s, d in each]
    top, left = (total // 2 for total in totals)
    return top, left, totals[0] - top, totals[1] - left


def _add_pad(model: Model, op: Op, name: str, target: str, amounts: Sequence[tuple[int, int]], filler: int) -> None:
    source, pads = model.tensors[name], model.numbers(op, "pads", amounts)
    value = np.array([filler], source.dtype)
    constant = model.constant(Tensor(f"{op.name} filler", (1,), source.dtype, source.quantization), value)
    model.add("PADV2", (name, pads, constant), target, "PadV2")


def _filter(model: Model, op: Op, code: str, **options: int) -> None:
    source, padding = _padded(model, op, quantization(model.net, op.inputs[0]).zero_point)
    window = window_of(model.net, op)
    given = {"Padding": padding, "StrideH": window.strides[0], "StrideW": window.strides[1], **options}
    given |= {"DilationHFactor": window.dilation[0], "DilationWFactor": window.dilation[1]}
    _clamped(model, op, code, (source, *_weights(model, op)), given)


def _weights(model: Model, op: Op) -> tuple[str, str]:
    """Weights and biases. TFLite requires biases, with scales."""
    net, weights = model.net, op.inputs[1]
    scales = np.asarray(net.tensor(weights).quantization.scales, np.float32)  # pyright: ignore[reportOptionalMemberAccess]
    scales = np.float32(quantization(net, op.inputs[0]).scale) * scales
    channels = net.tensor(op.output).shape[-1]
    given = net.constant(op, 2)
    value = np.zeros(channels, np.int32) if given is None else given
    known = Quantization(tuple(scales.tolist()), (0,) * len(scales), 0 if len(scales) > 1 else None)
    return weights, model.constant(Tensor(f"{op.name} biases", (channels,), "int32", known), value)


def _conv2d(model: Model, op: Op) -> None:
    _filter(model, op, "CONV_2D")


def _depthwise(model: Model, op: Op) -> None:
    channels, given = (model.net.tensor(name).shape[-1] for name in (op.output, op.inputs[0]))
    _filter(model, op, "DEPTHWISE_CONV_2D", DepthMultiplier=channels // given)


def _dense(model: Model, op: Op) -> None:
    keeps = len(model.net.tensor(op.output).shape) > 2
    _clamped(model, op, "FULLY_CONNECTED", (op.inputs[0], *_weights(model, op)), {"KeepNumDims": keeps})


def _pool(model: Model, op: Op) -> None:
    maximum = isinstance(op.attributes, ops.MaxPool)
    source, padding = _padded(model, op, _WHOLE[0] if maximum else None)
    window, code = window_of(model.net, op), "MAX_POOL_2D" if maximum else "AVERAGE_POOL_2D"
    given = {"Padding": padding, "StrideH": window.strides[0], "StrideW": window.strides[1]}
    given |= {"FilterHeight": window.kernel[0], "FilterWidth": window.kernel[1]}
    _clamped(model, op, code, (source,), given, "Pool2D")


# --- clamps


def _clamped(
    model: Model, op: Op, code: str, inputs: Sequence[str], options: Mapping[str, int] = {}, table: str = ""
) -> None:
    """The operator with its clamp, fused or as operators behind it."""
    clamp: tuple[int, int] = getattr(op.attributes, "clamp", _WHOLE)
    target = model.net.tensor(op.output)
    fused = _fused(clamp, target)
    if fused is not None:
        model.add(code, inputs, op.output, table, FusedActivationFunction=fused, **options)
        return
    names = [f"{op.name} as it is", f"{op.name} from below", op.output]
    for name in names[:-1]:
        model.between(Tensor(name, target.shape, target.dtype, target.quantization))
    model.add(code, inputs, names[0], table, FusedActivationFunction=_ACTIVATION.NONE, **options)
    for index, (limit, kind) in enumerate(zip(clamp, ("MAXIMUM", "MINIMUM"), strict=True)):
        bound = Tensor(f"{op.name} limit {index}", (1,), target.dtype, target.quantization)
        constant = model.constant(bound, np.array([limit], target.dtype))
        model.add(kind, (names[index], constant), names[index + 1], "MaximumMinimum")


def _fused(clamp: tuple[int, int], target: Tensor) -> int | None:
    """TFLite's fused activation with this clamp, or None."""
    known = target.quantization
    if clamp == _WHOLE or known is None:
        return _ACTIVATION.NONE
    zero = known.zero_point
    ends = {_ACTIVATION.RELU: (0.0, None), _ACTIVATION.RELU6: (0.0, 6.0), _ACTIVATION.RELU_N1_TO_1: (-1.0, 1.0)}
    for activation, (low, high) in ends.items():
        least = max(_WHOLE[0], zero + round(low / known.scale))
        most = _WHOLE[1] if high is None else min(_WHOLE[1], zero + round(high / known.scale))
        if (least, most) == clamp:
            return activation
    return None


# --- the rest


def _elementwise(code: str) -> Callable[[Model, Op], None]:
    return lambda model, op: _clamped(model, op, code, op.inputs)


def _plain(code: str, table: str = "") -> Callable[[Model, Op], None]:
    return lambda model, op: model.add(code, op.inputs, op.output, table)


def _reshape(model: Model, op: Op) -> None:
    shape = model.numbers(op, "shape", model.net.tensor(op.output).shape)
    model.add("RESHAPE", (op.inputs[0], shape), op.output)


def _softmax(model: Model, op: Op) -> None:
    model.add("SOFTMAX", op.inputs, op.output, Beta=op.of(ops.Softmax).beta)


def _concat(model: Model, op: Op) -> None:
    model.add("CONCATENATION", op.inputs, op.output, Axis=op.of(ops.Concat).axis)


def _transpose(model: Model, op: Op) -> None:
    model.add("TRANSPOSE", (op.inputs[0], model.numbers(op, "axes", op.of(ops.Transpose).axes)), op.output)


def _mean(model: Model, op: Op) -> None:
    axes = model.numbers(op, "axes", op.of(ops.Mean).axes)
    model.add("MEAN", (op.inputs[0], axes), op.output, "Reducer", KeepDims=True)


def _pad_op(model: Model, op: Op) -> None:
    pad = op.of(ops.Pad)
    _add_pad(model, op, op.inputs[0], op.output, list(zip(pad.before, pad.after, strict=True)), pad.value)


def _slice(model: Model, op: Op) -> None:
    attributes = op.of(ops.Slice)
    if min(attributes.strides) < 1:
        raise NpukitError(f"{op.name}: TFLite has no form of a slice that goes backwards here")
    parts = {"begin": attributes.begin, "end": attributes.end, "strides": attributes.strides}
    model.add("STRIDED_SLICE", (op.inputs[0], *(model.numbers(op, *each) for each in parts.items())), op.output)


_FORMS: Mapping[type[ops.Attributes], Callable[[Model, Op], None]] = {
    ops.Add: _elementwise("ADD"),
    ops.AveragePool: _pool,
    ops.Concat: _concat,
    ops.Conv2d: _conv2d,
    ops.Dense: _dense,
    ops.DepthwiseConv2d: _depthwise,
    ops.MaxPool: _pool,
    ops.Maximum: _plain("MAXIMUM", "MaximumMinimum"),
    ops.Mean: _mean,
    ops.Minimum: _plain("MINIMUM", "MaximumMinimum"),
    ops.Multiply: _elementwise("MUL"),
    ops.Pad: _pad_op,
    ops.Requantize: _plain("QUANTIZE"),
    ops.Reshape: _reshape,
    ops.Slice: _slice,
    ops.Softmax: _softmax,
    ops.Subtract: _elementwise("SUB"),
    ops.Transpose: _transpose,
}
TFLITE_KINDS = frozenset(kind.kind for kind in _FORMS)
"""Kinds of op with a TFLite form."""
