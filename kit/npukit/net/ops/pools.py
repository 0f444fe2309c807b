"""Average and maximum pools, whose padding never counts, and means of whole axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Padding, Pair
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule, of_window, same_axes_but
from npukit.net.ops.kind import (
    BORDER,
    POOLED,
    Events,
    Example,
    OpSpec,
    Reference,
    Scales,
    Watched,
    any_of,
    names,
    read_of_an_output,
)
from npukit.net.ops.shapes import Shape, check_axes, images, merge_cases, padded, split_cases, taps, windows
from npukit.net.requantize import finished, mean_rescaling, quantization, reach, refuse_wrapping, rescale

_POOLED = "int8[1,1,1,4] scale 0.5 zero 0"


@dataclass(frozen=True)
class _Pool(Attributes):
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class AveragePool(_Pool):
    """The mean of each window."""


@dataclass(frozen=True)
class MaxPool(_Pool):
    """The largest element of each window."""


@dataclass(frozen=True)
class Mean(Attributes):
    """The mean over `axes`, which keep size 1."""

    axes: tuple[int, ...] = ()


def _pool(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(_Pool), images(net, op)
    if any(pad >= side for pad, side in zip(attributes.padding, attributes.window * 2, strict=True)):
        raise NpukitError(f"padding {attributes.padding} leaves windows of {attributes.window} empty")
    rows, columns = windows(shape[1:3], attributes.window, attributes.strides, attributes.padding, (1, 1))
    return shape[0], rows, columns, shape[3]


def _field_of_pool(net: Net, op: Op) -> list[InputRule]:
    attributes = op.of(_Pool)
    return [(AxisRule(0), *of_window(attributes.window, attributes.strides, attributes.padding), AxisRule(3))]


def average_pool(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    sums, counts = _sums_and_counts(net, op, merge_cases(operands[0]))
    means = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
    return split_cases(np.clip(means, *op.of(AveragePool).clamp).astype(np.int8), net.tensor(op.output).shape)


def _sums_and_counts(net: Net, op: Op, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sum and the number of elements of each window. Padding adds nothing."""
    parts = (images.astype(np.int32), np.ones_like(images[:1, :, :, :1], np.int32))
    sums, counts = (np.add.reduce(_under_windows(net, op, part, 0), dtype=np.int32) for part in parts)
    return sums, counts


def _under_windows(net: Net, op: Op, images: np.ndarray, border: int) -> list[np.ndarray]:
    """The elements at each place of the window, for all windows."""
    attributes, shape = op.of(_Pool), net.tensor(op.output).shape
    source = padded(images, attributes.padding, border)
    return [tap for _, _, tap in taps(source, attributes.window, attributes.strides, (1, 1), shape[1:3])]


def max_pool(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    largest = np.max(_under_windows(net, op, merge_cases(operands[0]), -128), axis=0)
    return split_cases(np.clip(largest, *op.of(MaxPool).clamp).astype(np.int8), net.tensor(op.output).shape)


def _events_of_average(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Events:
    """Events of an average pool: negative and positive means rounded away from zero; border windows."""
    attributes, (sums, counts) = op.of(AveragePool), _sums_and_counts(net, op, merge_cases(operands[0]))
    up = np.abs(sums) // counts != (np.abs(sums) + counts // 2) // counts
    yield POOLED, np.stack([(up & sign).reshape(len(result), -1).any(axis=1) for sign in (sums < 0, sums > 0)], axis=1)
    if any(attributes.padding):
        full = prod(attributes.window)
        yield BORDER, any_of((sums // full != sums // counts).reshape(len(result), -1))


def _events_of_maximum(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Events:
    """Events of a max pool: border maxima below 0 and the zero point, either of which padding would hide."""
    if any(op.of(MaxPool).padding):
        border = np.concatenate([result[:, :, [0, -1]].ravel(), result[:, :, :, [0, -1]].ravel()]).reshape(
            len(result), -1
        )
        yield BORDER, any_of(border < min(0, quantization(net, op.inputs[0]).zero_point))


def _mean(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(Mean), net.tensor(op.inputs[0]).shape
    check_axes(attributes.axes, shape)
    return tuple(1 if axis in attributes.axes else size for axis, size in enumerate(shape))


def _averaged(net: Net, op: Op) -> int:
    """The number of elements of a mean."""
    return prod(net.tensor(op.inputs[0]).shape[axis] for axis in op.of(Mean).axes)


def mean(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    count = _averaged(net, op)
    sums = operands[0].sum(axis=tuple(axis + 1 for axis in op.of(Mean).axes), dtype=np.int64, keepdims=True)
    centred = sums - quantization(net, op.inputs[0]).zero_point * count
    return finished(net, op, rescale(centred, mean_rescaling(net, op, count)))


def _mean_fits(net: Net, op: Op) -> None:
    count = _averaged(net, op)
    refuse_wrapping(reach(net, op.inputs[0]) * count, mean_rescaling(net, op, count).shift)


def _of_pool(kind: type[_Pool], reference: Reference, events: Watched, **more: Any) -> OpSpec:
    return OpSpec(
        kind,
        _pool,
        reference,
        Example(f"{kind.kind}(x) window=[2, 2]", _POOLED),
        scales=Scales.EQUAL,
        field=_field_of_pool,
        cuttable=lambda net, op: (1, 2, 3),
        window=lambda net, op: (*op.of(_Pool).window, net.tensor(op.inputs[0]).shape[-1]),
        steps=lambda net, op, output: prod(op.of(_Pool).window),
        events=events,
        keeps_range=lambda net, op: not any(op.of(_Pool).padding),
        **more,
    )


_AVERAGES = names("AVERAGE_POOL_2D", "AveragePool GlobalAveragePool QLinearAveragePool QLinearGlobalAveragePool")
_MAXIMA = names("MAX_POOL_2D REDUCE_MAX REDUCE_MIN", "GlobalMaxPool MaxPool ReduceMax ReduceMin")

OPS = (
    _of_pool(AveragePool, average_pool, _events_of_average, names=_AVERAGES, core_cycles=(21, 7.3, 0)),
    _of_pool(MaxPool, max_pool, _events_of_maximum, names=_MAXIMA, core_cycles=(2, 11, 0)),
    OpSpec(
        Mean,
        _mean,
        mean,
        Example("mean(x) axes=[1, 2]", _POOLED),
        field=lambda net, op: [same_axes_but(net, op, op.of(Mean).axes)],
        names=names("MEAN SUM", "ReduceMean ReduceSum"),
        core_cycles=(31, 6, 0),
        check=_mean_fits,
        steps=read_of_an_output,
    ),
)
