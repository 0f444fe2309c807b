"""Partial sums of a layer over a slice of its input channels, and their total."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Padding, Pair
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.convolution import KERNEL, grouped_product, products_of_a_filter, window_of_filter
from npukit.net.ops.fields import AxisRule, InputRule, elementwise, last_axis, of_window, same_axes
from npukit.net.ops.kind import MANY, Constant, Example, OpSpec, Scales
from npukit.net.ops.shapes import Shape, merge_cases, padded, split_cases, taps, windows
from npukit.net.requantize import finished, multiply_by_quantized_multiplier, quantization

_TOTAL = (("b", 3), ("m", 1 << 30), ("s", 0))


@dataclass(frozen=True)
class Sums(Attributes):
    """inputs: activation, weights of a slice of channels, starting at `first`, [sums before].

    Partial int32 sums of a conv2d or dense layer over its slice of input channels. Inputs are taken without their zero
    point; there is no bias and no requantisation. `sums before`, over other channels, are added. Weights are laid out
    as for conv2d or dense.
    """

    first: int = 0
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1


@dataclass(frozen=True)
class Total(Attributes):
    """inputs: sums of equal shape, then biases, multipliers and shifts, an int32 per channel. All sums plus bias,
    requantised."""

    clamp: Pair = (-128, 127)


def _sums(net: Net, op: Op) -> Shape:
    """The shape of partial sums: the output of a convolution or dense layer on the weights' channels."""
    attributes, shape, weights = op.of(Sums), net.tensor(op.inputs[0]).shape, net.tensor(op.inputs[1]).shape
    read = weights[-1] * attributes.groups
    if not shape or not 0 <= attributes.first <= shape[-1] - read or len(weights) not in (2, len(shape)):
        raise NpukitError(f"weights {list(weights)} from channel {attributes.first} on do not suit {list(shape)}")
    made = (*shape[:-1], weights[0])
    if len(weights) == 4:
        kernel = weights[1], weights[2]
        rows = windows(shape[1:3], kernel, attributes.strides, attributes.padding, attributes.dilation)
        made = (shape[0], *rows, weights[0])
    if any(net.tensor(name).shape != made for name in op.inputs[2:]):
        raise NpukitError(f"{op.inputs[2]}, to which its sums are added, is not of their shape {list(made)}")
    return made


def _total(net: Net, op: Op) -> Shape:
    *sums, bias, multipliers, shifts = (net.tensor(name).shape for name in op.inputs)
    if len({*sums}) != 1 or {bias, multipliers, shifts} != {sums[0][-1:]}:
        raise NpukitError("its sums, or its biases, multipliers and shifts, have different shapes")
    return sums[0]


def _field_of_sums(net: Net, op: Op) -> list[InputRule]:
    attributes, weights = op.of(Sums), net.tensor(op.inputs[1]).shape
    summed = AxisRule(only=(attributes.first, attributes.first + weights[-1] * attributes.groups))
    rank = len(net.tensor(op.output).shape)
    read = (*same_axes(rank - 1), summed)
    if len(weights) == 4:
        window = of_window(weights[1:3], attributes.strides, attributes.padding, attributes.dilation)
        read = (AxisRule(0), *window, summed)
    return [read, *(same_axes(rank) for _ in op.inputs[2:])]


def _window(net: Net, op: Op) -> Shape:
    """The window of a convolution's sums; a dense layer's sums have none."""
    return window_of_filter(net, op) if len(net.tensor(op.inputs[1]).shape) == 4 else ()


def _check_sums(net: Net, op: Op) -> None:
    if op.inputs[1] not in net.constants or net.tensor(op.inputs[1]).dtype != "int8":
        raise NpukitError("its weights must be int8 constants")
    _check_types(net, op.inputs[0], (*op.outputs, *op.inputs[2:]))


def _check_types(net: Net, outer: str, plain: Sequence[str]) -> None:
    """Check that sums are int32 without a scale, and that the layer's input or output is int8 with a single scale."""
    if net.tensor(outer).dtype != "int8" or not net.tensor(outer).has_one_scale:
        raise NpukitError(f"{outer!r} must be int8 with one scale and one zero point")
    if any(net.tensor(name).dtype != "int32" or net.tensor(name).quantization for name in plain):
        raise NpukitError("its sums, biases, multipliers and shifts must be int32 without a scale")


def _constants_of_total(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    channels = slice(output.start[-1], output.stop[-1])
    for role, name in zip(("bias", "multipliers", "shifts"), op.inputs[-3:], strict=True):
        yield role, net.constants[name][channels], "of each channel"
    zero = np.array([quantization(net, op.output).zero_point], np.int32)
    yield "zero", zero, "of the output: data, as PEs of other blocks have the same code"


def sums(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Partial sums of a convolution or dense layer over the weights' channels, added to earlier sums if any."""
    made = _of_slice(net, op, operands)
    return made + operands[2] if len(operands) > 2 else made


def _of_slice(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, weights = op.of(Sums), operands[1]
    zero = quantization(net, op.inputs[0]).zero_point
    data = operands[0][..., attributes.first : attributes.first + weights.shape[-1] * attributes.groups]
    if weights.ndim == 2:
        return ((data.astype(np.float64) - zero) @ weights.T.astype(np.float64)).astype(np.int32)
    shape = net.tensor(op.output).shape
    source = padded(merge_cases(data), attributes.padding, zero)
    found = taps(source, weights.shape[1:3], attributes.strides, attributes.dilation, shape[1:3])
    columns = np.stack([tap for _, _, tap in found], axis=3)
    return split_cases(grouped_product(columns.astype(np.float64) - zero, weights).astype(np.int32), shape)


def total(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    *parts, bias, multipliers, shifts = operands
    whole = sum(part.astype(np.int64) for part in parts) + bias.astype(np.int64)
    return finished(net, op, multiply_by_quantized_multiplier(whole, multipliers, shifts))


OPS = (
    OpSpec(
        Sums,
        _sums,
        sums,
        Example("sums(x, w)", "int32[1,2,2,4]", constants=KERNEL),
        operands=(2, 3),
        scales=Scales.FREE,
        field=_field_of_sums,
        cuttable=lambda net, op: (1, 2, 3) if len(net.tensor(op.output).shape) == 4 else last_axis(net, op),
        products=products_of_a_filter,
        core_cycles=(5, 4, 0),
        check=_check_sums,
        window=_window,
        by_channel=True,
    ),
    OpSpec(
        Total,
        _total,
        total,
        Example(
            "total(x, x, b, m, s)",
            source="int32[1,2,2,4]",
            constants="\n".join(
                f"constant {name}: int32[4] = [{', '.join([str(value)] * 4)}]" for name, value in _TOTAL
            ),
        ),
        operands=(4, MANY),
        scales=Scales.FREE,
        field=elementwise,
        core_cycles=(30, 2.4, 40),
        check=lambda net, op: _check_types(net, op.output, op.inputs),
        steps=lambda net, op, output: len(op.inputs) - 3,
        constants=_constants_of_total,
    ),
)
