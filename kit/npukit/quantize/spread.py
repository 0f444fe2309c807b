"""Channels that differ widely, between dense layers and what is computed in float: each has a range of its own.

What is float anyway multiplies or divides by factors of the channels, the other side has them in its weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from npukit.net.importer.expressions import callee
from npukit.quantize.canonical import foldable
from npukit.quantize.function import outputs, variables
from npukit.quantize.observe import ObservedRange
from npukit.quantize.points import Points

LEAST = 2.0**-8
"""The least factor of a channel, of the largest one's."""

FEW, TAIL = 1024, 3
"""The least range of a channel that has had fewer numbers, as their largest says little of others: so many times the
root of the mean of their squares, weighted by their squares, which is large for a channel of few large numbers.
"""

Factors = Mapping[Any, np.ndarray]
"""The factors of the channels of some results, at most 1: these are divided by them before they are quantised."""
NO_FACTORS: Factors = MappingProxyType({})


def read_in_float(points: Points, kept: Collection[Any]) -> list[Any]:
    """The dense layers' results that only ops in float read."""
    taken = {*outputs(points.module), *(read for value in _integer_ops(points, kept) for read in variables(value))}
    taken -= {points.inside(variable) for variable in points.quantised}
    return [each for each in points.in_order() if each not in taken | {*kept} and dense_input(points, each) is not None]


def read_by_dense(points: Points, kept: Collection[Any]) -> list[Any]:
    """Results computed in float that dense layers read, and nothing else that is not in float."""
    readers = _integer_ops(points, kept)
    dense = {value.args[0] for value in readers if _is_foldable(value)}
    others = {read for value in readers if not _is_foldable(value) for read in variables(value)}
    return [each for each in kept if each in dense - others - {*outputs(points.module)}]


def _integer_ops(points: Points, kept: Collection[Any]) -> list[Any]:
    """All values but those that the kept results are computed by."""
    in_float = {part for variable in kept for part in points.parts(variable)}
    return [value for variable, value in points.values.items() if variable not in in_float]


def _is_foldable(value: Any) -> bool:
    return callee(value) == "matmul" and foldable(value)


def dense_input(points: Points, variable: Any) -> Any:
    """The variable that a dense layer of constant weights reads, if it makes this one."""
    inside = points.inside(variable)
    value: Any = points.values.get(variable if inside is None else inside)
    return value.args[0] if _is_foldable(value) else None


def spread(peaks: Mapping[Any, np.ndarray], shared: Collection[Any]) -> tuple[Factors, dict[Any, ObservedRange]]:
    """The factors, and the ranges of what is quantised once divided, by the largest magnitudes of their channels.

    Those of `shared` are left half of their differences, as the weights that take the factors in get the other half.
    """
    largest = {variable: max(float(peak.max()), LEAST) for variable, peak in peaks.items()}
    factors = {variable: np.maximum(peak / largest[variable], LEAST) for variable, peak in peaks.items()}
    factors |= {variable: np.sqrt(factors[variable]) for variable in shared}
    return factors, {variable: ObservedRange(-end, end).steady for variable, end in largest.items()}


def channel_peaks(
    runs: Iterator[list[np.ndarray]], order: Sequence[Any], wanted: Sequence[Any]
) -> dict[Any, np.ndarray]:
    """The largest magnitude of each channel of each wanted variable that is to be reckoned with, seen all runs."""
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
    """Channels on the last axis: how many numbers of each there were, the largest, sums of squares and of theirs."""

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
        return np.maximum(self.peaks, (TAIL if self.count < FEW else 0) * usual)
