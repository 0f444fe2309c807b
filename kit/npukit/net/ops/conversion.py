"""Conversions between real numbers, integers, and integers of another scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.elementwise import aligned, centred, of_elements
from npukit.net.ops.fields import broadcast_part
from npukit.net.ops.kind import Constant, Example, Scales, names
from npukit.net.ops.shapes import Shape, same, together
from npukit.net.requantize import quantization, rescale, scale_ratio
from npukit.net.tables import quantised


@dataclass(frozen=True)
class Quantize(Attributes):
    """inputs: activation of any number type, offset and step (float32 constants, one number or one per channel).

    (x - offset) / step in float32, rounded to the nearest integer, plus the zero point, clamped to int8. Halves round
    to even, or `away` from zero as in TensorFlow Lite. NaN becomes the lowest value.
    """

    away: bool = False


@dataclass(frozen=True)
class Dequantize(Attributes):
    """The activation as float32 numbers: the integer minus the zero point, times the scale in float32."""


@dataclass(frozen=True)
class Requantize(Attributes):
    """The same real numbers with another scale, zero point or type."""


def _quantize(net: Net, op: Op) -> Shape:
    shape = net.tensor(op.inputs[0]).shape
    for name in op.inputs[1:]:
        given = net.tensor(name)
        if given.dtype != "float32" or name not in net.constants or together([shape, given.shape]) != shape:
            raise NpukitError(f"its {name} is no float32 constant for an input of shape {list(shape)}")
    return shape


def _dequantize(net: Net, op: Op) -> Shape:
    given = net.tensor(op.inputs[0])
    if given.quantization is None or len(given.quantization.scales) != 1:
        raise NpukitError(f"its input {given.name} is not quantised with one scale")
    return given.shape


def quantize(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    value, offset, step = aligned(net, op, operands)
    zero_point = quantization(net, op.output).zero_point
    return quantised(value, offset, step, zero_point, away=op.of(Quantize).away)


def dequantize(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    scale = np.float32(quantization(net, op.inputs[0]).scale)
    return centred(net, op, operands, 0).astype(np.float32) * scale


def requantize(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    output = net.tensor(op.output)
    limits = np.iinfo(output.dtype)
    moved = rescale(centred(net, op, operands, 0), scale_ratio(net, op)) + quantization(net, op.output).zero_point
    return np.clip(moved, limits.min, limits.max).astype(output.dtype)


def _check_quantize(net: Net, op: Op) -> None:
    if not (net.tensor(op.output).dtype == "int8" and net.tensor(op.output).has_one_scale):
        raise NpukitError("its result must be int8 with one scale and one zero point")


def _offset_and_step(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    told = {"offset": "taken away before dividing", "step": "of the quantised numbers"}
    for (role, text), name in zip(told.items(), op.inputs[1:], strict=True):
        yield role, net.constants[name][broadcast_part(net, op, name, output).slices], text


OPS = (
    of_elements(
        Quantize,
        _quantize,
        quantize,
        Example(
            "quantize(x, o, s)",
            source="float32[1,2,2,4]",
            constants="constant o: float32[1] = [0.5]\nconstant s: float32[4] = [1.0, 2.0, 3.0, 4.0]",
        ),
        operands=(3, 3),
        scales=Scales.FREE,
        core_cycles=(33, 0, 28),
        check=_check_quantize,
        constants=_offset_and_step,
    ),
    of_elements(
        Dequantize,
        _dequantize,
        dequantize,
        Example("dequantize(x)", "float32[1,2,2,4]"),
        scales=Scales.FREE,
        core_cycles=(9, 0, 0),
        constants=lambda net, op, output: [
            ("scale", np.array([quantization(net, op.inputs[0]).scale], np.float32), "of the quantised numbers")
        ],
    ),
    of_elements(
        Requantize,
        same,
        requantize,
        Example("requantize(x)", "int8[1,2,2,4] scale 0.25 zero 0"),
        names=names("QUANTIZE DEQUANTIZE", "QuantizeLinear DequantizeLinear"),
        core_cycles=(22, 0, 0),
    ),
)
