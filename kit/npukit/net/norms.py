"""Layer norm and RMS norm in integers: their constants, derived from real factors and offsets."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from npukit.errors import NpukitError
from npukit.net.ops import Norm
from npukit.net.tensor import Quantization

LONGEST = 4096
"""Maximum elements of a row, so that the core's registers hold its sums."""
LARGEST_EPSILON = 1 << 60
FRACTION_BITS = 10
"""Fraction bits of the root mean square."""
OFFSET_BITS, MULTIPLIER_BITS = 30, 31
LARGEST_SHIFT = 22


@dataclass(frozen=True, eq=False)
class NormConstants:
    """The attributes, multipliers and offsets of a norm."""

    attributes: Norm
    multipliers: np.ndarray
    offsets: np.ndarray


def headroom(length: int) -> int:
    """Integer bits of a normalised number. Its magnitude is at most the square root of the row's length."""
    return ceil(log2(length) / 2)


def norm_constants(
    gains: np.ndarray, biases: np.ndarray, epsilon: float, source: Quantization, target: Quantization, *, centred: bool
) -> NormConstants:
    """The constants for `gains` * normalised + `biases`. `epsilon` is a real number, too."""
    length = gains.size
    spread = max(round(epsilon * (2**FRACTION_BITS * length / source.scale) ** 2), 1)
    factors = gains.astype(np.float64) / target.scale * 2.0 ** (3 + headroom(length))
    added = biases.astype(np.float64) / target.scale + target.zero_point
    limits = [(factors, MULTIPLIER_BITS), (added, OFFSET_BITS)]
    shift = min(LARGEST_SHIFT, *(bits - 1 - ceil(log2(max(np.abs(values).max(), 1e-30))) for values, bits in limits))
    if shift < 1 or length > LONGEST or spread > LARGEST_EPSILON:
        raise NpukitError(f"a norm of {length} with such factors or epsilon {epsilon:g} does not fit its fixed point")
    multipliers, offsets = (np.rint(values * 2.0**shift).astype(np.int64) for values in (factors, added))
    attributes = Norm(centred=centred, epsilon=spread, shift=shift)
    return NormConstants(attributes, multipliers.astype(np.int32), (offsets + (1 << (shift - 1))).astype(np.int32))
