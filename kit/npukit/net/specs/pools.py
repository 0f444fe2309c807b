"""Specs of ops over windows or axes: pools, means, softmax, norms, resizing, argmax and top k."""

from __future__ import annotations

import numpy as np

from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.norms import LARGEST_EPSILON, LARGEST_SHIFT, LONGEST
from npukit.net.ops import (
    ArgMax,
    AveragePool,
    MaxPool,
    Mean,
    Norm,
    NormBySquares,
    ResizeBilinear,
    ResizeNearest,
    Softmax,
    Squares,
    TopK,
)
from npukit.net.specs.fields import AxisRule, InputRule, cuttable_but, last_axis, of_window, same_axes
from npukit.net.specs.shapes import Shape, check_axes, images, same, windows
from npukit.net.specs.spec import Example, OpSpec, Scales, names

LARGEST_SEARCH = 1 << 16
"""Maximum number of elements to search for the largest: index and value together fit 32 bits."""

_POOLED = "int8[1,1,1,4] scale 0.5 zero 0"


def _pool(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, images(net, op)
    assert isinstance(attributes, AveragePool | MaxPool)
    if any(pad >= side for pad, side in zip(attributes.padding, attributes.window * 2, strict=True)):
        raise NpukitError(f"padding {attributes.padding} leaves windows of {attributes.window} empty")
    rows, columns = windows(shape[1:3], attributes.window, attributes.strides, attributes.padding, (1, 1))
    return shape[0], rows, columns, shape[3]


def _mean(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Mean)
    check_axes(attributes.axes, shape)
    return tuple(1 if axis in attributes.axes else size for axis, size in enumerate(shape))


def _resize(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, images(net, op)
    assert isinstance(attributes, ResizeNearest | ResizeBilinear)
    for places, size in zip((attributes.rows, attributes.columns), shape[1:3], strict=True):
        used = [place for entry in places for place in (entry[:2] if isinstance(entry, tuple) else (entry,))]
        if not used or not all(0 <= place < size for place in used):
            raise NpukitError(f"it takes rows or columns that an input of shape {list(shape)} has not")
    return shape[0], len(attributes.rows), len(attributes.columns), shape[3]


def _norm(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Norm)
    if any(net.constants[each].shape != shape[-1:] or net.constants[each].dtype != np.int32 for each in op.inputs[1:]):
        raise NpukitError(f"its multipliers and offsets are not int32[{shape[-1]}]")
    if shape[-1] > LONGEST or not (
        1 <= attributes.shift <= LARGEST_SHIFT and 1 <= attributes.epsilon <= LARGEST_EPSILON
    ):
        raise NpukitError(
            f"rows of {shape[-1]}, shift {attributes.shift} or epsilon {attributes.epsilon} are too large"
        )
    return shape


def _squares(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Squares)
    if not shape or shape[-1] > LONGEST or attributes.piece < 1 or shape[-1] % attributes.piece:
        raise NpukitError(f"rows of {list(shape)} have no pieces of {attributes.piece}")
    return (*shape[:-1], shape[-1] // attributes.piece, 1)


def _field_of_squares(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Squares)
    rank, piece = len(net.tensor(op.inputs[0]).shape), op.attributes.piece
    return [(*same_axes(rank - 1), AxisRule(rank - 1, stride=piece, reach=piece))]


def _norm_by_squares(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, NormBySquares)
    squares, *constants = (net.tensor(name) for name in op.inputs[1:])
    if squares.dtype != "int32" or squares.shape[:-2] != shape[:-1] or squares.shape[-1:] != (1,):
        raise NpukitError(f"{squares.name} are no squares of the pieces of {list(shape)}")
    if any(each.shape != shape[-1:] or each.dtype != "int32" or each.name not in net.constants for each in constants):
        raise NpukitError(f"its multipliers and offsets are not int32[{shape[-1]}]")
    return shape


def _field_of_norm_by_squares(net: Net, op: Op) -> list[InputRule]:
    rank = len(net.tensor(op.output).shape)
    return [same_axes(rank), (*same_axes(rank - 1), AxisRule(), AxisRule())]


def _argmax(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, ArgMax)
    check_axes((attributes.axis,), shape)
    return shape[: attributes.axis] + shape[attributes.axis + 1 :]


def _top_k(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, TopK)
    if not shape or not 1 <= attributes.count <= shape[-1] or shape[-1] > LARGEST_SEARCH:
        raise NpukitError(f"there is no top {attributes.count} in an input of shape {list(shape)}")
    return *shape[:-1], attributes.count


def _field_of_pool(net: Net, op: Op) -> list[InputRule]:
    attributes = op.attributes
    assert isinstance(attributes, AveragePool | MaxPool)
    return [(AxisRule(0), *of_window(attributes.window, attributes.strides, attributes.padding), AxisRule(3))]


def _rows_columns_channels(net: Net, op: Op) -> tuple[int, ...]:
    return (1, 2, 3)


def _field_of_mean(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Mean)
    axes, rank = op.attributes.axes, len(net.tensor(op.output).shape)
    return [tuple(AxisRule() if axis in axes else AxisRule(axis) for axis in range(rank))]


def _field_of_rows(net: Net, op: Op) -> list[InputRule]:
    """Rules of an op that needs whole rows along the last axis."""
    return [(*same_axes(len(net.tensor(op.inputs[0]).shape) - 1), AxisRule())]


def _field_of_argmax(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, ArgMax)
    rules = list(same_axes(len(net.tensor(op.output).shape)))
    rules.insert(op.attributes.axis, AxisRule())
    return [tuple(rules)]


def _field_of_resize(net: Net, op: Op) -> list[InputRule]:
    attributes = op.attributes
    assert isinstance(attributes, ResizeNearest | ResizeBilinear)
    rows, columns = (
        AxisRule(axis, places=tuple(_neighbours(entry) for entry in places))
        for axis, places in ((1, attributes.rows), (2, attributes.columns))
    )
    return [(AxisRule(0), rows, columns, AxisRule(3))]


def _neighbours(entry: int | tuple[int, int, int]) -> tuple[int, int]:
    """The input span (start, stop) of a resized position."""
    used = (entry,) if isinstance(entry, int) else entry[:2]
    return min(used), max(used) + 1


POOLS = (
    OpSpec(
        AveragePool,
        _pool,
        Example("average_pool(x) window=[2, 2]", _POOLED),
        scales=Scales.EQUAL,
        field=_field_of_pool,
        cuttable=_rows_columns_channels,
        names=names("AVERAGE_POOL_2D", "AveragePool GlobalAveragePool QLinearAveragePool QLinearGlobalAveragePool"),
        core_cycles=(21, 7.3, 0),
    ),
    OpSpec(
        MaxPool,
        _pool,
        Example("max_pool(x) window=[2, 2]", _POOLED),
        scales=Scales.EQUAL,
        field=_field_of_pool,
        cuttable=_rows_columns_channels,
        names=names("MAX_POOL_2D", "GlobalMaxPool MaxPool"),
        core_cycles=(2, 11, 0),
    ),
    OpSpec(
        Mean,
        _mean,
        Example("mean(x) axes=[1, 2]", _POOLED),
        field=_field_of_mean,
        cuttable=cuttable_but(_field_of_mean),
        names=names("MEAN", "ReduceMean"),
        core_cycles=(31, 6, 0),
    ),
    OpSpec(
        Softmax,
        same,
        Example("softmax(x)", "int8[1,2,2,4] scale 0.00390625 zero -128"),
        field=_field_of_rows,
        cuttable=cuttable_but(_field_of_rows),
        names=names("SOFTMAX", "QLinearSoftmax Softmax"),
        core_cycles=(36, 25, 160),
    ),
    OpSpec(
        Norm,
        _norm,
        Example(
            "norm(x, m, o) shift=12",
            constants="\n".join(f"constant {name}: int32[4] = {[1 << 16] * 4}" for name in "mo"),
        ),
        operands=(3, 3),
        field=_field_of_rows,
        cuttable=cuttable_but(_field_of_rows),
        names=names("", "LayerNormalization"),
        core_cycles=(30, 7, 260),
    ),
    OpSpec(
        Squares,
        _squares,
        Example("squares(x) piece=2", "int32[1,2,2,2,1]"),
        scales=Scales.FREE,
        field=_field_of_squares,
        cuttable=cuttable_but(_field_of_squares),
        core_cycles=(10, 5, 0),
    ),
    OpSpec(
        NormBySquares,
        _norm_by_squares,
        Example(
            "norm_by_squares(x, s, m, o) shift=12",
            constants="\n".join(f"constant {name}: int32[4] = {[1 << 16] * 4}" for name in "mo"),
            before="op s: int32[1,2,2,2,1] = squares(x) piece=2",
        ),
        operands=(4, 4),
        scales=Scales.FREE,
        field=_field_of_norm_by_squares,
        cuttable=cuttable_but(_field_of_norm_by_squares),
        core_cycles=(30, 7, 260),
    ),
    OpSpec(
        ResizeBilinear,
        _resize,
        Example("resize_bilinear(x) rows=[[0, 1, 0], [1, 1, 0]] columns=[[0, 1, 0], [1, 1, 0]]"),
        scales=Scales.EQUAL_OR_NONE,
        field=_field_of_resize,
        cuttable=cuttable_but(_field_of_resize),
        names=names("RESIZE_BILINEAR", "Resize"),
        core_cycles=(19, 0, 36),
    ),
    OpSpec(
        ResizeNearest,
        _resize,
        Example("resize_nearest(x) rows=[0, 1] columns=[0, 1]"),
        scales=Scales.EQUAL_OR_NONE,
        field=_field_of_resize,
        cuttable=cuttable_but(_field_of_resize),
        names=names("RESIZE_NEAREST_NEIGHBOR REVERSE_V2", "Resize"),
        core_cycles=(6, 0, 0),
    ),
    OpSpec(
        ArgMax,
        _argmax,
        Example("argmax(x) axis=3", "int32[1,2,2]"),
        scales=Scales.FREE,
        field=_field_of_argmax,
        cuttable=cuttable_but(_field_of_argmax),
        names=names("ARG_MAX", "ArgMax"),
        core_cycles=(5, 10, 0),
    ),
    OpSpec(
        TopK,
        _top_k,
        Example("top_k(x) count=2", "int32[1,2,2,2]"),
        scales=Scales.FREE,
        field=_field_of_rows,
        cuttable=cuttable_but(_field_of_rows, last_axis),
        core_cycles=(0, 14, 0),
    ),
)
