"""The shape each kind of op gives its output, and what it asks of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Padding, Pair, Transpose

Shape = tuple[int, ...]


def output_shape(net: Net, op: Op) -> Shape:
    """The shape the op's output must have; an error without the op's name if its inputs do not suit it."""
    return RULES[op.kind](net, op)


def windows(size: Shape, window: Pair, strides: Pair, padding: Padding, dilation: Pair) -> Pair:
    """How many window positions fit, down and across."""
    totals = (size[0] + padding[0] + padding[2], size[1] + padding[1] + padding[3])
    counts = [
        (total - (extent - 1) * step - 1) // stride + 1
        for total, extent, step, stride in zip(totals, window, dilation, strides, strict=True)
    ]
    if min(*strides, *dilation, *window) < 1 or min(padding) < 0:
        raise NpukitError(f"window {window}, strides {strides}, dilation {dilation}, padding {padding} make no sense")
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
    shapes = [net.tensor(name).shape for name in op.inputs]
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


RULES: Mapping[str, Callable[[Net, Op], Shape]] = {
    "add": _broadcast,
    "average_pool": _pool,
    "conv2d": _conv2d,
    "dense": _dense,
    "depthwise_conv2d": _depthwise,
    "max_pool": _pool,
    "requantize": _same,
    "reshape": _reshape,
    "softmax": _same,
    "transpose": _transpose,
}
