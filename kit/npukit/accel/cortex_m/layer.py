"""A view of an op for the kernels: its tensors are height x width x channels.

It holds the net and the op; what it adds is the range of its input, and values that are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from npukit.accel.cortex_m.layout import Layout, Shape
from npukit.accel.geometry import Window, window_of
from npukit.net.net import Net, Op
from npukit.net.ops import Add, Attributes, AveragePool, Conv2d, Dense, DepthwiseConv2d, MaxPool, Pair, Reshape, TvmCode
from npukit.net.requantize import Requantization, quantization, requantization
from npukit.net.value_ranges import Filter, Range, accumulators, filter_of

INT8: Pair = (-128, 127)


@dataclass(frozen=True, eq=False)
class Layer:
    """An op that has kernels; a reshape to the same shape is a copy. `input_range` is what its input can hold.

    `helium` says that the core has vector instructions.
    """

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
        """The place of the first window's first tap in memory."""
        top, left, _, _ = self.window.padding
        return source.origin - top * source.row_stride - left * source.column_stride

    def border_refusal(self, source: Layout) -> str | None:
        """Why windows leave what is in memory, or None."""
        if all(have >= need for have, need in zip(source.border, self.window.padding, strict=True)):
            return None
        return f"the input has the border {source.border}, the padding needs {self.window.padding}"

    @cached_property
    def requantization(self) -> Requantization:
        return requantization(self.net, self.op)

    @cached_property
    def filter(self) -> Filter:
        """Weights and biases of a layer that has some."""
        found = filter_of(self.net, self.op)
        assert found is not None, self.op
        return found

    @cached_property
    def accumulators(self) -> Range:
        """The interval of each output channel's accumulator, bias included. Partial sums may leave it."""
        return accumulators(self.filter, self.input_range)


def shape_of(net: Net, name: str) -> Shape:
    """Height, width and channels; a tensor of fewer dimensions is a line of pixels, one of more lies flat."""
    shape = net.tensor(name).shape
    return pixels(shape) or (1, 1, net.tensor(name).elements)


def pixels(shape: tuple[int, ...]) -> Shape | None:
    """A tensor's shape as height, width and channels; None of a batch."""
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) > 3:
        return None
    height, width, channels = (1,) * (3 - len(shape)) + shape
    return height, width, channels


def refusal(net: Net, op: Op) -> str:
    """Why there are no kernels for an op; empty if there are."""
    find = _REFUSALS.get(type(op.attributes))
    names = (*net.activations(op), *op.outputs)
    if any(pixels(net.tensor(name).shape) is None for name in names):
        return "it has a batch"
    if find is None:
        if isinstance(op.attributes, TvmCode):
            return "as it is given" if op.attributes.given else "made by TVM"
        return f"there are no kernels for {op.kind}"
    if any(net.tensor(name).dtype != "int8" for name in names):
        return "an activation is not int8"
    return find(net, op)


def _filter_refusal(net: Net, op: Op) -> str:
    weights = net.constant(op, 1)
    if weights is None:
        return "its weights are not constant"
    if filter_of(net, op) is not None:
        return ""
    if isinstance(op.attributes, Dense):
        return "it has several rows of inputs"
    if isinstance(op.attributes, Conv2d):
        return "it has groups"
    grown = weights.shape[3] != net.tensor(op.inputs[0]).shape[-1]
    return "it has several outputs for each channel" if grown else "it is dilated"


def _add_refusal(net: Net, op: Op) -> str:
    alike = len(list(net.activations(op))) == 2 and net.tensor(op.inputs[0]).shape == net.tensor(op.inputs[1]).shape
    return "" if alike else "it is not a sum of two activations of one shape"


def _pool_refusal(net: Net, op: Op) -> str:
    padding = window_of(net, op).padding
    return f"windows reach outside the input by {padding}" if any(padding) else ""


_REFUSALS: Mapping[type[Attributes], Callable[[Net, Op], str]] = {
    **dict.fromkeys((Conv2d, DepthwiseConv2d, Dense), _filter_refusal),
    **dict.fromkeys((AveragePool, MaxPool), _pool_refusal),
    Reshape: lambda net, op: "",
    Add: _add_refusal,
}
