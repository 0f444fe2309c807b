"""Receptive fields: which box of each input an op needs for a box of its output, and where an op can be cut.

All splitting follows from one rule a kind: halos, gathers, redistributions are what one tile needs and another has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Fused, Net, Op
from npukit.net.ops import AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Mean, Pair, Sums

Index = TypeVar("Index", int, np.ndarray)


@dataclass(frozen=True)
class AxisRule:
    """Along an axis of an input: [start * stride - before, (stop - 1) * stride - before + reach) of output axis `axis`.

    Without an axis, all of it, or `only` from there to there.
    """

    axis: int | None = None
    stride: int = 1
    before: int = 0
    reach: int = 1
    only: Pair | None = None

    def span(self, start: Index, stop: Index, size: int) -> tuple[Index, Index]:
        """The input span of an output span, where the input has `size` positions."""
        first = start * self.stride - self.before
        return _clip(first, size), _clip((stop - 1) * self.stride - self.before + self.reach, size)

    def all_of(self, size: int) -> Pair:
        """The span of all of an axis of `size` positions, without an output axis."""
        return self.only or (0, size)


InputRule = tuple[AxisRule, ...]
"""A rule for each axis of one input."""

ELEMENTWISE = ("add", "subtract", "multiply", "minimum", "maximum", "prelu", "requantize", "lookup", "quantize")


def needs(net: Net, op: Op, output: Box) -> tuple[Box, ...]:
    """The box of each activation that a box of the op's output needs, in the op's order."""
    names = list(net.activations(op))
    return tuple(
        _apply(rule, output, net.tensor(name).shape) for rule, name in zip(input_rules(net, op), names, strict=True)
    )


def needs_of_many(rule: InputRule, outputs: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The same for an array of boxes, of one input of that shape."""
    result = np.empty((len(outputs), len(shape), 2), np.int64)
    for axis, (axis_rule, size) in enumerate(zip(rule, shape, strict=True)):
        if axis_rule.axis is None:
            result[:, axis] = axis_rule.all_of(size)
        else:
            span = axis_rule.span(outputs[:, axis_rule.axis, 0], outputs[:, axis_rule.axis, 1], size)
            result[:, axis, 0], result[:, axis, 1] = span
    return result


def input_rules(net: Net, op: Op) -> list[InputRule]:
    """A rule for each activation. A kind that is not known here needs all of its inputs."""
    if op.parts != (op,):
        return _rules_of_parts(net, op)
    shapes = [net.tensor(name).shape for name in net.activations(op)]
    rank = len(net.tensor(op.output).shape)
    window = _window(net, op)
    if window is not None and rank == 4:
        return [window]
    if isinstance(op.attributes, Sums):
        return [(*_same(range(rank - 1)), _summed(net, op))]
    if op.kind == "dense" and len(shapes) == 1 and len(shapes[0]) == rank:
        return [(*_same(range(rank - 1)), AxisRule())]
    if isinstance(op.attributes, Mean):
        return [tuple(AxisRule() if axis in op.attributes.axes else AxisRule(axis) for axis in range(rank))]
    if op.kind in ELEMENTWISE:
        return [_broadcast(shape, net.tensor(op.output).shape) for shape in shapes]
    return [(AxisRule(),) * len(shape) for shape in shapes]


def _rules_of_parts(net: Net, op: Op) -> list[InputRule]:
    """Elementwise parts behind the first need what they make, the first what its own rules say."""
    if not _cuttable_parts(net, op):
        return [(AxisRule(),) * len(net.tensor(name).shape) for name in net.activations(op)]
    inside = {name for part in op.parts for name in part.outputs}
    named = [pair for part in op.parts for pair in zip(net.activations(part), input_rules(net, part), strict=True)]
    return [rule for name, rule in named if name not in inside]


def _cuttable_parts(net: Net, op: Op) -> bool:
    """True if a box of the output is made of the same box of what the first part makes."""
    shape = net.tensor(op.output).shape
    alike = (
        part.kind in ELEMENTWISE and all(net.tensor(name).shape == shape for name in (*part.inputs, *part.outputs))
        for part in op.parts[1:]
    )
    return isinstance(op.attributes, Fused) and not op.attributes.whole and all(alike)


def cuttable_axes(net: Net, op: Op) -> tuple[int, ...]:
    """Axes of the output along which the op may be divided between PEs."""
    if op.parts != (op,):
        return cuttable_axes(net, op.parts[0]) if _cuttable_parts(net, op) else ()
    shape = net.tensor(op.output).shape
    if op.kind == "dense" or (isinstance(op.attributes, Sums) and len(shape) != 4):
        return (len(shape) - 1,)
    if isinstance(op.attributes, Mean):
        return (len(shape) - 1,) if len(shape) - 1 not in op.attributes.axes else ()
    if op.kind == "add" or (len(shape) == 4 and _window(net, op) is not None and _channels_are_free(net, op)):
        return (1, 2, 3) if len(shape) == 4 else (len(shape) - 1,)
    return ()


def _channels_are_free(net: Net, op: Op) -> bool:
    """True if a range of output channels is computed like any other: no groups, no depth multiplier."""
    if isinstance(op.attributes, Sums):
        return True
    channels = net.tensor(op.inputs[0]).shape[-1]
    if isinstance(op.attributes, Conv2d):
        return net.tensor(op.inputs[1]).shape[-1] == channels
    return net.tensor(op.output).shape[-1] == channels


def _window(net: Net, op: Op) -> InputRule | None:
    attributes = op.attributes
    if isinstance(attributes, Conv2d | DepthwiseConv2d | Sums):
        if len(net.tensor(op.inputs[1]).shape) != 4:
            return None
        kernel, dilation = net.tensor(op.inputs[1]).shape[1:3], attributes.dilation
    elif isinstance(attributes, AveragePool | MaxPool):
        kernel, dilation = attributes.window, (1, 1)
    else:
        return None
    rows, columns = (
        AxisRule(i + 1, attributes.strides[i], attributes.padding[i], (kernel[i] - 1) * dilation[i] + 1)
        for i in range(2)
    )
    if isinstance(attributes, Sums):
        return AxisRule(0), rows, columns, _summed(net, op)
    mixes = isinstance(attributes, Conv2d) or not _channels_are_free(net, op)
    return AxisRule(0), rows, columns, AxisRule() if mixes else AxisRule(3)


def _summed(net: Net, op: Op) -> AxisRule:
    """The channels that are summed up over."""
    assert isinstance(op.attributes, Sums)
    first = op.attributes.first
    return AxisRule(only=(first, first + net.tensor(op.inputs[1]).shape[-1]))


def _broadcast(shape: Sequence[int], output: Sequence[int]) -> InputRule:
    if len(shape) != len(output):
        return (AxisRule(),) * len(shape)
    return tuple(
        AxisRule(axis) if size == wanted else AxisRule()
        for axis, (size, wanted) in enumerate(zip(shape, output, strict=True))
    )


def _same(axes: Sequence[int]) -> InputRule:
    return tuple(AxisRule(axis) for axis in axes)


def _apply(rule: InputRule, output: Box, shape: Sequence[int]) -> Box:
    spans = [
        r.all_of(size) if r.axis is None else r.span(output.start[r.axis], output.stop[r.axis], size)
        for r, size in zip(rule, shape, strict=True)
    ]
    return Box(tuple(start for start, _ in spans), tuple(stop for _, stop in spans))


def _clip(value: Index, size: int) -> Index:
    if isinstance(value, np.ndarray):
        return np.clip(value, 0, size)
    return min(max(value, 0), size)
