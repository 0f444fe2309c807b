"""Shapes: checks of input shapes and inference of output shapes, shared by several op kinds, and sliding windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Padding, Pair
from npukit.net.net import Net, Op

Shape = tuple[int, ...]


def windows(size: Shape, window: Pair, strides: Pair, padding: Padding, dilation: Pair) -> Pair:
    """The number of window positions, down and across."""
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


def images(net: Net, op: Op) -> Shape:
    """The shape of the first input, checked to be NHWC."""
    shape = net.tensor(op.inputs[0]).shape
    if len(shape) != 4:
        raise NpukitError(f"its input has shape {list(shape)}, not NHWC")
    return shape


def same(net: Net, op: Op) -> Shape:
    """The shape of the first input."""
    return net.tensor(op.inputs[0]).shape


def broadcast(net: Net, op: Op) -> Shape:
    """The broadcast shape of all inputs."""
    return together([net.tensor(name).shape for name in op.inputs])


def together(shapes: Sequence[Shape]) -> Shape:
    """The common broadcast shape of `shapes`."""
    rank = max(map(len, shapes))
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    sizes = [{size for size in axis if size != 1} or {1} for axis in zip(*aligned, strict=True)]
    if any(len(found) > 1 for found in sizes):
        raise NpukitError(f"shapes {' and '.join(str(list(shape)) for shape in shapes)} do not go together")
    return tuple(found.pop() for found in sizes)


def check_axes(axes: tuple[int, ...], shape: Shape) -> None:
    """Raise an error if an axis is repeated or is not in the shape."""
    if len(set(axes)) != len(axes) or not all(0 <= axis < len(shape) for axis in axes):
        raise NpukitError(f"axes {axes} do not suit an input of shape {list(shape)}")


def merge_cases(value: np.ndarray) -> np.ndarray:
    """[case, N, H, W, C] reshaped to [image, H, W, C]."""
    return value.reshape(-1, *value.shape[2:])


def split_cases(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Images reshaped back to [case, *shape]."""
    return value.reshape(-1, *shape)


def padded(images: np.ndarray, padding: Padding, value: int) -> np.ndarray:
    top, left, bottom, right = padding
    if not any(padding):
        return images
    return np.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def taps(
    source: np.ndarray, window: tuple[int, ...], strides: Pair, dilation: Pair, size: tuple[int, ...]
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Each tap (y, x) of a window in row-major order, with the inputs [image, *size, channel] at all positions."""
    for y in range(window[0]):
        for x in range(window[1]):
            top, left = y * dilation[0], x * dilation[1]
            rows = slice(top, top + (size[0] - 1) * strides[0] + 1, strides[0])
            columns = slice(left, left + (size[1] - 1) * strides[1] + 1, strides[1])
            yield y, x, source[:, rows, columns]
