"""Groups of results whose channels can be scaled together: between linear layers, through sums and activations.

Weights and biases at both ends change, and the float function stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import relax

from npukit.net.importer.expressions import callee, operands, shape_of
from npukit.net.tensor import along
from npukit.quantize.canonical import channel_axis_of, foldable, weight_axis
from npukit.quantize.function import constant, outputs, parameters, variables
from npukit.quantize.points import Points
from npukit.quantize.target.chains import TOGETHER, Constants, changes_channels, channels_read, input_axis, weights_of

SCALABLE = ("nn.relu", "nn.leakyrelu", "abs", "negative", "nn.max_pool2d", "nn.avg_pool2d", "mean")
"""Operators scaling each channel of the result as the channel of the input, for factors above zero."""
OF_EQUALS = ("add", "subtract", "maximum", "minimum")
"""Operators scaling each channel of the result as the channels of both inputs."""

ENDLESS = 1e30
"""An upper limit above is none."""
_LEAST = 2.0**-16
"""Least factor of a channel, relative to the largest channel."""


@dataclass
class TiedChannels:
    """`results`: all results whose channels are scaled together. `products`: the linear ops with such results.
    `readers`: the linear ops that read the results."""

    products: list[Any] = field(default_factory=list)
    readers: list[Any] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)

    def part(self, points: Points, variable: Any, factors: np.ndarray) -> np.ndarray:
        """The factors of a result's channels. Padding adds channels behind the others."""
        return factors[: shape_of(variable)[self.axis(points)]]

    def axis(self, points: Points) -> int:
        """The axis of channels in the results."""
        return channel_axis_of(points.values[self.products[0]])


class _Sets:
    """Variables joined to sets; a blocked set cannot be scaled."""

    def __init__(self) -> None:
        self._parents, self.blocked = dict[Any, Any](), set[Any]()

    def root(self, variable: Any) -> Any:
        while (parent := self._parents.get(variable, variable)) is not variable:
            variable = parent
        return variable

    def join(self, first: Any, second: Any) -> None:
        self._parents[self.root(first)] = self.root(second)

    def block(self, given: list[Any]) -> None:
        self.blocked |= {*given}


def groups(points: Points) -> list[TiedChannels]:
    """All groups of a function."""
    sets, found = _Sets(), dict[Any, TiedChannels]()
    sets.block([*parameters(points.module), *outputs(points.module)])
    for variable, value in points.values.items():
        if not foldable(value):
            _join(points, sets, variable, value)
    blocked = {sets.root(each) for each in sets.blocked}
    for variable, value in points.values.items():
        found.setdefault(sets.root(variable), TiedChannels()).results.append(variable)
        if foldable(value):
            found[sets.root(variable)].products.append(variable)
            found.setdefault(sets.root(value.args[0]), TiedChannels()).readers.append(variable)
    return [each for root, each in found.items() if root not in blocked and _is_whole(points, each)]


def _join(points: Points, sets: _Sets, variable: Any, value: Any) -> None:
    """Joins a result to the operands scaled with it; blocks both for other operators."""
    read = variables(value)
    if points.inside(variable) is not None and foldable(points.values.get(points.inside(variable))):
        sets.join(variable, points.inside(variable))
    elif _scales(value):
        for each in read:
            sets.join(variable, each)
    else:
        sets.block([variable, *read])


def _scales(call: Any) -> bool:
    """True if a factor above zero passes from all variables through the operator."""
    numbers = [constant(operand) for operand in operands(call) if constant(operand) is not None]
    if callee(call) == "nn.pad":
        return float(call.attrs.pad_value) == 0
    if callee(call) in OF_EQUALS:
        shapes = {tuple(shape_of(each)) for each in variables(call)}
        return len(shapes) == 1 and not any(map(np.any, numbers))
    if callee(call) == "clip":
        low, high = (float(number.item()) for number in numbers)
        return low == 0 and high > ENDLESS
    return callee(call) in SCALABLE or (callee(call) == "multiply" and len(numbers) == 1)


def _is_whole(points: Points, group: TiedChannels) -> bool:
    """True if linear ops are at both ends, and all agree on the channels."""
    if not group.products or not group.readers:
        return False
    axis, inner = group.axis(points), (points.values[each] for each in group.results)
    alike = {channel_axis_of(points.values[each]) for each in group.products}
    read = all(channels_read(points.values[each], axis) for each in group.readers)
    return len(alike) == 1 and read and not any(changes_channels(each, axis, ends=1) for each in inner)


def factors_of(peaks: np.ndarray, power: float) -> np.ndarray:
    """The factors of channels, at most 1. With the power 1 all channels get equal ranges. A channel of zeros keeps the
    range."""
    relative = peaks / max(float(peaks.max()), np.finfo(np.float32).tiny)
    return np.where(peaks > 0, np.maximum(relative, _LEAST), 1.0) ** power


def equalised(points: Points, group: TiedChannels, factors: np.ndarray, known: Constants) -> Constants:
    """The constants with each channel divided by a factor at the beginning and multiplied at the end."""
    made = dict[Any, np.ndarray]()
    for product in group.products:
        call, weights = points.values[product], weights_of(points, product, known)
        part = group.part(points, product, factors)
        made[product] = weights / along(part, weights.ndim, weight_axis(call, weights.ndim))
    for biased, bias in _biases(points, group):
        bias, part = known.get(biased, bias), group.part(points, biased, factors)
        made[biased] = bias / (part.reshape(bias.shape) if bias.size == len(part) else part)
    for reader in group.readers:
        weights, call = made.get(reader, weights_of(points, reader, known)), points.values[reader]
        summed = channels_read(call, group.axis(points)) == TOGETHER
        axis = input_axis(call) if summed else weight_axis(call, weights.ndim)
        part = group.part(points, call.args[0], factors)
        made[reader] = weights * along(np.repeat(part, weights.shape[axis] // len(part)), weights.ndim, axis)
    return made


def _biases(points: Points, group: TiedChannels) -> Iterator[tuple[Any, np.ndarray]]:
    """The sums of products and biases, with the biases."""
    for each in group.results:
        if isinstance(points.values[each], relax.Call) and points.inside(each) in group.products:
            yield each, constant(points.values[each].args[1])
