"""Checks of an op's window sizes and scratch memory against the limits."""

from __future__ import annotations

from math import prod

from npukit.net.limits import COLUMNS, EXTENT, SCRATCH, WINDOW
from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Sums, TransposeConv2d, TvmCode


def check_extent(net: Net, op: Op) -> None:
    """Raise an error with the limit if the op's windows or scratch memory exceed it."""
    attributes = op.attributes
    if isinstance(attributes, TvmCode):
        SCRATCH.check(attributes.work_bytes, "it")
    if not isinstance(attributes, AveragePool | Conv2d | DepthwiseConv2d | MaxPool | Sums | TransposeConv2d):
        return
    if any(len(net.tensor(name).shape) != 4 for name in op.inputs[:2]):
        return  # a dense layer's sums have no windows
    window = attributes.window if isinstance(attributes, AveragePool | MaxPool) else net.tensor(op.inputs[1]).shape[1:3]
    WINDOW.check(prod(window), "it")
    for size in _extents(net, op, window):
        EXTENT.check(size, "it")
    channels = 1 if isinstance(attributes, DepthwiseConv2d) else net.tensor(op.inputs[0]).shape[-1]
    channels = net.tensor(op.output).shape[-1] if isinstance(attributes, DepthwiseConv2d) else channels
    COLUMNS.check(prod(net.tensor(op.output).shape[:3]) * prod(window) * channels, "it")


def _extents(net: Net, op: Op, window: tuple[int, ...]) -> tuple[int, ...]:
    """Padded image sides, dilated window sides and strides."""
    attributes, (_, height, width, _) = op.attributes, net.tensor(op.inputs[0]).shape
    top, left, bottom, right = (max(side, 0) for side in attributes.padding)  # type: ignore[attr-defined]
    gaps = getattr(attributes, "dilation", (1, 1))
    dilated = (extent * gap for extent, gap in zip(window, gaps, strict=True))
    return (height + top + bottom, width + left + right, *dilated, *attributes.strides)  # type: ignore[attr-defined]
