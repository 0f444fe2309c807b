"""Results shifted and truncated by the array itself, equal to the integer reference.

TensorFlow Lite applies a factor of 2**-n in two steps, and each step rounds: a sum from 0 on becomes
(sum + 2**(n - 1) + 1) >> n, or (sum + 1) >> 1 if n is 1; a negative sum becomes at most 0. If clamping turns negative
results into 0, the array gives the same results by its shift and its ReLU, with a summand in the biases.
Biases enter the sums as products: bytes behind each window, the last of them 1, the others 127.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense
from npukit.net.requantize import quantization, requantization

HALF = 1 << 30
"""The multiplier of a power of two."""
LARGEST, RESULT_BITS = 127, 16


@dataclass(frozen=True)
class Shift:
    """A right shift, biases with the rounding included, and the bits of sums with these biases."""

    right: int
    biases: np.ndarray
    bits: int

    @property
    def slots(self) -> int:
        """Bytes behind each window for biases."""
        most = int(np.abs(np.round(self.biases / LARGEST)).max())
        return -(-most // LARGEST) + 1

    def rows(self, first: int, last: int) -> np.ndarray:
        """The weights of the slots' bytes for the channels from `first` up to before `last`."""
        biases = self.biases[first:last]
        rest = np.round(biases / LARGEST).astype(np.int64)
        found = np.zeros((len(biases), self.slots), np.int64)
        found[:, -1] = biases - LARGEST * rest
        for slot in range(self.slots - 1):
            found[:, slot] = np.clip(rest, -LARGEST, LARGEST)
            rest -= found[:, slot]
        return found.astype(np.int8)


def shift_of(net: Net, op: Op, biases: np.ndarray, most: np.ndarray) -> Shift | None:
    """The shift of an op if the array's output stage can apply it. `most`: bound of the sums' magnitude by channel."""
    factors = requantization(net, op)
    right = 1 - int(factors.shifts[0])
    one = np.all(factors.multipliers == HALF) and np.all(factors.shifts == factors.shifts[0]) and 1 <= right <= 31
    if not one or op.of(Conv2d, Dense).clamp[0] != 0 or quantization(net, op.output).zero_point != 0:
        return None
    rounding = biases + (1 << right >> 1) + (right > 1)
    bits = int((most + np.abs(rounding)).max()).bit_length() + 1
    return Shift(right, rounding, bits) if bits - right <= RESULT_BITS else None
