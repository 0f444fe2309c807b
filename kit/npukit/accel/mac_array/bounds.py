"""Bounds of the accumulators from the actual weights, as proof against overflow."""

from __future__ import annotations

import numpy as np

LOWEST, HIGHEST = -128, 127


def accumulator_bounds(weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest sum of each channel over all int8 inputs; `weights` [channel, depth]."""
    wide = weights.astype(np.int64)
    negative, positive = np.minimum(wide, 0).sum(1), np.maximum(wide, 0).sum(1)
    return bias + positive * LOWEST + negative * HIGHEST, bias + positive * HIGHEST + negative * LOWEST


def bits_needed(low: np.ndarray, high: np.ndarray) -> int:
    """Bits of the narrowest two's complement accumulator for these bounds.

    Only the final sum must fit, because intermediate sums wrap.
    """
    return max(int(max(-low.min() - 1, high.max(), 0)).bit_length() + 1, 1)
