"""Results that the array itself shifts and truncates, exactly as the integer reference has them.

A factor of 2**-n is applied by TensorFlow Lite in two steps, each of which rounds: sums that are not below 0 become
(sum + 2**(n - 1) + 1) >> n, or (sum + 1) >> 1 where n is 1; those below 0 become no more than 0. So where clamping
makes 0 of all that is below, the array's shift of a sum with a bias that has the summand in it, and its ReLU, are the
result.
Biases come into the sums as products: bytes behind each window, the last of them 1 and the others 127.
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
    """A shift to the right, the biases that round, and the bits that sums with them need."""

    right: int
    biases: np.ndarray
    bits: int

    @property
    def slots(self) -> int:
        most = int(np.abs(np.round(self.biases / LARGEST)).max())
        return -(-most // LARGEST) + 1

    def rows(self, first: int, last: int) -> np.ndarray:
        """The weights, of the channels from `first` up to before `last`, that the slots' bytes meet."""
        biases = self.biases[first:last]
        rest = np.round(biases / LARGEST).astype(np.int64)
        ones = biases - LARGEST * rest
        found = np.zeros((len(biases), self.slots), np.int64)
        for slot in range(self.slots - 1):
            found[:, slot] = np.clip(rest, -LARGEST, LARGEST)
            rest -= found[:, slot]
        found[:, -1] = ones
        return found.astype(np.int8)


def shift_of(net: Net, op: Op, biases: np.ndarray, most: np.ndarray) -> Shift | None:
    """The shift of an op whose sums come to `most` at most by channel, if the array's output stage can do it."""
    factors = requantization(net, op)
    right = 1 - int(factors.shifts[0])
    one = np.all(factors.multipliers == HALF) and np.all(factors.shifts == factors.shifts[0]) and 1 <= right <= 31
    if not one or op.of(Conv2d, Dense).clamp[0] != 0 or quantization(net, op.output).zero_point != 0:
        return None
    rounding = biases + (1 << right >> 1) + (right > 1)
    bits = int((most + np.abs(rounding)).max()).bit_length() + 1
    return Shift(right, rounding, bits) if bits - right <= RESULT_BITS else None
