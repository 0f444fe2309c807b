"""Floors and ceilings: the ends of the values of a variable that its readers can tell apart.

A mask adds the least float to the scores before a softmax. In the softmax's result every value far below the largest of
its row is zero. A sigmoid or tanh, such as a gate of an LSTM, is constant in int8 far from zero. Values beyond a floor
or ceiling saturate in int8, and the range of scores, mask and gates stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any

import numpy as np
from tvm import relax

from npukit.net.importer.expressions import callee, operands, shape_of
from npukit.net.importer.movement import MOVEMENTS
from npukit.quantize.function import constant, outputs
from npukit.quantize.observe import ObservedRange
from npukit.quantize.points import Points

HIDDEN = -1000.0
"""Scores below are those of a mask. A row of such scores has no meaning."""
OUTPUT_STEPS = 256
"""Steps of a softmax's or sigmoid's int8 result from 0 to 1."""
SATURATING = {"sigmoid": log(2 * OUTPUT_STEPS), "tanh": log(2 * OUTPUT_STEPS) / 2}
"""Functions of int8 results that are constant beyond a magnitude of the operand."""

Ranges = Mapping[Any, ObservedRange]


@dataclass(frozen=True)
class Floors:
    """The floors of variables, and of the constants that an op reads, by the op's variable; ceilings of variables."""

    variables: Mapping[Any, float]
    constants: Mapping[Any, float]
    ceilings: Mapping[Any, float]

    def ranges(self, found: Ranges) -> dict[Any, ObservedRange]:
        """The ranges from the floors to the ceilings."""
        ends = ((each, self._within(each, np.array([around.low, around.high]))) for each, around in found.items())
        return {each: ObservedRange(*map(float, pair)) for each, pair in ends}

    def _within(self, variable: Any, values: np.ndarray) -> np.ndarray:
        low, high = self.variables.get(variable, -inf), self.ceilings.get(variable, inf)
        return np.minimum(np.maximum(values, low), max(low, high))

    def raised(self, found: Mapping[Any, float]) -> Floors:
        """The floors, and further floors of variables."""
        higher = {each: max(self.variables.get(each, -inf), end) for each, end in found.items()}
        return replace(self, variables={**self.variables, **higher})

    def renamed(self, known: Mapping[Any, Any]) -> Floors:
        """The floors of a function with other variables."""
        parts = (
            {known.get(each, each): end for each, end in part.items()}
            for part in (self.variables, self.constants, self.ceilings)
        )
        return Floors(*parts)

    def values(self, order: Sequence[Any], values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The values of variables from the floors to the ceilings."""
        return [self._within(each, value) for each, value in zip(order, values, strict=True)]


NO_FLOORS = Floors({}, {}, {})


def softmaxes(points: Points) -> dict[Any, Any]:
    """The calls of softmaxes, by variable."""
    return {each: value for each, value in points.values.items() if callee(value) == "nn.softmax"}


def deep_softmaxes(points: Points, ranges: Ranges) -> list[Any]:
    """The softmaxes that cannot tell the least of their operand's values from lower values, as far as ranges show."""
    calls = softmaxes(points)
    around = {each: ranges.get(points.origin(value.args[0])) for each, value in calls.items()}
    return [
        each
        for each, value in calls.items()
        if (known := around[each]) is None or known.low < known.high - depth(value)
    ]


def depth(call: Any) -> float:
    """The difference from the largest value of a row from which a softmax's int8 result is zero, even if all other
    values of the row are added up."""
    return log(2 * OUTPUT_STEPS * shape_of(call)[int(call.attrs.axis)])


def least_peaks(runs: Iterator[list[np.ndarray]], calls: Sequence[Any]) -> list[float]:
    """The least of all rows' largest values, for the operand of each softmax."""
    least = [inf] * len(calls)
    for values in runs:
        for place, (call, value) in enumerate(zip(calls, values, strict=False)):
            peaks = value.max(axis=int(call.attrs.axis))
            least[place] = min(least[place], float(peaks.min(where=peaks > HIDDEN, initial=inf)))
    return least


def floors(points: Points, ranges: Ranges, peaks: Mapping[Any, float]) -> Floors:
    """The floors and ceilings of a function. `peaks`: the least of all rows' largest values, by softmax."""
    known = _saturating(points)
    scores = {each: peak - depth(points.values[each]) for each, peak in peaks.items() if peak < inf}
    lowest, constants = _ends(points, ranges, {**scores, **known}, 1)
    ceilings, _ = _ends(points, ranges, known, -1)
    return Floors(lowest, constants, {each: -end for each, end in ceilings.items()})


def _saturating(points: Points) -> dict[Any, float]:
    """The sigmoids and tanhs whose int8 results are all that is made of the operand inside, with the least value of the
    operand that counts."""
    ends, quantised = outputs(points.module), [each for each in points.quantised if points.leaf(each) is not each]
    known = {each: callee(points.values[each]) for each in quantised}
    last = {each for each in quantised if known[each] in SATURATING and each not in ends}
    others = {points.leaf(each) for each in quantised if each not in last}
    return {each: -SATURATING[known[each]] for each in last if points.leaf(each) not in others}


Ends = dict[Any, float]


def _ends(points: Points, ranges: Ranges, known: Mapping[Any, float], sign: int) -> tuple[Ends, Ends]:
    """The floors of variables and of constants times the sign. `known`: ends of the operands of softmaxes or saturating
    functions."""
    found, constants = dict.fromkeys(outputs(points.module), -inf), dict[Any, float]()
    for variable, value in reversed(points.values.items()):
        around = _Around(points, ranges, variable, found.get(variable, inf), sign)
        for operand, floor in zip(operands(value), _of_operands(value, around, known.get(variable)), strict=True):
            if isinstance(operand, relax.Var):
                found[operand] = min(found.get(operand, inf), floor)
            elif constant(operand).dtype == np.float32:
                constants[variable] = min(constants.get(variable, inf), floor)
    return _finite(found), _finite(constants)


def _finite(found: Mapping[Any, float]) -> dict[Any, float]:
    return {each: floor for each, floor in found.items() if -inf < floor < inf}


class _Around:
    """The ranges around a value: its own floor and low end, and the ends of its operands. All are times the sign."""

    def __init__(self, points: Points, ranges: Ranges, variable: Any, floor: float, sign: int) -> None:
        self._points, self._ranges, self._variable, self.floor, self._sign = points, ranges, variable, floor, sign

    def low(self, expression: Any = None) -> float:
        known = self._range(self._variable if expression is None else expression)
        return -inf if known is None else known.low

    def high(self, expression: Any) -> float:
        known = self._range(expression)
        return inf if known is None else known.high

    def _range(self, expression: Any) -> ObservedRange | None:
        value = constant(expression)
        known = ObservedRange.of(value) if value is not None else self._ranges.get(self._points.origin(expression))
        return known if known is None or self._sign > 0 else ObservedRange(-known.high, -known.low)


def _of_operands(value: Any, around: _Around, known: float | None) -> list[float]:
    """The floor of each operand of a value."""
    count, name = len(list(operands(value))), callee(value)
    if known is not None:
        return [known]
    if name in PASSED_ON or (isinstance(value, relax.Var | relax.Tuple)):
        return [around.floor] * count
    return FLOOR_RULES[name](value, around) if name in FLOOR_RULES else [-inf] * count


def _of_sum(call: Any, around: _Around) -> list[float]:
    first, second = call.args
    return [around.floor - around.high(second), around.floor - around.high(first)]


def _of_difference(call: Any, around: _Around) -> list[float]:
    return [around.floor + around.low(call.args[1]), -inf]


def _of_multiple(power: int) -> Rule:
    """The floors of a value times or, for power -1, divided by a positive constant."""

    def rule(call: Any, around: _Around) -> list[float]:
        factor = constant(call.args[1])
        if factor is None or factor.size != 1 or factor.item() <= 0:
            return [-inf, -inf]
        return [around.floor / float(factor.item()) ** power, -inf]

    return rule


def _of_largest(call: Any, around: _Around) -> list[float]:
    return [max(around.floor, around.low())]


Rule = Callable[[Any, _Around], list[float]]

PASSED_ON = {"broadcast_to", "concat", "maximum", "minimum", "split", "where", *MOVEMENTS} - {"image.resize2d"}
"""Operators whose result has no value below a floor unless an operand has one."""

FLOOR_RULES: Mapping[str, Rule] = {
    "add": _of_sum,
    "divide": _of_multiple(-1),
    "max": _of_largest,
    "multiply": _of_multiple(1),
    "nn.max_pool2d": _of_largest,
    "subtract": _of_difference,
}
