"""Average and maximum pools, whose padding never counts, and means of whole axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Padding, Pair
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule, of_window
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
from npukit.net.requantize import mean_rescaling, quantization, reach, refuse_wrapping, rescale, shifted

_POOLED = "int8[1,1,1,4] scale 0.5 zero 0"


@dataclass(frozen=True)
class AveragePool(Attributes):
    kind: ClassVar[str] = "average_pool"
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class MaxPool(Attributes):
    kind: ClassVar[str] = "max_pool"
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Mean(Attributes):
    """The mean over `axes`, which keep size 1."""

    kind: ClassVar[str] = "mean"
    axes: tuple[int, ...] = ()


def _pool(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(AveragePool, MaxPool), images(net, op)
    if any(pad >= side for pad, side in zip(attributes.padding, attributes.window * 2, strict=True)):
        raise NpukitError(f"padding {attributes.padding} leaves windows of {attributes.window} empty")
    rows, columns = windows(shape[1:3], attributes.window, attributes.strides, attributes.padding, (1, 1))
    return shape[0], rows, columns, shape[3]


def _field_of_pool(net: Net, op: Op) -> list[InputRule]:
    attributes = op.of(AveragePool, MaxPool)
    return [(AxisRule(0), *of_window(attributes.window, attributes.strides, attributes.padding), AxisRule(3))]


def average_pool(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.of(AveragePool), net.tensor(op.output).shape
    images = merge_cases(operands[0])
    counts = window_sums(np.ones_like(images[:1, :, :, :1]), attributes, shape)
    sums = window_sums(images, attributes, shape)
    means = np.sign(sums) * ((np.abs(sums) + counts // 2) // counts)
    return split_cases(np.clip(means, *attributes.clamp).astype(np.int8), shape)


def window_sums(images: np.ndarray, attributes: AveragePool, shape: tuple[int, ...]) -> np.ndarray:
    """The sum of each window; padding adds nothing."""
    source = padded(images, attributes.padding, 0).astype(np.int32)
    met = [tap for _, _, tap in taps(source, attributes.window, attributes.strides, (1, 1), shape[1:3])]
    return np.add.reduce(met, dtype=np.int32)


def max_pool(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.of(MaxPool), net.tensor(op.output).shape
    source = padded(merge_cases(operands[0]), attributes.padding, -128)
    met = [tap for _, _, tap in taps(source, attributes.window, attributes.strides, (1, 1), shape[1:3])]
    return split_cases(np.clip(np.max(met, axis=0), *attributes.clamp).astype(np.int8), shape)


def _events_of_average(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Events:
    """Events of an average pool: negative and positive means rounded away from zero; border windows."""
    attributes, shape = op.of(AveragePool), net.tensor(op.output).shape
    images = operands[0].reshape(-1, *operands[0].shape[2:])
    counts = window_sums(np.ones_like(images[:1, :, :, :1]), attributes, shape)
    sums = window_sums(images, attributes, shape)
    up = np.abs(sums) // counts != (np.abs(sums) + counts // 2) // counts
    yield POOLED, np.stack([(up & sign).reshape(len(result), -1).any(axis=1) for sign in (sums < 0, sums > 0)], axis=1)
    if any(attributes.padding):
        full = attributes.window[0] * attributes.window[1]
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


def _field_of_mean(net: Net, op: Op) -> list[InputRule]:
    axes, rank = op.of(Mean).axes, len(net.tensor(op.output).shape)
    return [tuple(AxisRule() if axis in axes else AxisRule(axis) for axis in range(rank))]


def mean(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, shape = op.of(Mean), net.tensor(op.inputs[0]).shape
    count = prod(shape[axis] for axis in attributes.axes)
    sums = operands[0].sum(axis=tuple(axis + 1 for axis in attributes.axes), dtype=np.int64, keepdims=True)
    centred = sums - quantization(net, op.inputs[0]).zero_point * count
    scaled = rescale(centred, mean_rescaling(net, op, count))
    return np.clip(scaled + quantization(net, op.output).zero_point, -128, 127).astype(np.int8)


def _mean_fits(net: Net, op: Op) -> None:
    shape = net.tensor(op.inputs[0]).shape
    count = int(np.prod([shape[axis] for axis in op.of(Mean).axes], dtype=np.int64))
    refuse_wrapping(shifted(reach(net, op.inputs[0]) * count, mean_rescaling(net, op, count)))


def _of_pool(kind: type[AveragePool | MaxPool], reference: Reference, events: Watched, **more: Any) -> OpSpec:
    return OpSpec(
        kind,
        _pool,
        reference,
        Example(f"{kind.kind}(x) window=[2, 2]", _POOLED),
        scales=Scales.EQUAL,
        field=_field_of_pool,
        cuttable=lambda net, op: (1, 2, 3),
        window=lambda net, op: (*op.of(AveragePool, MaxPool).window, net.tensor(op.inputs[0]).shape[-1]),
        steps=lambda net, op, output: prod(op.of(AveragePool, MaxPool).window),
        events=events,
        keeps_range=lambda net, op: not any(op.of(AveragePool, MaxPool).padding),
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
        field=_field_of_mean,
        names=names("MEAN SUM", "ReduceMean ReduceSum"),
        core_cycles=(31, 6, 0),
        check=_mean_fits,
        steps=read_of_an_output,
    ),
)
