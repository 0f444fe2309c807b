"""Convolutions and dense layers of any integers, and pools of 16 bits, as TFLite's kernels compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tvm import relax, tirx, topi

from npukit.frontend.tflite.emit import Emitter
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.wide import clamped, limits, multipliers, requantized, requantized_long, select, te
from npukit.frontend.tflite.windows import dilation_of, padding_of, strides_of, window_of

Pair = tuple[int, int]


@dataclass(frozen=True)
class ImageWindow:
    """The places that a window reads of an image, padded by `around`."""

    strides: Pair
    dilation: Pair
    around: tuple[int, int, int, int]

    def padded(self, data: Any, value: int) -> Any:
        top, left, bottom, right = self.around
        before, after = (0, top, left, 0), (0, bottom, right, 0)
        return topi.nn.pad(data, before, after, tirx.const(value, data.dtype))

    def places(self, row: Any, column: Any, y: Any, x: Any) -> tuple[Any, Any]:
        (down, right), (high, wide) = self.strides, self.dilation
        return row * down + y * high, column * right + x * wide


def conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights OHWI; groups follow from their I."""
    weights, shape = _weights(emitter, op), emitter.shape(emitter.value(op.inputs[0]))
    _convolution(emitter, op, weights, shape[3] // weights.shape[3])


def depthwise_conv_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights 1HWO, as those of as many groups as there are channels."""
    weights, shape = _weights(emitter, op), emitter.shape(emitter.value(op.inputs[0]))
    op.options.check_count("DepthMultiplier", weights.shape[3] // shape[3])
    _convolution(emitter, op, weights.transpose(3, 1, 2, 0), shape[3])


def _weights(emitter: Emitter, op: TfliteOp) -> np.ndarray:
    """The weights less their zero point, in 16 bits if 8 do not hold them."""
    weights = emitter.constant(op.inputs[1])
    return weights if weights.dtype == np.int8 else weights.astype(np.int16) - emitter.scale(op.inputs[1]).zero_point


def _convolution(emitter: Emitter, op: TfliteOp, weights: np.ndarray, groups: int) -> None:
    strides, dilation, shape = strides_of(op), dilation_of(op), emitter.shape(emitter.value(op.inputs[0]))
    around = padding_of(op, shape[1:3], weights.shape[1:3], strides, dilation)
    _emit(emitter, op, weights, partial(_convolved, ImageWindow(strides, dilation, around), groups))


def _convolved(window: ImageWindow, groups: int, kind: str, zero: int, data: Any, weights: Any) -> Any:
    channels, high, wide, inside = weights.shape
    padded, each = window.padded(data, zero), int(channels) // groups
    y, x, depth = (te.reduce_axis((0, size), name) for size, name in ((high, "y"), (wide, "x"), (inside, "depth")))
    (down, right), (tall, broad) = window.strides, window.dilation
    sizes = [
        (int(padded.shape[axis]) - (int(size) - 1) * step - 1) // stride + 1
        for axis, size, step, stride in ((1, high, tall, down), (2, wide, broad, right))
    ]

    def total(image: Any, row: Any, column: Any, channel: Any) -> Any:
        place = window.places(row, column, y, x)
        value = padded[image, place[0], place[1], channel // each * inside + depth]
        return te.sum((value.astype(kind) - zero) * weights[channel, y, x, depth].astype(kind), axis=[y, x, depth])

    return te.compute((data.shape[0], *sizes, channels), total, name="sums")


def fully_connected(emitter: Emitter, op: TfliteOp) -> None:
    """Weights [out, in]; the leading axes are one, or stay if the options keep them."""
    weights = _weights(emitter, op)
    _emit(emitter, op, weights, partial(_dense, bool(op.options.get("KeepNumDims"))))


def _dense(keeps: bool, kind: str, zero: int, data: Any, weights: Any) -> Any:
    features, shape = int(weights.shape[1]), [int(size) for size in data.shape]
    rows = shape[:-1] if keeps else [int(np.prod(shape)) // features]
    flat, feature = topi.reshape(data, (*rows, features)), te.reduce_axis((0, features), "feature")

    def total(*place: Any) -> Any:
        *row, unit = place
        return te.sum((flat(*row, feature).astype(kind) - zero) * weights[unit, feature].astype(kind), axis=feature)

    return te.compute((*rows, weights.shape[0]), total, name="sums")


def _emit(emitter: Emitter, op: TfliteOp, weights: np.ndarray, sums: Callable[[str, int, Any, Any], Any]) -> None:
    """Sums of 64 bits, or of 32 where the bias has as many, requantised for each channel."""
    stated = [index for index in op.inputs[2:] if index >= 0]
    bias = emitter.constant(stated[0]) if stated else None
    kind = "int64" if bias is None else str(bias.dtype)
    bias = np.zeros(len(weights), kind) if bias is None else bias
    scaled = requantized if kind == "int32" else requantized_long
    before, after = (emitter.signed_scale(index).zero_point for index in (op.inputs[0], op.outputs[0]))
    ends, dtype = limits(emitter, op), "int16" if emitter.tensor(op.outputs[0]).dtype == "int16" else "int8"

    def loops(data: Any, weights: Any, bias: Any, multiplier: Any, shift: Any) -> Any:
        made = sums(kind, before, data, weights)

        def finished(*place: Any) -> Any:
            channel = place[-1]
            total = made(*place) + bias[channel]
            return clamped(scaled(total, multiplier[channel], shift[channel]) + after, dtype, *ends)

        return te.compute(made.shape, finished, name="scaled")

    constants = [relax.const(np.ascontiguousarray(each)) for each in (weights, bias)]
    factors = multipliers(_factors(emitter, op, len(weights)))
    made = emitter.loops(loops, emitter.signed(op.inputs[0]), op.kind.lower(), *constants, *factors)
    emitter.define_signed(op.outputs[0], made)


def _factors(emitter: Emitter, op: TfliteOp, channels: int) -> list[float]:
    """The factor of each channel's sum; of uint8, and of a dense layer with one scale, from a product of floats."""
    source, result = emitter.scale(op.inputs[0]).scale, emitter.scale(op.outputs[0]).scale
    given = emitter.tensor(op.inputs[1]).quantization
    scales: tuple[float, ...] = (1.0,) if given is None else given.scales
    if len(scales) == 1 and (op.kind == "FULLY_CONNECTED" or emitter.tensor(op.inputs[0]).dtype == "uint8"):
        return [float(np.float32(source) * np.float32(scales[0])) / result] * channels
    return [source * each / result for each in scales] * (channels if len(scales) == 1 else 1)


def average_pool(emitter: Emitter, op: TfliteOp) -> None:
    """The mean of what lies in the image, halves away from zero."""

    def mean(window: ImageWindow, sizes: Pair, shape: tuple[int, ...], total: Any, place: tuple[Any, ...]) -> Any:
        counts = [
            te.min(at * step - before + size, whole) - te.max(at * step - before, 0)
            for at, step, before, size, whole in zip(
                place[1:3], window.strides, window.around[:2], sizes, shape[1:3], strict=True
            )
        ]
        count = counts[0] * counts[1]
        half = tirx.truncdiv(count, tirx.const(2, "int32"))
        return tirx.truncdiv(total + select(total > 0, half, -half), count)

    _pool(emitter, op, te.sum, 0, mean)


def max_pool(emitter: Emitter, op: TfliteOp) -> None:
    _pool(emitter, op, te.max, -(1 << 15), lambda window, sizes, shape, total, place: total)


def _pool(emitter: Emitter, op: TfliteOp, reduce: Any, outside: int, finished: Any) -> None:
    strides, sizes = strides_of(op), window_of(op)
    shape, ends = emitter.shape(emitter.value(op.inputs[0])), limits(emitter, op)
    window = ImageWindow(strides, (1, 1), padding_of(op, shape[1:3], sizes, strides, (1, 1)))

    def loops(data: Any) -> Any:
        padded = window.padded(data, outside)
        y, x = (te.reduce_axis((0, size), name) for size, name in zip(sizes, "yx", strict=True))
        spaces = (int(size) for size in padded.shape[1:3])
        result = [(space - size) // step + 1 for space, size, step in zip(spaces, sizes, strides, strict=True)]

        def total(image: Any, row: Any, column: Any, channel: Any) -> Any:
            place = window.places(row, column, y, x)
            return reduce(padded[image, place[0], place[1], channel].astype("int32"), axis=[y, x])

        made = te.compute((shape[0], *result, shape[3]), total, name="pooled")

        def scaled(*place: Any) -> Any:
            return clamped(finished(window, sizes, shape, made(*place), place), "int16", *ends)

        return te.compute(made.shape, scaled, name="finished")

    emitter.define(op.outputs[0], emitter.loops(loops, emitter.value(op.inputs[0]), op.kind.lower()))
