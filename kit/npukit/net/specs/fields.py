"""Receptive fields by rules: which span of each input axis a span of the output needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Pair

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


def everything(net: Net, op: Op) -> list[InputRule]:
    """Rules of an op that needs all of its inputs for anything."""
    return [(AxisRule(),) * len(net.tensor(name).shape) for name in net.activations(op)]


def elementwise(net: Net, op: Op) -> list[InputRule]:
    """Rules of an op that makes each element of the same element of its inputs, broadcast."""
    shape = net.tensor(op.output).shape
    return [_broadcast(net.tensor(name).shape, shape) for name in net.activations(op)]


def same_axes(count: int) -> InputRule:
    """Rules of the first axes of an input, each of which is that of the output."""
    return tuple(AxisRule(axis) for axis in range(count))


def of_window(kernel: Sequence[int], strides: Pair, before: Sequence[int], dilation: Pair = (1, 1)) -> InputRule:
    """Rules of rows and columns under a window."""
    return tuple(AxisRule(i + 1, strides[i], before[i], (kernel[i] - 1) * dilation[i] + 1) for i in range(2))


def nowhere(net: Net, op: Op) -> tuple[int, ...]:
    """The axes along which an op may be cut that may not."""
    return ()


def last_axis(net: Net, op: Op) -> tuple[int, ...]:
    """The axes along which an op may be cut that may along its last one."""
    return (len(net.tensor(op.output).shape) - 1,)


def _broadcast(shape: Sequence[int], output: Sequence[int]) -> InputRule:
    if len(shape) != len(output):
        return (AxisRule(),) * len(shape)
    return tuple(
        AxisRule(axis) if size == wanted else AxisRule()
        for axis, (size, wanted) in enumerate(zip(shape, output, strict=True))
    )


def _clip(value: Index, size: int) -> Index:
    if isinstance(value, np.ndarray):
        return np.clip(value, 0, size)
    return min(max(value, 0), size)
