"""Convolutions, dense layers and pools on 16-bit activations, exact to TFLite's kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax, tirx, topi

from npukit.accel.phases import PhasedAxis, weights_by_phase
from npukit.errors import NpukitError
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.wide import clamped, limits, requantized, select, te
from npukit.frontend.tflite.windows import Pair, dilation_of, padding_of, strides_of, window_of
from npukit.net.requantize import quantize_multiplier

Layer = Callable[[Any, str], Any]
"""A layer's sums from data and the type of the sums."""


def conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights are OHWI. Their I determines the number of groups."""
    weights, shape = emitter.constant(op.inputs[1]), emitter.shape(emitter.value(op.inputs[0]))
    _convolution(emitter, op, weights, shape[3] // weights.shape[3])


def depthwise_conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights are 1HWO. There are as many groups as channels."""
    weights, shape = emitter.constant(op.inputs[1]), emitter.shape(emitter.value(op.inputs[0]))
    op.options.check_count("DepthMultiplier", weights.shape[3] // shape[3])
    _convolution(emitter, op, weights.transpose(3, 1, 2, 0), shape[3])


def _convolution(emitter: Emitter, op: TfliteOp, weights: np.ndarray, groups: int) -> None:
    strides, dilation, data = strides_of(op), dilation_of(op), emitter.value(op.inputs[0])
    around = padding_of(op, emitter.shape(data)[1:3], weights.shape[1:3], strides, dilation)
    layer = _conv2d(weights, strides, around, dilation, groups)
    emitter.define(op.outputs[0], _made(emitter, op, data, weights, layer))


def _conv2d(weights: np.ndarray, *windows: Any) -> Layer:
    """A convolution by constant weights. `windows`: strides, padding, dilation, groups."""
    kept, layouts = relax.const(np.ascontiguousarray(weights)), {"data_layout": "NHWC", "kernel_layout": "OHWI"}
    return lambda data, dtype: operators.nn.conv2d(data, kept, *windows, **layouts, out_dtype=dtype)


def transpose_conv(emitter: Emitter, op: TfliteOp, places: tuple[Sequence[int], Pair, Sequence[int]]) -> None:
    """One convolution computes all phases at each input element. The phases are then interleaved to rows and columns.
    `places`: height and width of the result, the strides, and the padding before the first row and column."""
    weights, data = emitter.constant(op.inputs[1]), emitter.value(op.inputs[0])
    sides = zip(emitter.shape(data)[1:3], weights.shape[1:3], places[1], places[2], places[0], strict=True)
    axes = [PhasedAxis(*map(int, each)) for each in sides]
    around = [max(axis.padding[end], 0) for end in (0, 1) for axis in axes]
    by_phase = weights_by_phase(weights, *axes)
    phases = _made(emitter, op, data, by_phase, _conv2d(by_phase, (1, 1), around, (1, 1), 1))
    channels = len(weights)
    (images, down, across, _), (rows, columns) = emitter.shape(phases), axes
    lines = emitter.emit(operators.reshape(phases, (images * down, across, rows.stride, columns.stride * channels)))
    turned = emitter.emit(operators.permute_dims(lines, (0, 2, 1, 3)))
    turned = emitter.emit(operators.reshape(turned, (images, down * rows.stride, across * columns.stride, channels)))
    begins = [axis.cut % axis.stride + max(-axis.padding[0], 0) * axis.stride for axis in axes]
    ends = [begin + axis.kept for begin, axis in zip(begins, axes, strict=True)]
    whole = (*ends,) == emitter.shape(turned)[1:3] and not any(begins)
    emitter.define(op.outputs[0], turned if whole else operators.strided_slice(turned, [1, 2], begins, ends))


def fully_connected(emitter: Emitter, op: TfliteOp) -> None:
    """Weights are [out, in]. The leading axes are merged unless the options keep them."""
    weights, data = emitter.constant(op.inputs[1]), emitter.value(op.inputs[0])
    if not op.options.get("KeepNumDims") and len(emitter.shape(data)) != 2:
        data = emitter.emit(operators.reshape(data, (-1, weights.shape[1])))
    across = relax.const(np.ascontiguousarray(weights.T))
    made = _made(emitter, op, data, weights, lambda data, dtype: operators.matmul(data, across, out_dtype=dtype))
    emitter.define(op.outputs[0], made)


def _made(emitter: Emitter, op: TfliteOp, data: relax.Expr, weights: np.ndarray, layer: Layer) -> relax.Expr:
    """Sums of 64 bits, or of 32 bits for a 32-bit bias, requantised by channel. If the weights have more channels than
    the bias, the bias is repeated."""
    if weights.dtype != np.int8:
        raise NpukitError(f"its weights are {weights.dtype}, not int8")
    stated = [index for index in op.inputs[2:] if index >= 0]
    bias = emitter.constant(stated[0]) if stated else np.zeros(len(weights), np.int64)
    bias = np.tile(bias, len(weights) // len(bias))
    reach = HALF * np.abs(weights.reshape(len(weights), -1), dtype=np.int64).sum(axis=1)
    kind, ends = "int32" if reach.max(initial=0) < WORD else "int64", limits(emitter, op)
    scaled, constants = _of_channel(emitter, op, bias, reach)
    upper, *lower = (emitter.emit(each) for each in _sums(emitter, data, reach, layer))

    def loops(upper: Any, *others: Any) -> Any:
        def finished(*place: Any) -> Any:
            total = upper(*place).astype(kind)
            if lower:
                total = total * 256 + others[0](*place).astype(kind)
            return clamped(scaled(total, place[-1], *others[len(lower) :]), "int16", *ends)

        return te.compute(upper.shape, finished, name="scaled")

    given = (relax.const(each, str(each.dtype)) for each in constants)
    return emitter.loops(loops, upper, op.kind.lower(), *lower, *given)


HALF, WORD = 1 << 15, 1 << 31
"""Largest magnitudes of 16-bit and 32-bit numbers."""
LOW, SIGN = 255, 128
"""Largest lower byte of a 16-bit number. Decrease of a byte when its inverted top bit becomes a sign."""
DROPPED_BITS = 16
"""Bits of a multiplier that TFLite drops before multiplying 64-bit sums."""


def _of_channel(
    emitter: Emitter, op: TfliteOp, bias: np.ndarray, reach: np.ndarray
) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """The function from a sum and its channel to a result, and the constants that it takes.

    64-bit sums are rounded once: (sum * factor + offset) / 2^bits. The offset contains the bias and half a step. If all
    products surely fit into 64 bits, factors and offsets are shifted to a common number of bits, at least 32.
    """
    multiplier, shift = np.array([quantize_multiplier(each) for each in _factors(emitter, op, len(bias))]).T
    if bias.dtype == np.int32:
        return _rounded_twice, [bias, multiplier.astype(np.int32), shift.astype(np.int32)]
    factor, bits = np.where(multiplier < 0x7FFF0000, (multiplier + HALF) >> DROPPED_BITS, HALF - 1), 15 - shift
    end = max(32, int(bits.max(initial=0)))
    most = [
        (int(a) + abs(int(b))) * (int(c) << int(end - d)) for a, b, c, d in zip(reach, bias, factor, bits, strict=True)
    ]
    alike = max(most, default=0) + (1 << end) < 1 << 63 and all(factor << np.minimum(end - bits, 31) < WORD)
    moved = (end - bits) * alike
    constants = [(factor << moved).astype(np.int32), (bias * factor << moved) + (1 << (bits - 1 + moved))]

    def rounded_once(total: Any, channel: Any, factor: Any, offset: Any, *bits: Any) -> Any:
        whole = total.astype("int64") * factor[channel].astype("int64") + offset[channel]
        return (whole >> (bits[0][channel] if bits else tirx.const(end, "int64"))).astype("int32")

    return rounded_once, constants if alike else [*constants, bits]


def _rounded_twice(total: Any, channel: Any, bias: Any, multiplier: Any, shift: Any) -> Any:
    whole = (total.astype("int64") + bias[channel].astype("int64")).astype("int32")
    return requantized(whole, multiplier[channel], shift[channel])


def _sums(emitter: Emitter, data: relax.Expr, reach: np.ndarray, layer: Layer) -> list[relax.Expr]:
    """The sums of upper and of lower bytes if each fits into 32 bits; else the sums of whole numbers."""
    if LOW * reach.max(initial=0) >= HALF * WORD:
        return [layer(data, "int64")]

    def bytes_of(function: Callable[[Any], Any], name: str) -> relax.Var:
        def loops(data: Any) -> Any:
            return te.compute(data.shape, lambda *place: function(data(*place).astype("int32")).astype("int8"))

        return emitter.loops(loops, data, name)

    high, low = bytes_of(lambda value: value >> 8, "upper_bytes"), bytes_of(lambda value: value ^ SIGN, "lower_bytes")
    whole = emitter.emit(operators.subtract(operators.astype(low, "int16"), relax.const(-SIGN, "int16")))
    return [layer(high, "int32"), layer(whole, "int32")]


def _factors(emitter: Emitter, op: TfliteOp, channels: int) -> list[float]:
    """The factor of each channel's sum. A dense layer with a single scale multiplies in single precision."""
    source, result = emitter.scale(op.inputs[0]).scale, emitter.scale(op.outputs[0]).scale
    given = emitter.tensor(op.inputs[1]).quantization
    scales: tuple[float, ...] = (1.0,) if given is None else given.scales
    if len(scales) == 1 and op.kind == "FULLY_CONNECTED":
        return [float(np.float32(source) * np.float32(scales[0])) / result] * channels
    return [source * each / result for each in scales] * (channels // len(scales))


def average_pool(emitter: Emitter, op: TfliteOp) -> None:
    """The mean over the elements inside the image, halves rounded away from zero."""

    def mean(sides: Sequence[Side], total: Any, place: tuple[Any, ...]) -> Any:
        rows, columns = (
            te.min(at * step - before + window, size) - te.max(at * step - before, 0)
            for at, (size, window, step, before) in zip(place[1:3], sides, strict=True)
        )
        half = tirx.truncdiv(rows * columns, tirx.const(2, "int32"))
        return tirx.truncdiv(total + select(total > 0, half, -half), rows * columns)

    _pool(emitter, op, te.sum, 0, mean)


def max_pool(emitter: Emitter, op: TfliteOp) -> None:
    _pool(emitter, op, te.max, -(1 << 15), lambda sides, total, place: total)


Side = tuple[int, int, int, int]
"""Size of an image, size and stride of a window, and padding before the image, along an axis."""


def _pool(emitter: Emitter, op: TfliteOp, reduce: Any, outside: int, finished: Callable[..., Any]) -> None:
    strides, sizes = strides_of(op), window_of(op)
    shape, ends = emitter.shape(emitter.value(op.inputs[0])), limits(emitter, op)
    top, left, bottom, right = padding_of(op, shape[1:3], sizes, strides, (1, 1))
    sides = list(zip(shape[1:3], sizes, strides, (top, left), strict=True))

    def loops(data: Any) -> Any:
        padded = topi.nn.pad(data, (0, top, left, 0), (0, bottom, right, 0), tirx.const(outside, data.dtype))
        y, x = (te.reduce_axis((0, size), name) for size, name in zip(sizes, "yx", strict=True))
        spaces = (int(size) for size in padded.shape[1:3])
        result = [(space - size) // step + 1 for space, size, step in zip(spaces, sizes, strides, strict=True)]

        def total(image: Any, row: Any, column: Any, channel: Any) -> Any:
            element = padded[image, row * strides[0] + y, column * strides[1] + x, channel]
            return reduce(element.astype("int32"), axis=[y, x])

        made = te.compute((shape[0], *result, shape[3]), total, name="pooled")

        def scaled(*place: Any) -> Any:
            return clamped(finished(sides, made(*place), place), "int16", *ends)

        return te.compute(made.shape, scaled, name="finished")

    emitter.define(op.outputs[0], emitter.loops(loops, emitter.value(op.inputs[0]), op.kind.lower()))
