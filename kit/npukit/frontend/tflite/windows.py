"""Common parts of convolutions and pools: strides, padding, fused activations."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import tflite
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.tflite.emit import operators
from npukit.frontend.tflite.model import TfliteOp

Pair = tuple[int, int]


def strides_of(op: TfliteOp) -> Pair:
    return _positive("stride", op.options["StrideH"], op.options["StrideW"])


def dilation_of(op: TfliteOp) -> Pair:
    own = _positive("dilation", op.options["DilationHFactor"], op.options["DilationWFactor"])
    return own[0] * op.dilation[0], own[1] * op.dilation[1]


def window_of(op: TfliteOp) -> Pair:
    return _positive("window", op.options["FilterHeight"], op.options["FilterWidth"])


def finite(op: TfliteOp, name: str) -> float:
    """A real option. Raises an error if infinite or NaN."""
    if not isfinite(value := float(op.options[name])):
        raise NpukitError(f"its {name} is {value}")
    return value


def _positive(what: str, height: int, width: int) -> Pair:
    if min(height, width) < 1:
        raise NpukitError(f"its {what} is {height} x {width}")
    return height, width


def padding_of(
    op: TfliteOp, size: tuple[int, ...], window: tuple[int, ...], strides: Pair, dilation: Pair
) -> tuple[int, int, int, int]:
    """Padding at the top, left, bottom, right. With SAME, an odd element goes to the end."""
    if op.options["Padding"] == tflite.Padding.VALID:
        return op.padding
    totals = [same_padding(*sides) for sides in zip(size, window, strides, dilation, strict=True)]
    top, left = (total // 2 for total in totals)
    return top, left, totals[0] - top, totals[1] - left


def same_padding(size: int, window: int, stride: int, dilation: int) -> int:
    """The total padding for a result of the input's size divided by the stride."""
    outputs = -(-size // stride)
    return max((outputs - 1) * stride + (window - 1) * dilation + 1 - size, 0)


def activated(op: TfliteOp, expression: relax.Expr) -> relax.Expr:
    """The op's result with its fused activation."""
    kind = op.options.get("FusedActivationFunction", tflite.ActivationFunctionType.NONE)
    if kind == tflite.ActivationFunctionType.NONE:
        return expression
    if kind == tflite.ActivationFunctionType.RELU:
        return operators.nn.relu(expression)
    if kind not in _CLIPS:
        raise NpukitError(f"its fused activation (number {kind}) has no int8 form")
    return operators.clip(expression, *_CLIPS[kind])


_CLIPS: Mapping[int, Pair] = {
    tflite.ActivationFunctionType.RELU6: (0, 6),
    tflite.ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
}
