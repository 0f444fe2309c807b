"""Ops that move values, and arithmetic on shapes left in the model by some exporters."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import tflite

from npukit.errors import NpukitError
from npukit.frontend.tflite.emit import Emitter, operators, shape_expression
from npukit.frontend.tflite.model import COMPLEX, TfliteOp
from npukit.net.limits import check_shape

BEFORE_ALL = -(2**31)
"""End of a backward slice through index 0. To Relax, -1 is the last index."""


def reshape(emitter: Emitter, op: TfliteOp) -> None:
    """Takes the shape from an input, else from an option, else from the output."""
    data, *rest = op.inputs
    given = op.options.get("NewShapeAsNumpy", 0)
    if rest:
        shape = emitter.integers(rest[0])
    else:
        shape = list(emitter.tensor(op.outputs[0]).shape if isinstance(given, int) else map(int, given))
    pairs = [2] if emitter.tensor(data).dtype == COMPLEX else []
    emitter.define_real(op.outputs[0], operators.reshape(emitter.real(data), [*shape, *pairs]))


def densify(emitter: Emitter, op: TfliteOp) -> None:
    """A sparse constant, already read as a dense one."""
    emitter.fold(op.outputs[0], emitter.constant(op.inputs[0]))


def squeeze(emitter: Emitter, op: TfliteOp) -> None:
    """Removes the axes given in the options, or all axes of size 1 if none are given."""
    data, given = emitter.real(op.inputs[0]), op.options.get("SqueezeDimsAsNumpy", 0)
    shape = emitter.shape(data)
    named = [] if isinstance(given, int) else [int(axis) for axis in given]
    axes = named or [axis for axis, size in enumerate(shape) if size == 1]
    if any(not -len(shape) <= axis < len(shape) or shape[axis] != 1 for axis in axes):
        raise NpukitError(f"it removes the axes {axes} of {list(shape)}")
    gone = {axis % len(shape) for axis in axes}
    kept = [size for axis, size in enumerate(shape) if axis not in gone]
    emitter.define_real(op.outputs[0], operators.reshape(data, kept))


def expand_dims(emitter: Emitter, op: TfliteOp) -> None:
    data, axis = emitter.real(op.inputs[0]), int(emitter.constant(op.inputs[1]).item())
    emitter.define_real(op.outputs[0], operators.expand_dims(data, [axis]))


def transpose(emitter: Emitter, op: TfliteOp) -> None:
    axes = emitter.integers(op.inputs[1])
    emitter.define_real(op.outputs[0], operators.permute_dims(emitter.real(op.inputs[0]), axes))


def concatenation(emitter: Emitter, op: TfliteOp) -> None:
    if op.options.get("FusedActivationFunction"):
        raise NpukitError("it has a fused activation")
    shapes = [emitter.shape(emitter.value(index)) for index in op.inputs]
    parts = [emitter.real(index) for index, shape in zip(op.inputs, shapes, strict=True) if 0 not in shape]
    if not parts:
        raise NpukitError("all its parts are empty")
    emitter.define_real(op.outputs[0], operators.concat(parts, op.options["Axis"]) if parts[1:] else parts[0])


def split(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: axis, data. The parts are equal."""
    axis, data, parts = int(emitter.constant(op.inputs[0]).item()), emitter.real(op.inputs[1]), len(op.outputs)
    _split(emitter, op, data, [emitter.shape(data)[axis] // parts] * parts, axis)


def split_v(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, sizes, axis. A size of -1 is the rest."""
    sizes, axis = emitter.integers(op.inputs[1]), int(emitter.constant(op.inputs[2]).item())
    data = emitter.real(op.inputs[0])
    whole = emitter.shape(data)[axis]
    _split(emitter, op, data, [whole - sum(sizes) - 1 if size < 0 else size for size in sizes], axis)


def _split(emitter: Emitter, op: TfliteOp, data: Any, sizes: list[int], axis: int) -> None:
    op.options.check_count("NumSplits", len(op.outputs))
    axis %= len(emitter.shape(data))
    ends = np.cumsum(sizes).tolist()
    if len(sizes) != len(op.outputs) or min(sizes) < 0 or ends[-1] != emitter.shape(data)[axis]:
        raise NpukitError(f"its parts along axis {axis} of {list(emitter.shape(data))} are {sizes}")
    for index, size, end in zip(op.outputs, sizes, ends, strict=True):
        if size == ends[-1]:
            emitter.define_real(index, data)
        elif size:
            emitter.define_real(index, operators.strided_slice(data, [axis], [end - size], [end]))
        else:
            shape = list(emitter.shape(data))
            shape[axis] = 0
            emitter.fold(index, np.zeros(shape, emitter.tensor(index).dtype))


def slice_(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, begin, size. A size of -1 reaches to the end."""
    data = emitter.real(op.inputs[0])
    begin, size = (emitter.integers(index) for index in op.inputs[1:])
    ends = [
        full if count < 0 else start + count
        for full, start, count in zip(emitter.shape(data), begin, size, strict=True)
    ]
    emitter.define_real(op.outputs[0], operators.strided_slice(data, list(range(len(begin))), begin, ends))


def strided_slice(emitter: Emitter, op: TfliteOp) -> None:
    data = emitter.real(op.inputs[0])
    shape, items = emitter.shape(data), _items(op, [emitter.integers(index) for index in op.inputs[1:]])
    covered = [slice(None)] * (len(shape) - sum(isinstance(item, int | slice) for item in items))
    place = items.index(...) if ... in items else len(items)
    items[place : place + 1] = covered
    parts = [slice(item, item + 1 or None) if isinstance(item, int) else item for item in items if item is not None]
    ranges = [part.indices(size) for part, size in zip(parts, shape, strict=True)]
    begins, ends, steps = (list(column) for column in zip(*ranges, strict=True))
    ends = [end if end >= 0 else BEFORE_ALL for end in ends]
    moved = emitter.emit(operators.strided_slice(data, list(range(len(ranges))), begins, ends, steps))
    sizes = iter(emitter.shape(moved))
    named = [(item, 1 if item is None else next(sizes)) for item in items]
    result = [size for item, size in named if not isinstance(item, int)]
    is_same = (*result,) == emitter.shape(moved)
    emitter.define_real(op.outputs[0], moved if is_same else operators.reshape(moved, result))


def _items(op: TfliteOp, bounds: list[list[int]]) -> list[Any]:
    """The part taken of each axis: a slice or a single index; None for a new axis; an ellipsis for all other axes."""
    items: list[Any] = []
    masks = [op.options[f"{name}Mask"] for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")]
    for axis, (begin, end, step) in enumerate(zip(*bounds, strict=True)):
        from_start, to_end, others, new, single = (mask >> axis & 1 for mask in masks)
        end = begin + end if op.options["Offset"] else end
        if others or new:
            items.append(... if others else None)
        elif single:
            items.append(0 if from_start else begin)
        else:
            items.append(slice(None if from_start else begin, None if to_end else end, step))
    return items


def pad(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, amounts, [value]."""
    data, amounts, *rest = op.inputs
    value = emitter.constant(rest[0]).item() if rest else 0.0
    if rest and (given := emitter.tensor(rest[0]).quantization):
        value = (value - given.zero_point) * given.scale
    padded = operators.nn.pad(emitter.real(data), emitter.integers(amounts), "constant", float(value))
    emitter.define_real(op.outputs[0], padded)


def resize_nearest(emitter: Emitter, op: TfliteOp) -> None:
    """Resizes to the nearest neighbour. Aligned corners and half pixels round halves up, others round down."""
    rounds = op.options["AlignCorners"] or op.options["HalfPixelCenters"]
    _resize(emitter, op, "nearest_neighbor", "round_prefer_ceil" if rounds else "floor")


def resize_bilinear(emitter: Emitter, op: TfliteOp) -> None:
    _resize(emitter, op, "linear", "")


def _resize(emitter: Emitter, op: TfliteOp, method: str, rounding: str) -> None:
    size = shape_expression(emitter.integers(op.inputs[1]))
    if op.options["AlignCorners"] and op.options["HalfPixelCenters"]:
        raise NpukitError("it aligns corners and takes half pixels, which contradict each other")
    mode = "align_corners" if op.options["AlignCorners"] else "asymmetric"
    mode = "half_pixel" if op.options["HalfPixelCenters"] else mode
    data = emitter.real(op.inputs[0])
    resized = operators.image.resize2d(
        data, size, layout="NHWC", method=method, coordinate_transformation_mode=mode, rounding_method=rounding
    )
    emitter.define_real(op.outputs[0], resized)


def shape(emitter: Emitter, op: TfliteOp) -> None:
    wanted = np.int64 if op.options.get("OutType") == tflite.TensorType.INT64 else np.int32
    emitter.fold(op.outputs[0], np.array(emitter.shape(emitter.value(op.inputs[0])), wanted))


def rank(emitter: Emitter, op: TfliteOp) -> None:
    emitter.fold(op.outputs[0], np.array(len(emitter.shape(emitter.value(op.inputs[0]))), np.int32))


def fill(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: shape, value."""
    shape, value = tuple(emitter.integers(op.inputs[0])), emitter.constant(op.inputs[1])
    check_shape(shape, "what it fills")
    emitter.fold(op.outputs[0], np.full(shape, value, value.dtype))


def range_(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: begin, end, step."""
    begin, end, step = (emitter.constant(index).item() for index in op.inputs)
    if not step:
        raise NpukitError("its step is 0")
    check_shape((max(0, ceil((end - begin) / step)),), "its range")
    emitter.fold(op.outputs[0], np.arange(begin, end, step).astype(emitter.tensor(op.inputs[0]).dtype))


def pack(emitter: Emitter, op: TfliteOp) -> None:
    axis = op.options["Axis"]
    op.options.check_count("ValuesCount", len(op.inputs))
    parts = [emitter.emit(operators.expand_dims(emitter.real(index), axis)) for index in op.inputs]
    emitter.define_real(op.outputs[0], operators.concat(parts, axis))
