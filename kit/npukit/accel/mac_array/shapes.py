"""What of an op the command and its cost need: its window, its depth, the better orientation."""

from __future__ import annotations

from npukit.accel.mac_array.cycles import Figures
from npukit.accel.mac_array.geometry import Plane, Window
from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool


def window_of(net: Net, op: Op) -> Window:
    """The op's window; a dense layer has one of a single pixel."""
    attributes = op.attributes
    if isinstance(attributes, Conv2d | DepthwiseConv2d):
        height, width = net.tensor(op.inputs[1]).shape[1:3]
        return Window((height, width), attributes.strides, attributes.dilation, attributes.padding[:2])
    if isinstance(attributes, AveragePool | MaxPool):
        return Window(attributes.window, attributes.strides, (1, 1), attributes.padding[:2])
    return Window((1, 1))


def depth_of(net: Net, op: Op) -> int:
    """Products in one sum of a convolution or dense layer."""
    return window_of(net, op).taps * net.tensor(op.inputs[0]).shape[-1]


def along_pixels(figures: Figures, plane: Plane, depth: int) -> bool:
    """Whether the wide axis is better laid along pixels than along channels."""
    pixels, channels = (
        figures.convolution(plane.pixels, plane.channels, depth, along_pixels=choice) for choice in (True, False)
    )
    return pixels < channels


def cycles_of(net: Net, op: Op, plane: Plane, figures: Figures) -> int:
    """Cycles of the command for this plane of the op's output."""
    kind, taps = op.kind, window_of(net, op).taps
    if kind == "add":
        return figures.addition(plane.pixels * plane.channels)
    if kind == "depthwise_conv2d":
        return figures.depthwise(plane.pixels, plane.channels, taps)
    if kind in ("average_pool", "max_pool"):
        return figures.pool(plane.pixels, plane.channels, taps)
    depth = depth_of(net, op)
    choice = along_pixels(figures, plane, depth)
    return figures.convolution(plane.pixels, plane.channels, depth, along_pixels=choice)
