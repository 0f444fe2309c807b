"""Dense layers whose channels differ widely: each channel has a range of its own where only float reads the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from npukit.net.importer.expressions import callee
from npukit.net.tensor import Quantization
from npukit.quantize.calibration import Calibration
from npukit.quantize.canonical import foldable
from npukit.quantize.function import outputs, variables
from npukit.quantize.observe import Range, Run
from npukit.quantize.points import Points
from npukit.quantize.scales import of_activation

LEAST = 2.0**-8
"""The least factor of a channel, of the largest one's."""

Factors = Mapping[Any, np.ndarray]
"""The factors of the channels of dense layers' results, at most 1: divided by them, all have the same range."""

NO_FACTORS: Factors = MappingProxyType({})


def read_in_float(points: Points, kept: Collection[Any]) -> list[Any]:
    """The dense layers' results that only ops in float read."""
    in_float = {part for variable in kept for part in points.parts(variable)}
    others = [points.values[variable] for variable in points.values if variable not in in_float]
    inside = {points.inside(variable) for variable in points.quantised}
    taken = {*outputs(points.module), *(read for value in others for read in variables(value) if read not in inside)}
    return [each for each in points.in_order() if each not in taken | {*kept} and _is_dense(points, each)]


def _is_dense(points: Points, variable: Any) -> bool:
    inside = points.inside(variable)
    value = points.values.get(variable if inside is None else inside)
    return callee(value) == "matmul" and foldable(value)


def spread(peaks: Mapping[Any, np.ndarray]) -> tuple[Factors, dict[Any, Quantization]]:
    """The factors, and what results are quantised with once divided, by the largest magnitudes of their channels."""
    largest = {variable: max(float(peak.max()), LEAST) for variable, peak in peaks.items()}
    factors = {variable: np.maximum(peak / largest[variable], LEAST) for variable, peak in peaks.items()}
    ranges = {variable: Range(-end, end).steady for variable, end in largest.items()}
    return factors, {variable: of_activation(around) for variable, around in ranges.items()}


def channel_peaks(run: Run, order: Sequence[Any], wanted: Sequence[Any], data: Calibration) -> dict[Any, np.ndarray]:
    """The largest magnitude of each channel of each wanted variable over all cases."""
    places, peaks = [order.index(each) for each in wanted], dict[Any, np.ndarray]()
    for values in map(run, data.cases()) if wanted else ():
        for variable, place in zip(wanted, places, strict=True):
            now = np.abs(values[place]).max(axis=tuple(range(values[place].ndim - 1)))
            peaks[variable] = np.maximum(peaks[variable], now) if variable in peaks else now
    return {variable: np.array([Range(0, float(end)).steady.high for end in peak]) for variable, peak in peaks.items()}
