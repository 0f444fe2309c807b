"""Ranges by channel, for widely different channels between dense layers and float ops.

Float ops multiply or divide by a factor for each channel. Dense layers have the factors in their weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npukit.net.importer.expressions import callee
from npukit.quantize.canonical import foldable
from npukit.quantize.function import outputs, variables
from npukit.quantize.observe import ObservedRange
from npukit.quantize.points import Points

_LEAST = 2.0**-8
"""Least factor of a channel, relative to the largest channel."""

FEW_NUMBERS, TAIL = 1024, 3
"""Least range of a channel with fewer than FEW_NUMBERS numbers, because their maximum says little about others. The
range is TAIL times the root of the mean of the numbers' squares, weighted by the squares. This mean is large for a
channel of few large numbers."""

Factors = Mapping[Any, np.ndarray]
"""Factors of the channels of results, at most 1. Results are divided by their factors before quantisation."""


def read_in_float(points: Points, kept: Collection[Any]) -> list[Any]:
    """Results of dense layers that only float ops read."""
    taken = {*outputs(points.module), *(read for value in _integer_ops(points, kept) for read in variables(value))}
    taken -= {points.inside(variable) for variable in points.quantised}
    return [each for each in points.in_order() if each not in taken | {*kept} and dense_input(points, each) is not None]


def read_by_dense(points: Points, kept: Collection[Any]) -> list[Any]:
    """Results computed in float whose only readers are dense layers and float ops."""
    readers = _integer_ops(points, kept)
    dense = {value.args[0] for value in readers if _is_foldable(value)}
    others = {read for value in readers if not _is_foldable(value) for read in variables(value)}
    return [each for each in kept if each in dense - others - {*outputs(points.module)}]


def _integer_ops(points: Points, kept: Collection[Any]) -> list[Any]:
    """All values outside the computation of the kept results."""
    in_float = {part for variable in kept for part in points.parts(variable)}
    return [value for variable, value in points.values.items() if variable not in in_float]


def _is_foldable(value: Any) -> bool:
    return callee(value) == "matmul" and foldable(value)


def dense_input(points: Points, variable: Any) -> Any:
    """The input of the dense layer with constant weights that computes the variable; None for other variables."""
    inside = points.inside(variable)
    value: Any = points.values.get(variable if inside is None else inside)
    return value.args[0] if _is_foldable(value) else None


def spread(peaks: Mapping[Any, np.ndarray], shared: Collection[Any]) -> tuple[Factors, dict[Any, ObservedRange]]:
    """The factors, and the ranges of the divided results. `peaks`: largest magnitude of each channel. Results in
    `shared` get the square root of the factors, because weights absorb the other half of the difference."""
    largest = {variable: max(float(peak.max()), _LEAST) for variable, peak in peaks.items()}
    factors = {variable: np.maximum(peak / largest[variable], _LEAST) for variable, peak in peaks.items()}
    factors |= {variable: np.sqrt(factors[variable]) for variable in shared}
    return factors, {variable: ObservedRange(-end, end).steady for variable, end in largest.items()}


def channel_peaks(
    runs: Iterator[list[np.ndarray]], order: Sequence[Any], wanted: Sequence[Any]
) -> dict[Any, np.ndarray]:
    """The largest magnitude to expect in each channel of each wanted variable, from all runs."""
    places, seen = [order.index(each) for each in wanted], {each: _Channels() for each in wanted}
    for values in runs if wanted else ():
        for variable, place in zip(wanted, places, strict=True):
            seen[variable].add(values[place])
    return {
        variable: np.array([ObservedRange(0, float(end)).steady.high for end in channels.ends])
        for variable, channels in seen.items()
    }


@dataclass
class _Channels:
    """Statistics of the channels on the last axis: count, largest magnitude, sums of squares and of fourth powers."""

    count: int = 0
    peaks: Any = 0.0
    squares: Any = 0.0
    fourths: Any = 0.0

    def add(self, values: np.ndarray) -> None:
        squares = np.square(values.reshape(-1, values.shape[-1]).astype(np.float64))
        self.count += len(squares)
        self.peaks = np.maximum(self.peaks, np.sqrt(squares.max(axis=0)))
        self.squares = self.squares + squares.sum(axis=0)
        self.fourths = self.fourths + np.square(squares).sum(axis=0)

    @property
    def ends(self) -> np.ndarray:
        usual = np.sqrt(self.fourths / np.maximum(self.squares, np.finfo(float).tiny))
        return np.maximum(self.peaks, (TAIL if self.count < FEW_NUMBERS else 0) * usual)
