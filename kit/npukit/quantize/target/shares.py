"""Shares of the ranges with the least errors: rare large values saturate, and all others have finer steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npukit.quantize.attempt import FloatModel
from npukit.quantize.observe import BINS, ObservedRange
from npukit.quantize.scales import INT8_STEPS
from npukit.quantize.target.treatment import Treatment

SHARES = tuple(float(share) for share in np.round(np.linspace(1, 0.3, 29), 3))
GAIN = 0.93
"""Largest error, relative to the whole range's, of a smaller range."""

Counts = Mapping[int, tuple[np.ndarray, ObservedRange]]
"""The numbers of values in equal parts of a range, without zeros, by the place of a result."""


def counted(model: FloatModel, treatment: Treatment) -> Counts:
    """The values of the results of a function changed by a treatment."""
    order, divided = model.points.in_order(), model.divided(treatment)
    around = dict(enumerate(model.ranges(treatment).values()))
    counts = {place: np.zeros(BINS, np.int64) for place in around}
    for values in model.part.values:
        for place, each in enumerate(order):
            value = values[place] / model.along(each, divided[each]) if each in divided else values[place]
            low, high = around[place].low, around[place].high
            counts[place] += np.histogram(value[value != 0], BINS, (min(low, 0), max(high, 0) or 1))[0]
    return {place: (count, around[place]) for place, count in counts.items()}


def least_errors(counts: Counts, power: float) -> dict[int, float]:
    """The shares of ranges with the least sums of errors to a power, by the places of results."""
    found = dict[int, float]()
    for place, (count, around) in counts.items():
        errors = [error(count, around, share, power) for share in SHARES]
        best = int(np.argmin(errors))
        if errors[best] < GAIN * errors[0]:
            found[place] = SHARES[best]
    return found


def error(count: np.ndarray, around: ObservedRange, share: float, power: float) -> float:
    """The sum of the errors to a power: of values outside the share of a range, and of rounding inside."""
    low, high = min(around.low, 0), max(around.high, 0) or 1
    edges = np.linspace(low, high, BINS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    beyond = np.maximum(np.maximum(middles - high * share, low * share - middles), 0)
    rounding = ((high - low) * share / INT8_STEPS / 2) ** power / (power + 1)
    return float(count @ np.where(beyond > 0, beyond**power, rounding))
