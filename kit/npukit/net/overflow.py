"""Checks for overflow of the 32-bit integers that every kernel computes with.

On overflow the reference, the core, the accelerators and TFLite all wrap. A net with a possible overflow is refused.
"""

from __future__ import annotations

import numpy as np

from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.requantize import SATURATES, Multiplier, quantization

LIMIT = 1 << 31
TOLERANCE = 1e-3
"""Relative error allowed for a factor computed in single precision, where the error could change a result."""
WAYS = ("look at its scales: an output's usually spans what the op makes of its inputs", "quantise the model again")


def reach(net: Net, name: str) -> int:
    """The largest magnitude of a tensor's integers minus their zero point."""
    limits, zero = np.iinfo(np.dtype(net.tensor(name).dtype)), quantization(net, name).zero_point
    return max(limits.max - zero, zero - limits.min)


def shifted(largest: int, factor: Multiplier) -> int:
    return largest << max(factor.shift, 0)


def refuse_wrapping(largest: int) -> None:
    if largest >= LIMIT:
        raise NpukitError(
            f"its sums, scaled to its output, can reach {largest:,}, beyond the 32 bits they are computed in",
            tries=WAYS,
        )


def refuse_imprecise(used: float, exact: float, largest: int) -> None:
    """Refuse if TFLite's single-precision factor differs from the exact ratio of scales enough to change results."""
    if exact * largest >= TOLERANCE and exact < SATURATES and abs(used - exact) > TOLERANCE * exact:
        raise NpukitError("its scales are too small or too large for single precision", tries=WAYS)
