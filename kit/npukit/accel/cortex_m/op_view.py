"""An op of the net in the form that the core's kernels read: tensors are height x width x channels.

No second representation of layers: every property is the net's, computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from npukit.accel.cortex_m.layout import Layout, Shape
from npukit.accel.geometry import Window, window_of
from npukit.net.net import Net, Op
from npukit.net.ops import Attributes, Pair
from npukit.net.requantize import Requantization, quantization, requantization
from npukit.net.value_ranges import LayerWeights, Range, accumulators, filter_of

INT8: Pair = (-128, 127)


@dataclass(frozen=True, eq=False)
class OpView:
    """An op with kernels. A reshape to the same shape is a copy. `input_range`: possible values of the input. `helium`:
    True if the core has vector instructions."""

    net: Net
    op: Op
    input_range: Range | None = None
    helium: bool = False

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def attributes(self) -> Attributes:
        return self.op.attributes

    @cached_property
    def input_shape(self) -> Shape:
        return shape_of(self.net, self.op.inputs[0])

    @cached_property
    def output_shape(self) -> Shape:
        return shape_of(self.net, self.op.output)

    @property
    def rows(self) -> int:
        """Pixels of the output: the rows of a dense layer."""
        return self.output_shape[0] * self.output_shape[1]

    @property
    def input_zero(self) -> int:
        return quantization(self.net, self.op.inputs[0]).zero_point

    @property
    def output_zero(self) -> int:
        return quantization(self.net, self.op.output).zero_point

    @property
    def clamp(self) -> Pair:
        return getattr(self.attributes, "clamp", INT8)

    @cached_property
    def window(self) -> Window:
        return window_of(self.net, self.op)

    def window_origin(self, source: Layout) -> int:
        """The offset in bytes of the first window's first tap."""
        top, left, _, _ = self.window.padding
        return source.origin - top * source.row_stride - left * source.column_stride

    def border_refusal(self, source: Layout) -> str | None:
        """The reason why windows exceed the tensor and its border, or None."""
        if all(have >= need for have, need in zip(source.border, self.window.padding, strict=True)):
            return None
        return f"the input has the border {source.border}, the padding needs {self.window.padding}"

    @cached_property
    def requantization(self) -> Requantization:
        return requantization(self.net, self.op)

    @cached_property
    def filter(self) -> LayerWeights:
        """The weights and biases of a layer with weights."""
        found = filter_of(self.net, self.op, rows=True)
        assert found is not None, self.op
        return found

    @cached_property
    def accumulators(self) -> Range:
        """The interval of each output channel's accumulator, bias included. Partial sums may exceed it."""
        return accumulators(self.filter, self.input_range)


def shape_of(net: Net, name: str) -> Shape:
    """Height, width and channels. A tensor of fewer dimensions is a line of pixels; a tensor of more is flattened."""
    shape = net.tensor(name).shape
    return pixels(shape) or (1, 1, net.tensor(name).elements)


def pixels(shape: tuple[int, ...]) -> Shape | None:
    """A tensor's shape as height, width and channels; None for a batch."""
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) > 3:
        return None
    height, width, channels = (1,) * (3 - len(shape)) + shape
    return height, width, channels
