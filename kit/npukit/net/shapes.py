"""The shape each kind of op gives its output, and what it asks of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.ops import (
    ArgMax,
    AveragePool,
    Concat,
    Conv2d,
    DepthwiseConv2d,
    MaxPool,
    Mean,
    Pad,
    Padding,
    Pair,
    ResizeBilinear,
    ResizeNearest,
    Slice,
    Sums,
    TopK,
    Transpose,
    TransposeConv2d,
)

Shape = tuple[int, ...]


def output_shape(net: Net, op: Op) -> Shape:
    """The shape the op's output must have; an error without the op's name if its inputs do not suit it."""
    return RULES[op.kind](net, op)


def windows(size: Shape, window: Pair, strides: Pair, padding: Padding, dilation: Pair) -> Pair:
    """The number of window positions that fit, down and across."""
    if min(*strides, *dilation, *window) < 1 or min(padding) < 0:
        raise NpukitError(f"window {window}, strides {strides}, dilation {dilation}, padding {padding} make no sense")
    totals = (size[0] + padding[0] + padding[2], size[1] + padding[1] + padding[3])
    counts = [
        (total - (extent - 1) * step - 1) // stride + 1
        for total, extent, step, stride in zip(totals, window, dilation, strides, strict=True)
    ]
    if min(counts) < 1:
        raise NpukitError(f"a window of {window} does not fit into {size[0]} x {size[1]}")
    return counts[0], counts[1]


def _images(net: Net, op: Op) -> Shape:
    shape = net.tensor(op.inputs[0]).shape
    if len(shape) != 4:
        raise NpukitError(f"its input has shape {list(shape)}, not NHWC")
    return shape


def _conv2d(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.attributes, _images(net, op), net.tensor(op.inputs[1]).shape
    assert isinstance(attributes, Conv2d)
    if len(weights) != 4 or shape[3] % weights[3] or weights[0] % (shape[3] // weights[3]):
        raise NpukitError(f"weights {list(weights)} do not suit an input of {shape[3]} channels")
    rows, columns = windows(
        shape[1:3], (weights[1], weights[2]), attributes.strides, attributes.padding, attributes.dilation
    )
    return shape[0], rows, columns, weights[0]


def _depthwise(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.attributes, _images(net, op), net.tensor(op.inputs[1]).shape
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
    """The shape of partial sums: that of a convolution or a dense layer of the channels that the weights have."""
    attributes, shape, weights = op.attributes, net.tensor(op.inputs[0]).shape, net.tensor(op.inputs[1]).shape
    assert isinstance(attributes, Sums)
    if not shape or not 0 <= attributes.first <= shape[-1] - weights[-1] or len(weights) not in (2, len(shape)):
        raise NpukitError(f"weights {list(weights)} from channel {attributes.first} on do not suit {list(shape)}")
    if len(weights) == 2:
        return *shape[:-1], weights[0]
    rows, columns = windows(
        shape[1:3], (weights[1], weights[2]), attributes.strides, attributes.padding, attributes.dilation
    )
    return shape[0], rows, columns, weights[0]


def _total(net: Net, op: Op) -> Shape:
    *sums, bias, multipliers, shifts = (net.tensor(name).shape for name in op.inputs)
    if len({*sums}) != 1 or {bias, multipliers, shifts} != {sums[0][-1:]}:
        raise NpukitError("its sums, or its biases, multipliers and shifts, have different shapes")
    return sums[0]


def _pool(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, _images(net, op)
    assert isinstance(attributes, AveragePool | MaxPool)
    if any(pad >= side for pad, side in zip(attributes.padding, attributes.window * 2, strict=True)):
        raise NpukitError(f"padding {attributes.padding} leaves windows of {attributes.window} empty")
    rows, columns = windows(shape[1:3], attributes.window, attributes.strides, attributes.padding, (1, 1))
    return shape[0], rows, columns, shape[3]


def _same(net: Net, op: Op) -> Shape:
    return net.tensor(op.inputs[0]).shape


def _broadcast(net: Net, op: Op) -> Shape:
    return _together([net.tensor(name).shape for name in op.inputs])


def _together(shapes: Sequence[Shape]) -> Shape:
    """The shape that all of them broadcast to."""
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    sizes = [{size for size in axis if size != 1} or {1} for axis in zip(*aligned, strict=True)]
    if any(len(found) > 1 for found in sizes):
        raise NpukitError(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together")
    return tuple(found.pop() for found in sizes)


def _reshape(net: Net, op: Op) -> Shape:
    before, after = net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape
    if prod(before) != prod(after):
        raise NpukitError(f"{list(before)} cannot be seen as {list(after)}")
    return after


def _transpose(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Transpose)
    if sorted(attributes.axes) != list(range(len(shape))):
        raise NpukitError(f"axes {attributes.axes} do not suit an input of shape {list(shape)}")
    return tuple(shape[axis] for axis in attributes.axes)


def _lookup(net: Net, op: Op) -> Shape:
    table = net.tensor(op.inputs[1])
    if table.shape != (256,) or table.dtype != "int8" or table.name not in net.constants:
        raise NpukitError(f"its table is {table.dtype}{list(table.shape)}, not a constant int8[256]")
    return net.tensor(op.inputs[0]).shape


def _mean(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, Mean)
    _check_axes(attributes.axes, shape)
    return tuple(1 if axis in attributes.axes else size for axis, size in enumerate(shape))


def _check_axes(axes: tuple[int, ...], shape: Shape) -> None:
    if len(set(axes)) != len(axes) or not all(0 <= axis < len(shape) for axis in axes):
        raise NpukitError(f"axes {axes} do not suit an input of shape {list(shape)}")


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
    _check_axes((attributes.axis,), shapes[0])
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


def _transpose_conv2d(net: Net, op: Op) -> Shape:
    attributes, shape, weights = op.attributes, _images(net, op), net.tensor(op.inputs[1]).shape
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
    first, second = (net.tensor(name).shape for name in op.inputs)
    if min(len(first), len(second)) < 2 or first[-1] != second[-2]:
        raise NpukitError(f"shapes {list(first)} and {list(second)} cannot be multiplied")
    return *_together([first[:-2], second[:-2]]), first[-2], second[-1]


def _resize(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, _images(net, op)
    assert isinstance(attributes, ResizeNearest | ResizeBilinear)
    for places, size in zip((attributes.rows, attributes.columns), shape[1:3], strict=True):
        used = [place for entry in places for place in (entry[:2] if isinstance(entry, tuple) else (entry,))]
        if not used or not all(0 <= place < size for place in used):
            raise NpukitError(f"it takes rows or columns that an input of shape {list(shape)} has not")
    return shape[0], len(attributes.rows), len(attributes.columns), shape[3]


def _argmax(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, ArgMax)
    _check_axes((attributes.axis,), shape)
    return shape[: attributes.axis] + shape[attributes.axis + 1 :]


def _quantize(net: Net, op: Op) -> Shape:
    shape = net.tensor(op.inputs[0]).shape
    for name in op.inputs[1:]:
        given = net.tensor(name)
        if given.dtype != "float32" or name not in net.constants or _together([shape, given.shape]) != shape:
            raise NpukitError(f"its {name} is no float32 constant for an input of shape {list(shape)}")
    return shape


LARGEST_SEARCH = 1 << 16
"""Elements among which the largest can be found: place and value together fit 32 bits."""


def _top_k(net: Net, op: Op) -> Shape:
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    assert isinstance(attributes, TopK)
    if not shape or not 1 <= attributes.count <= shape[-1] or shape[-1] > LARGEST_SEARCH:
        raise NpukitError(f"there is no top {attributes.count} in an input of shape {list(shape)}")
    return *shape[:-1], attributes.count


def _stated(net: Net, op: Op) -> Shape:
    """The shape that the op states: it is not to be read off the code."""
    return net.tensor(op.output).shape


RULES: Mapping[str, Callable[[Net, Op], Shape]] = {
    "add": _broadcast,
    "argmax": _argmax,
    "average_pool": _pool,
    "concat": _concat,
    "conv2d": _conv2d,
    "dense": _dense,
    "depthwise_conv2d": _depthwise,
    "lookup": _lookup,
    "matmul": _matmul,
    "max_pool": _pool,
    "maximum": _broadcast,
    "mean": _mean,
    "minimum": _broadcast,
    "multiply": _broadcast,
    "pad": _pad,
    "prelu": _broadcast,
    "quantize": _quantize,
    "requantize": _same,
    "reshape": _reshape,
    "resize_bilinear": _resize,
    "resize_nearest": _resize,
    "slice": _slice,
    "softmax": _same,
    "subtract": _broadcast,
    "sums": _sums,
    "top_k": _top_k,
    "total": _total,
    "transpose": _transpose,
    "transpose_conv2d": _transpose_conv2d,
    "tvm_code": _stated,
}
