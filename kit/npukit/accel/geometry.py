"""Boxes of tensors as heights, widths, windows and paddings, for the registers of any plug-in's hardware."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Mean, Padding, Pair, Sums


@dataclass(frozen=True)
class Plane:
    """A box as height x width pixels of `channels` channels."""

    height: int
    width: int
    channels: int

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @classmethod
    def of(cls, box: Box) -> Plane:
        """The plane of an NHWC box with one batch index, or of rows of features."""
        shape = box.shape
        if len(shape) == 4:
            return cls(shape[1], shape[2], shape[3])
        return cls(1, prod(shape[:-1]), shape[-1])


@dataclass(frozen=True)
class Window:
    """A kernel with strides, dilation and padding."""

    kernel: Pair
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    def padding_of(self, output: Box, source: Box) -> Pair:
        """Top and left padding of a box of the output. `source`: the matching box of the input."""
        if len(output.start) != 4:
            return (0, 0)
        first = (output.start[i + 1] * self.strides[i] - self.padding[i] for i in range(2))
        top, left = (source.start[i + 1] - begin for i, begin in enumerate(first))
        return (top, left)


def window_of(net: Net, op: Op) -> Window:
    """The op's window: a single pixel for a dense layer, all pixels for a mean over pixels."""
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
    """Products per sum of a convolution of one group, of a dense layer, or of sums over some of the channels."""
    channels = net.tensor(op.inputs[1 if isinstance(op.attributes, Sums) else 0]).shape[-1]
    return window_of(net, op).taps * channels
