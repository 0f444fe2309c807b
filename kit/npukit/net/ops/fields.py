"""Receptive fields as rules: the input span needed for an output span; parts of constant operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from npukit.net.attributes import Pair
from npukit.net.box import Box
from npukit.net.net import Net, Op

Index = TypeVar("Index", int, np.ndarray)


@dataclass(frozen=True)
class AxisRule:
    """Input span for output span [start, stop) of axis `axis`: [start * stride - before, (stop - 1) * stride - before +
    reach).

    If given, `places` states the input span of each output position instead. With `axis` None, the span is the whole
    input axis, or `only`.
    """

    axis: int | None = None
    stride: int = 1
    before: int = 0
    reach: int = 1
    only: Pair | None = None
    places: tuple[Pair, ...] = ()

    def span(self, start: Index, stop: Index, size: int) -> tuple[Index, Index]:
        """The input span for an output span, clipped to an input of `size` positions."""
        if self.places:
            if isinstance(start, np.ndarray):
                pairs = np.column_stack((start, stop)).ravel()
                lowest, highest = (limit.reduceat(ends, pairs)[::2] for limit, ends in self._ends)
                return lowest, highest
            chosen = self.places[start : int(stop)]
            return min(first for first, _ in chosen), max(end for _, end in chosen)
        first = start * self.stride - self.before
        return _clip(first, size), _clip((stop - 1) * self.stride - self.before + self.reach, size)

    @cached_property
    def _ends(self) -> tuple[tuple[np.ufunc, np.ndarray], ...]:
        """Starts and ends of all places. The last is repeated, because `reduceat` needs an entry at `stop`."""
        first, end = np.array((*self.places, self.places[-1]), np.int64).T
        return (np.minimum, first), (np.maximum, end)

    def all_of(self, size: int) -> Pair:
        """The input span of a rule without an output axis. `size`: positions of the input axis."""
        return self.only or (0, size)


InputRule = tuple[AxisRule, ...]
"""The rules of an input, one per axis."""

Constant = tuple[str, np.ndarray, str]
"""Role, values and description of a constant of a tile."""

Operand = Callable[[Net, Op, str, Box], Box]
"""Function from an operand's name and a box of the output to the needed part of the operand."""


def everything(net: Net, op: Op) -> list[InputRule]:
    """Rules of an op whose every output depends on all inputs."""
    return [(AxisRule(),) * len(net.tensor(name).shape) for name in net.activations(op)]


def elementwise(net: Net, op: Op) -> list[InputRule]:
    """Rules of an elementwise op, whose inputs broadcast to the output."""
    shape = net.tensor(op.output).shape
    return [broadcast_rule(net.tensor(name).shape, shape) for name in net.activations(op)]


def whole_rows(net: Net, op: Op) -> list[InputRule]:
    """Rules of an op that needs whole rows along the last axis."""
    return [(*same_axes(len(net.tensor(op.inputs[0]).shape) - 1), AxisRule())]


def same_axes(count: int) -> InputRule:
    """Rules of the first `count` input axes if they equal the output's."""
    return tuple(AxisRule(axis) for axis in range(count))


def same_axes_but(net: Net, op: Op, whole: Sequence[int]) -> InputRule:
    """Rules of an input whose axes equal the output's, except for axes that are needed `whole`."""
    rank = len(net.tensor(op.output).shape)
    return tuple(AxisRule() if axis in whole else AxisRule(axis) for axis in range(rank))


def of_window(kernel: Sequence[int], strides: Pair, before: Sequence[int], dilation: Pair = (1, 1)) -> InputRule:
    """Rules of rows and columns of an image under a sliding window."""
    return tuple(AxisRule(i + 1, strides[i], before[i], (kernel[i] - 1) * dilation[i] + 1) for i in range(2))


def last_axis(net: Net, op: Op) -> tuple[int, ...]:
    """The last axis of an op's output."""
    return (len(net.tensor(op.output).shape) - 1,)


def boxed_axes(shape: Sequence[int]) -> tuple[int, ...]:
    """The axes along which a box can be smaller than its tensor. Kernels have strides of rows and pixels."""
    if len(shape) == 4:
        return (1, 2, 3) if shape[0] == 1 else (0, 2, 3)
    long = (axis for axis, size in enumerate(shape) if size > 1)
    return tuple(sorted({*list(long)[:1], len(shape) - 1})) if shape else ()


def broadcast_rule(shape: Sequence[int], output: Sequence[int]) -> InputRule:
    """The rule of an input whose shape broadcasts to the output's."""
    missing = len(output) - len(shape)
    return tuple(AxisRule(axis) if size == output[axis] else AxisRule() for axis, size in enumerate(shape, missing))


def box_needed(rule: InputRule, output: Box, shape: Sequence[int]) -> Box:
    """The box of an input of shape `shape` needed for a box of the output."""
    spans = [
        r.all_of(size) if r.axis is None else r.span(output.start[r.axis], output.stop[r.axis], size)
        for r, size in zip(rule, shape, strict=True)
    ]
    return Box(tuple(start for start, _ in spans), tuple(stop for _, stop in spans))


def broadcast_part(net: Net, op: Op, name: str, output: Box) -> Box:
    """The part of an operand that broadcasts to a box of the output."""
    shape = net.tensor(name).shape
    starts, stops = (corner[len(corner) - len(shape) :] for corner in (output.start, output.stop))
    spans = [(0, 1) if size == 1 else span for size, *span in zip(shape, starts, stops, strict=True)]
    return Box(tuple(a for a, _ in spans), tuple(b for _, b in spans))


def constant_operands(net: Net, op: Op, output: Box, operand: Operand) -> Iterator[Constant]:
    """The constant operands of a tile, cut to the parts that `operand` returns."""
    names = [name for name in op.inputs if name in net.constants]
    roles = ["operand", *(f"operand_{number}" for number in range(2, len(names) + 1))]
    for role, name in zip(roles, names, strict=False):
        yield role, net.constants[name][operand(net, op, name, output).slices], "a constant operand"


def first_of_part(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    """The index in its row of the first number to compute, if a tile computes part of each row. The index is data: PEs
    with parts of equal length have the same code."""
    if output.shape[-1:] != net.tensor(op.output).shape[-1:]:
        yield "first", np.array(output.start[-1:], np.int32), "of each row's numbers that is made"


def _clip(value: Index, size: int) -> Index:
    if isinstance(value, np.ndarray):
        return np.minimum(np.maximum(value, 0), size)
    return min(max(value, 0), size)
