"""Ops that move values without changing any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule, boxed_axes, same_axes_but
from npukit.net.ops.kind import MANY, Example, OpSpec, Scales, names
from npukit.net.ops.shapes import Shape, check_axes


@dataclass(frozen=True)
class Reshape(Attributes):
    """The same bytes with another shape, or another scale and zero point."""


@dataclass(frozen=True)
class Transpose(Attributes):
    """Axis i of the output is axis axes[i] of the input."""

    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pad(Attributes):
    """Padding of `before` and `after` positions on each axis, filled with `value`."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    value: int = 0


@dataclass(frozen=True)
class Concat(Attributes):
    """inputs: activations with the output's quantisation, concatenated along `axis`."""

    axis: int = -1


@dataclass(frozen=True)
class Slice(Attributes):
    """Elements from `begin` to before `end`, in steps of `strides`, on each axis."""

    begin: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


def _reshape(net: Net, op: Op) -> Shape:
    before, after = net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape
    if prod(before) != prod(after):
        raise NpukitError(f"{list(before)} cannot be seen as {list(after)}")
    if net.tensor(op.inputs[0]).dtype != net.tensor(op.output).dtype:
        raise NpukitError("it must not change the type")
    return after


def _transpose(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(Transpose), net.tensor(op.inputs[0]).shape
    if sorted(attributes.axes) != list(range(len(shape))):
        raise NpukitError(f"axes {attributes.axes} do not suit an input of shape {list(shape)}")
    return tuple(shape[axis] for axis in attributes.axes)


def _pad(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(Pad), net.tensor(op.inputs[0]).shape
    widths = (*attributes.before, *attributes.after)
    if len(widths) != 2 * len(shape) or min(widths, default=0) < 0 or not -128 <= attributes.value <= 127:
        raise NpukitError(f"padding {attributes.before}, {attributes.after} does not suit shape {list(shape)}")
    return tuple(map(sum, zip(shape, attributes.before, attributes.after, strict=True)))


def _concat(net: Net, op: Op) -> Shape:
    attributes, shapes = op.of(Concat), [net.tensor(name).shape for name in op.inputs]
    check_axes((attributes.axis,), shapes[0])
    rest = {shape[: attributes.axis] + shape[attributes.axis + 1 :] for shape in shapes}
    if len(rest) != 1 or len({len(shape) for shape in shapes}) != 1:
        raise NpukitError(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together")
    total = sum(shape[attributes.axis] for shape in shapes)
    return *shapes[0][: attributes.axis], total, *shapes[0][attributes.axis + 1 :]


def _slice(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(Slice), net.tensor(op.inputs[0]).shape
    ranges = list(zip(attributes.begin, attributes.end, attributes.strides, strict=True))
    inside = all(0 <= begin < end <= size and step > 0 for (begin, end, step), size in zip(ranges, shape, strict=False))
    if len(ranges) != len(shape) or not inside:
        raise NpukitError(f"the slice {ranges} does not lie in shape {list(shape)}")
    return tuple(len(range(*part)) for part in ranges)


def _field_of_pad(net: Net, op: Op) -> list[InputRule]:
    """Rules of a pad. A tile of padding alone reads the nearest input position, because no tile may read nothing."""
    sizes = zip(net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape, op.of(Pad).before, strict=True)
    return [
        tuple(AxisRule(axis, places=_places(before, size, padded)) for axis, (size, padded, before) in enumerate(sizes))
    ]


@lru_cache
def _places(before: int, size: int, padded: int) -> tuple[tuple[int, int], ...]:
    """The input span of each position of a padded axis. Cached, because long axes recur."""
    return tuple(_nearest(place - before, size) for place in range(padded))


def _nearest(place: int, size: int) -> tuple[int, int]:
    first = min(max(place, 0), size - 1)
    return first, first + 1


def _field_of_slice(net: Net, op: Op) -> list[InputRule]:
    """Rules of a slice. Kernels read whole axes wherever boxes of the input cannot be smaller than the tensor."""
    boxed = boxed_axes(net.tensor(op.inputs[0]).shape)
    pairs = zip(op.of(Slice).begin, op.of(Slice).strides, strict=True)
    return [
        tuple(
            AxisRule(axis, stride, -begin) if axis in boxed else AxisRule()
            for axis, (begin, stride) in enumerate(pairs)
        )
    ]


def _field_of_transpose(net: Net, op: Op) -> list[InputRule]:
    axes = op.of(Transpose).axes
    return [tuple(AxisRule(axes.index(axis)) for axis in range(len(axes)))]


def reshape(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return operands[0].reshape(-1, *net.tensor(op.output).shape)


def transpose(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return operands[0].transpose(0, *(axis + 1 for axis in op.of(Transpose).axes))


def pad(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.of(Pad)
    widths = [(0, 0), *zip(attributes.before, attributes.after, strict=True)]
    return np.pad(operands[0], widths, constant_values=attributes.value)


def concat(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the inputs. A constant input is repeated for every case."""
    cases = max(len(value) for name, value in zip(op.inputs, operands, strict=True) if name not in net.constants)
    parts = [
        np.broadcast_to(value, (cases, *value.shape)) if name in net.constants else value
        for name, value in zip(op.inputs, operands, strict=True)
    ]
    return np.concatenate(parts, axis=op.of(Concat).axis + 1)


def slice_(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.of(Slice)
    parts = zip(attributes.begin, attributes.end, attributes.strides, strict=True)
    return operands[0][(slice(None), *(slice(*part) for part in parts))]


def _part_of_concat(net: Net, op: Op, name: str, output: Box) -> Box:
    whole, axis = Box.whole(net.tensor(name).shape), op.of(Concat).axis
    starts, stops = (
        (*box[:axis], end[axis], *box[axis + 1 :])
        for box, end in ((output.start, whole.start), (output.stop, whole.stop))
    )
    return Box(starts, stops)


def _is_renamed(net: Net, op: Op) -> bool:
    """True for a reshape that adds or removes axes of size 1 but keeps the channel axis."""
    given, made = (net.tensor(name).shape for name in (op.inputs[0], op.output))
    return [size for size in given if size != 1] == [size for size in made if size != 1] and given[-1:] == made[-1:]


OPS = (
    OpSpec(
        Concat,
        _concat,
        concat,
        Example("concat(x, x) axis=3", "int8[1,2,2,8] scale 0.5 zero 0"),
        operands=(1, MANY),
        constant_first=True,
        scales=Scales.EQUAL_OR_NONE,
        names=names("CONCATENATION PACK TILE", "Concat QLinearConcat Tile"),
        field=lambda net, op: [same_axes_but(net, op, [op.of(Concat).axis]) for _ in net.activations(op)],
        uncut=lambda net, op: (op.of(Concat).axis,),
        core_cycles=(8, 0, 0),
        operand=_part_of_concat,
    ),
    OpSpec(
        Pad,
        _pad,
        pad,
        Example("pad(x) before=[0, 1, 0, 0] after=[0, 0, 0, 0]", "int8[1,3,2,4] scale 0.5 zero 0"),
        scales=Scales.EQUAL,
        names=names("PAD PADV2", "CenterCropPad Pad"),
        field=_field_of_pad,
        core_cycles=(5, 0, 0),
    ),
    OpSpec(
        Reshape,
        _reshape,
        reshape,
        Example("reshape(x)", "int8[4,4] scale 0.5 zero 0"),
        scales=Scales.FREE,
        names=names(
            "DENSIFY EXPAND_DIMS FILL RANGE RANK RESHAPE SHAPE SQUEEZE ZEROS_LIKE",
            "BlackmanWindow Constant ConstantOfShape Dropout EyeLike Flatten HammingWindow HannWindow Identity Range "
            "Reshape Shape Size Squeeze Unsqueeze",
        ),
        keeps_range=_is_renamed,
    ),
    OpSpec(
        Slice,
        _slice,
        slice_,
        Example("slice(x) begin=[0, 0, 0, 0] end=[1, 1, 2, 4] strides=[1, 1, 1, 1]", "int8[1,1,2,4] scale 0.5 zero 0"),
        scales=Scales.EQUAL_OR_NONE,
        names=names("IMAG REAL SLICE SPLIT SPLIT_V STRIDED_SLICE UNPACK", "CenterCropPad Slice Split"),
        field=_field_of_slice,
        core_cycles=(8, 0, 0),
    ),
    OpSpec(
        Transpose,
        _transpose,
        transpose,
        Example("transpose(x) axes=[0, 2, 1, 3]"),
        scales=Scales.EQUAL_OR_NONE,
        names=names(
            "BATCH_TO_SPACE_ND DEPTH_TO_SPACE SPACE_TO_BATCH_ND SPACE_TO_DEPTH TRANSPOSE",
            "DepthToSpace SpaceToDepth Transpose",
        ),
        field=_field_of_transpose,
        core_cycles=(8, 0, 0),
    ),
)
