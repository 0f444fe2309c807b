"""Specs of filters: convolutions, dense layers and matrix products."""

from __future__ import annotations

from math import prod

from npukit.errors import NpukitError
from npukit.net.net import Net, Op, operand_axes
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d, Matmul, Sums, Total, TransposeConv2d
from npukit.net.specs.fields import (
    AxisRule,
    InputRule,
    broadcast_rule,
    cuttable_but,
    elementwise,
    last_axis,
    of_window,
    same_axes,
)
from npukit.net.specs.shapes import Shape, images, together, windows
from npukit.net.specs.spec import MANY, Example, OpSpec, Scales, names
from npukit.net.tensor import transposed, untransposed

_KERNEL = "constant w: int8[4,1,1,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"
_DEPTHWISE = "constant w: int8[1,1,1,4] scale 1.0 zero 0 = [1, 1, 1, 1]"
_MATRIX = "constant w: int8[4,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"
_ROWS = "int8[1,2,4] scale 0.5 zero 0"
_TOTAL = (("b", 3), ("m", 1 << 30), ("s", 0))


def _conv2d(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.attributes, images(net, op), net.tensor(op.inputs[1]).shape
    assert isinstance(attributes, Conv2d)
    if len(weights) != 4 or shape[3] % weights[3] or weights[0] % (shape[3] // weights[3]):
        raise NpukitError(f"weights {list(weights)} do not suit an input of {shape[3]} channels")
    rows, columns = windows(
        shape[1:3], (weights[1], weights[2]), attributes.strides, attributes.padding, attributes.dilation
    )
    return shape[0], rows, columns, weights[0]


def _depthwise(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.attributes, images(net, op), net.tensor(op.inputs[1]).shape
    assert isinstance(attributes, DepthwiseConv2d)
    if len(weights) != 4 or weights[0] != 1 or weights[3] % shape[3]:
        raise NpukitError(f"weights {list(weights)} do not suit an input of {shape[3]} channels")
    rows, columns = windows(
        shape[1:3], (weights[1], weights[2]), attributes.strides, attributes.padding, attributes.dilation
    )
    return shape[0], rows, columns, weights[3]


def _dense(net: Net, op: Op) -> Shape:
    shape, weights = net.tensor(op.inputs[0]).shape, net.tensor(op.inputs[1]).shape
    if len(weights) != 2 or not shape or shape[-1] != weights[1]:
        raise NpukitError(f"weights {list(weights)} do not suit an input of shape {list(shape)}")
    return *shape[:-1], weights[0]


def _sums(net: Net, op: Op) -> Shape:
    """The shape of partial sums: the output of a convolution or dense layer on the weights' channels."""
    attributes, shape, weights = op.attributes, net.tensor(op.inputs[0]).shape, net.tensor(op.inputs[1]).shape
    assert isinstance(attributes, Sums)
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


def _transpose_conv2d(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.attributes, images(net, op), net.tensor(op.inputs[1]).shape
    assert isinstance(attributes, TransposeConv2d)
    if len(weights) != 4 or weights[3] != shape[3]:
        raise NpukitError(f"weights {list(weights)} do not suit an input of {shape[3]} channels")
    top, left, bottom, right = attributes.padding
    rows = (shape[1] - 1) * attributes.strides[0] + weights[1] - top - bottom
    columns = (shape[2] - 1) * attributes.strides[1] + weights[2] - left - right
    if min(rows, columns, *attributes.strides) < 1:
        raise NpukitError(f"strides {attributes.strides} and padding {attributes.padding} leave nothing")
    return shape[0], rows, columns, weights[0]


def _matmul(net: Net, op: Op) -> Shape:
    assert isinstance(op.attributes, Matmul)
    given = [net.tensor(name).shape for name in op.inputs]
    seen = [
        _seen(shape, axes, last) for shape, axes, last in zip(given, operand_axes(op), ((-1,), (-1, -2)), strict=True)
    ]
    if min(map(len, seen)) < 2 or seen[0][-1] != seen[1][-2]:
        raise NpukitError(f"shapes {list(seen[0])} and {list(seen[1])} cannot be multiplied")
    product = (*together([shape[:-2] for shape in seen]), seen[0][-2], seen[1][-1])
    return _seen(product, op.attributes.result, (-1,))


def _seen(shape: Shape, axes: tuple[int, ...], last: tuple[int, ...]) -> Shape:
    """The transposed shape. Raises an error unless the input's last axis moves to a position in `last`, counted from
    the end."""
    if axes and (sorted(axes) != list(range(len(shape))) or axes.index(len(axes) - 1) - len(axes) not in last):
        raise NpukitError(f"a product does not transpose shape {list(shape)} by axes {list(axes)}")
    return transposed(shape, axes)


def _products_of_a_filter(net: Net, op: Op) -> int:
    return net.tensor(op.output).elements * prod(net.tensor(op.inputs[1]).shape[1:])


def _products_of_depthwise(net: Net, op: Op) -> int:
    return net.tensor(op.output).elements * prod(net.tensor(op.inputs[1]).shape[1:3])


def _products_of_transpose(net: Net, op: Op) -> int:
    return net.tensor(op.inputs[0]).elements * prod(net.tensor(op.inputs[1]).shape[:3])


def _products_of_matmul(net: Net, op: Op) -> int:
    return net.tensor(op.output).elements * net.tensor(op.inputs[0]).shape[-1]


def _field_of_conv2d(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Conv2d)
    return [(AxisRule(0), *_window(net, op), AxisRule())]


def _field_of_depthwise(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, DepthwiseConv2d)
    channels = AxisRule(3) if _keeps_channels(net, op) else AxisRule()
    return [(AxisRule(0), *_window(net, op), channels)]


def _field_of_sums(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Sums)
    first, weights = op.attributes.first, net.tensor(op.inputs[1]).shape
    summed = AxisRule(only=(first, first + weights[-1] * op.attributes.groups))
    rank = len(net.tensor(op.output).shape)
    read = (AxisRule(0), *_window(net, op), summed) if len(weights) == 4 else (*same_axes(rank - 1), summed)
    return [read, *(same_axes(rank) for _ in op.inputs[2:])]


def _field_of_dense(net: Net, op: Op) -> list[InputRule]:
    return [(*same_axes(len(net.tensor(op.output).shape) - 1), AxisRule())]


def _field_of_transpose_conv2d(net: Net, op: Op) -> list[InputRule]:
    return [(AxisRule(0), _under_taps(net, op, 0), _under_taps(net, op, 1), AxisRule())]


def _under_taps(net: Net, op: Op, axis: int) -> AxisRule:
    """The rule of rows or columns of a transposed convolution. Each span has at least one position."""
    assert isinstance(op.attributes, TransposeConv2d)
    stride, before, taps = (
        op.attributes.strides[axis],
        op.attributes.padding[axis],
        net.tensor(op.inputs[1]).shape[1 + axis],
    )
    size, made = (net.tensor(name).shape[1 + axis] for name in (op.inputs[0], op.output))
    reached = (
        (max(-(-(place + before - taps + 1) // stride), 0), (place + before) // stride + 1) for place in range(made)
    )
    places = tuple((min(first, size - 1), max(min(end, size), min(first, size - 1) + 1)) for first, end in reached)
    return AxisRule(1 + axis, places=places)


def _field_of_matmul(net: Net, op: Op) -> list[InputRule]:
    assert isinstance(op.attributes, Matmul)
    result = op.attributes.result
    product, rank = untransposed(net.tensor(op.output).shape, result), len(net.tensor(op.output).shape)
    places = untransposed(range(rank), result)
    rules = []
    for name, axes, summed in zip(op.inputs, operand_axes(op), (-1, -2), strict=True):
        shape = [*transposed(net.tensor(name).shape, axes)]
        shape[summed] = 0
        rule = (AxisRule(None if each.axis is None else places[each.axis]) for each in broadcast_rule(shape, product))
        rules.append(untransposed(tuple(rule), axes))
    return rules


def _window(net: Net, op: Op) -> InputRule:
    attributes = op.attributes
    assert isinstance(attributes, Conv2d | DepthwiseConv2d | Sums)
    kernel = net.tensor(op.inputs[1]).shape[1:3]
    return of_window(kernel, attributes.strides, attributes.padding, attributes.dilation)


def _cuttable_without_groups(net: Net, op: Op) -> tuple[int, ...]:
    return (1, 2, 3) if net.tensor(op.inputs[1]).shape[-1] == net.tensor(op.inputs[0]).shape[-1] else ()


def _cuttable_without_multiplier(net: Net, op: Op) -> tuple[int, ...]:
    return (1, 2, 3) if _keeps_channels(net, op) else ()


def _keeps_channels(net: Net, op: Op) -> bool:
    return net.tensor(op.output).shape[-1] == net.tensor(op.inputs[0]).shape[-1]


def _cuttable_sums(net: Net, op: Op) -> tuple[int, ...]:
    return (1, 2, 3) if len(net.tensor(op.output).shape) == 4 else last_axis(net, op)


FILTERS = (
    OpSpec(
        Conv2d,
        _conv2d,
        Example("conv2d(x, w)", constants=_KERNEL),
        operands=(2, 3),
        weights=True,
        field=_field_of_conv2d,
        cuttable=_cuttable_without_groups,
        products=_products_of_a_filter,
        names=names("CONV_2D", "Conv QLinearConv"),
        core_cycles=(24, 3.2, 6),
    ),
    OpSpec(
        DepthwiseConv2d,
        _depthwise,
        Example("depthwise_conv2d(x, w)", constants=_DEPTHWISE),
        operands=(2, 3),
        weights=True,
        field=_field_of_depthwise,
        cuttable=_cuttable_without_multiplier,
        products=_products_of_depthwise,
        names=names("DEPTHWISE_CONV_2D", "Conv QLinearConv"),
        core_cycles=(33, 6.4, 0),
    ),
    OpSpec(
        Dense,
        _dense,
        Example("dense(x, w)", _ROWS, _ROWS, _MATRIX),
        operands=(2, 3),
        weights=True,
        field=_field_of_dense,
        cuttable=cuttable_but(_field_of_dense),
        products=_products_of_a_filter,
        names=names(
            "FULLY_CONNECTED SVDF UNIDIRECTIONAL_SEQUENCE_LSTM",
            "Gemm GRU LSTM MatMul QGemm QLinearMatMul RNN",
        ),
        core_cycles=(20, 3.55, 0),
    ),
    OpSpec(
        Sums,
        _sums,
        Example("sums(x, w)", "int32[1,2,2,4]", constants=_KERNEL),
        operands=(2, 3),
        scales=Scales.FREE,
        field=_field_of_sums,
        cuttable=_cuttable_sums,
        products=_products_of_a_filter,
        core_cycles=(5, 4, 0),
    ),
    OpSpec(
        Total,
        _total,
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
        cuttable=cuttable_but(elementwise),
        core_cycles=(30, 2.4, 40),
    ),
    OpSpec(
        TransposeConv2d,
        _transpose_conv2d,
        Example("transpose_conv2d(x, w)", constants=_KERNEL),
        operands=(2, 3),
        weights=True,
        field=_field_of_transpose_conv2d,
        cuttable=cuttable_but(_field_of_transpose_conv2d),
        products=_products_of_transpose,
        names=names("TRANSPOSE_CONV", "ConvTranspose"),
        core_cycles=(35, 8.2, 0),
    ),
    OpSpec(
        Matmul,
        _matmul,
        Example(
            "matmul(x, t)",
            "int8[1,2,2] scale 0.5 zero 0",
            _ROWS,
            before="op t: int8[1,4,2] scale 0.5 zero 0 = transpose(x) axes=[0, 2, 1]",
        ),
        operands=(2, 2),
        field=_field_of_matmul,
        cuttable=cuttable_but(_field_of_matmul),
        products=_products_of_matmul,
        names=names("BATCH_MATMUL", "MatMul QLinearMatMul"),
        core_cycles=(36, 9.3, 0),
    ),
)
