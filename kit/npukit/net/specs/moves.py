"""Specs of data movement, and of ops as C code."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from npukit.errors import NpukitError
from npukit.net.c_code.rows import rows_of
from npukit.net.net import Net, Op
from npukit.net.ops import Concat, Pad, Pair, Reshape, Slice, Transpose, TvmCode
from npukit.net.specs.fields import AxisRule, InputRule, boxed_axes, cuttable_but
from npukit.net.specs.shapes import Shape, check_axes
from npukit.net.specs.spec import MANY, Example, OpSpec, Scales, names


def _reshape(net: Net, op: Op) -> Shape:
    before, after = net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape
    if prod(before) != prod(after):
        raise NpukitError(f"{list(before)} cannot be seen as {list(after)}")
    if net.tensor(op.inputs[0]).dtype != net.tensor(op.output).dtype:
        raise NpukitError("it must not change the type")
    return after


def _transpose(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Transpose)
    if sorted(attributes.axes) != list(range(len(shape))):
        raise NpukitError(f"axes {attributes.axes} do not suit an input of shape {list(shape)}")
    return tuple(shape[axis] for axis in attributes.axes)


def _pad(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Pad)
    widths = (*attributes.before, *attributes.after)
    if len(widths) != 2 * len(shape) or min(widths, default=0) < 0 or not -128 <= attributes.value <= 127:
        raise NpukitError(f"padding {attributes.before}, {attributes.after} does not suit shape {list(shape)}")
    return tuple(map(sum, zip(shape, attributes.before, attributes.after, strict=True)))


def _concat(net: Net, op: Op) -> Shape:
    attributes, shapes = op.attributes, [net.tensor(name).shape for name in op.inputs]
    assert isinstance(attributes, Concat)
    check_axes((attributes.axis,), shapes[0])
    rest = {shape[: attributes.axis] + shape[attributes.axis + 1 :] for shape in shapes}
    if len(rest) != 1 or len({len(shape) for shape in shapes}) != 1:
        raise NpukitError(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together")
    total = sum(shape[attributes.axis] for shape in shapes)
    return *shapes[0][: attributes.axis], total, *shapes[0][attributes.axis + 1 :]


def _slice(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Slice)
    ranges = list(zip(attributes.begin, attributes.end, attributes.strides, strict=True))
    inside = all(0 <= begin < end <= size and step > 0 for (begin, end, step), size in zip(ranges, shape, strict=False))
    if len(ranges) != len(shape) or not inside:
        raise NpukitError(f"the slice {ranges} does not lie in shape {list(shape)}")
    return tuple(len(range(*part)) for part in ranges)


def _field_of_concat(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Concat)
    rank = len(net.tensor(op.output).shape)
    rule = tuple(AxisRule() if axis == op.attributes.axis else AxisRule(axis) for axis in range(rank))
    return [rule] * len(list(net.activations(op)))


def _joined_axis(net: Net, op: Op) -> tuple[int, ...]:
    assert isinstance(op.attributes, Concat)
    return (op.attributes.axis,)


def _field_of_pad(net: Net, op: Op) -> list[InputRule]:
    """Rules of a pad. A tile of padding alone reads the nearest input position, because no tile may read nothing."""
    assert isinstance(op.attributes, Pad)
    sizes = zip(net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape, op.attributes.before, strict=True)
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
    assert isinstance(op.attributes, Slice)
    boxed = boxed_axes(net.tensor(op.inputs[0]).shape)
    pairs = zip(op.attributes.begin, op.attributes.strides, strict=True)
    return [
        tuple(
            AxisRule(axis, stride, -begin) if axis in boxed else AxisRule()
            for axis, (begin, stride) in enumerate(pairs)
        )
    ]


def _field_of_transpose(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Transpose)
    axes = op.attributes.axes
    return [tuple(AxisRule(axes.index(axis)) for axis in range(len(axes)))]


def _stated(net: Net, op: Op) -> Shape:
    """The stated output shape. The code does not reveal a shape."""
    return net.tensor(op.output).shape


def _field_of_code(net: Net, op: Op) -> list[InputRule]:
    """Rules of C code: matching rows of inputs that the code reads row by row, the whole of other inputs."""
    rows = rows_of(net, op)
    return [
        tuple(_rule_of(rows.along(f"p{place}", axis) if rows else None) for axis in range(len(net.tensor(name).shape)))
        for place, name in enumerate(op.inputs)
        if name not in net.constants
    ]


def _rule_of(along: tuple[int, tuple[Pair, ...]] | None) -> AxisRule:
    return AxisRule(along[0], places=along[1]) if along else AxisRule()


def _all_but_rows(net: Net, op: Op) -> tuple[int, ...]:
    rows = rows_of(net, op)
    cut = rows.cut if rows else ()
    return tuple(axis for axis in range(len(net.tensor(op.output).shape)) if axis not in cut)


def _products_of_code(net: Net, op: Op) -> int:
    assert isinstance(op.attributes, TvmCode)
    return op.attributes.macs


MOVES = (
    OpSpec(
        Concat,
        _concat,
        Example("concat(x, x) axis=3", "int8[1,2,2,8] scale 0.5 zero 0"),
        operands=(1, MANY),
        constant_first=True,
        scales=Scales.EQUAL_OR_NONE,
        names=names("CONCATENATION PACK TILE", "Concat QLinearConcat"),
        field=_field_of_concat,
        cuttable=cuttable_but(_field_of_concat, _joined_axis),
        core_cycles=(8, 0, 0),
    ),
    OpSpec(
        Pad,
        _pad,
        Example("pad(x) before=[0, 1, 0, 0] after=[0, 0, 0, 0]", "int8[1,3,2,4] scale 0.5 zero 0"),
        scales=Scales.EQUAL,
        names=names("PAD PADV2", "Pad"),
        field=_field_of_pad,
        cuttable=cuttable_but(_field_of_pad),
        core_cycles=(5, 0, 0),
    ),
    OpSpec(
        Reshape,
        _reshape,
        Example("reshape(x)", "int8[4,4] scale 0.5 zero 0"),
        scales=Scales.FREE,
        names=names(
            "DENSIFY EXPAND_DIMS FILL RANGE RANK RESHAPE SHAPE SQUEEZE ZEROS_LIKE",
            "Flatten Reshape Squeeze Unsqueeze",
        ),
    ),
    OpSpec(
        Slice,
        _slice,
        Example("slice(x) begin=[0, 0, 0, 0] end=[1, 1, 2, 4] strides=[1, 1, 1, 1]", "int8[1,1,2,4] scale 0.5 zero 0"),
        scales=Scales.EQUAL_OR_NONE,
        names=names("SLICE SPLIT SPLIT_V STRIDED_SLICE UNPACK", "Slice Split"),
        field=_field_of_slice,
        cuttable=cuttable_but(_field_of_slice),
        core_cycles=(8, 0, 0),
    ),
    OpSpec(
        Transpose,
        _transpose,
        Example("transpose(x) axes=[0, 2, 1, 3]"),
        scales=Scales.EQUAL_OR_NONE,
        names=names("BATCH_TO_SPACE_ND DEPTH_TO_SPACE SPACE_TO_BATCH_ND SPACE_TO_DEPTH TRANSPOSE", "Transpose"),
        field=_field_of_transpose,
        cuttable=cuttable_but(_field_of_transpose),
        core_cycles=(8, 0, 0),
    ),
    OpSpec(
        TvmCode,
        _stated,
        Example(
            'tvm_code(x) what="dequantize" code="for (int i = 0; i < 16; ++i) { output[i] = (float)p0[i]; }"',
            "float32[1,2,2,4]",
        ),
        operands=(1, MANY),
        scales=Scales.FREE,
        field=_field_of_code,
        cuttable=cuttable_but(_field_of_code, _all_but_rows),
        products=_products_of_code,
        names=names(
            "ADD_N ARG_MIN BROADCAST_TO CAST CUMSUM EMBEDDING_LOOKUP EQUAL FLOOR_DIV FLOOR_MOD GATHER "
            "GATHER_ND GREATER GREATER_EQUAL L2_NORMALIZATION LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT LOGICAL_OR "
            "LOG_SOFTMAX MIRROR_PAD NOT_EQUAL REDUCE_MAX REDUCE_MIN REDUCE_PROD SELECT SELECT_V2 SIGN "
            "SQUARED_DIFFERENCE SUM TOPK_V2",
            "ConvInteger Cos CumSum DynamicQuantizeLinear Equal Gather Greater InstanceNormalization "
            "LayerNormalization Less MatMulInteger Pow ReduceMax ReduceMin ReduceSum ReduceSumSquare Sin Tan "
            "Where",
        ),
    ),
)
