"""Boxes of tensors as the heights, widths, windows and paddings that hardware is told. For every plug-in."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Mean, Padding, Pair, Sums


@dataclass(frozen=True)
class Plane:
    """A box as height x width pixels of so many channels."""

    height: int
    width: int
    channels: int

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @classmethod
    def of(cls, box: Box) -> Plane:
        """The plane of an NHWC box of one batch index, or of rows of features."""
        shape = box.shape
        if len(shape) == 4:
            return cls(shape[1], shape[2], shape[3])
        return cls(1, prod(shape[:-1]), shape[-1])


@dataclass(frozen=True)
class Window:
    """A kernel and how it moves."""

    kernel: Pair
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    def padding_of(self, output: Box, source: Box) -> Pair:
        """Top and left padding of this box of the output, given the box of the input that is there."""
        if len(output.start) != 4:
            return (0, 0)
        first = (output.start[i + 1] * self.strides[i] - self.padding[i] for i in range(2))
        top, left = (source.start[i + 1] - begin for i, begin in enumerate(first))
        return (top, left)


def window_of(net: Net, op: Op) -> Window:
    """The op's window; a dense layer has one of a single pixel, a mean over the pixels one of all of them."""
    attributes = op.attributes
    filtered = isinstance(attributes, Conv2d | DepthwiseConv2d | Sums)
    if filtered and len(net.tensor(op.inputs[1]).shape) == 4:
        height, width = net.tensor(op.inputs[1]).shape[1:3]
        return Window((height, width), attributes.strides, attributes.dilation, attributes.padding)
    if isinstance(attributes, AveragePool | MaxPool):
        return Window(attributes.window, attributes.strides, (1, 1), attributes.padding)
    if isinstance(attributes, Mean):
        _, height, width, _ = net.tensor(op.inputs[0]).shape
        return Window((height, width))
    return Window((1, 1))


def depth_of(net: Net, op: Op) -> int:
    """Products in one sum of a convolution of one group, or of a dense layer, or of some of its channels."""
    channels = net.tensor(op.inputs[1 if isinstance(op.attributes, Sums) else 0]).shape[-1]
    return window_of(net, op).taps * channels
