"""Weights on a grid of 4 bits: multiples of a step."""

from __future__ import annotations

import numpy as np

LOWEST, HIGHEST = -8, 7
LEAST_ROW, ROUNDING = 8, 1e-4
"""Fewest weights of a row whose grid says anything; largest distance from the grid, by rounding in floats."""


def grid_of(rows: np.ndarray) -> np.ndarray | None:
    """The step of each row, of which all its weights are multiples from -8 to 7; None for other weights."""
    largest = np.abs(rows).max(axis=1)
    if rows.shape[1] < LEAST_ROW:
        return None
    steps = np.where(largest > 0, 0.0, 1.0)
    for count in range(1, 1 - LOWEST):
        tried = np.where(steps == 0, largest / count, steps)
        counts = rows / tried[:, np.newaxis]
        whole = np.rint(counts)
        on = (np.abs(counts - whole) < ROUNDING).all(1) & (whole.max(1) <= HIGHEST) & (whole.min(1) >= LOWEST)
        steps = np.where((steps == 0) & on, tried, steps)
    return steps if np.all(steps > 0) else None
