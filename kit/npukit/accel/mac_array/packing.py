"""Weights and parameters in the array's memory layout: the hardware manual, section 3.4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.accel.mac_array.cycles import ceil_div, columns_of

NIBBLE_COLUMNS = 8
"""Weights of 4 bits in 4 bytes, the least unit of memory."""


@dataclass(frozen=True)
class WeightLayout:
    """The memory layout of weights: blocks of [depth][block].

    `narrow`: the last block has only as many columns as a convolution across channels needs. `nibbles`: two weights a
    byte.
    """

    block: int
    narrow: bool = False
    nibbles: bool = False

    def bytes(self, channels: int, depth: int) -> int:
        full, left = divmod(channels, self.block)
        weights = (full * self.block + (self._columns(left) if left else 0)) * self._rows(depth)
        return weights // 2 if self.nibbles else weights

    def packed(self, weights: np.ndarray) -> np.ndarray:
        """`weights` [channel, depth] as bytes. Missing channels are 0."""
        blocks = (weights[first : first + self.block] for first in range(0, len(weights), self.block))
        stored = np.concatenate(list(map(self._block, blocks)))
        return _nibbles(stored) if self.nibbles else stored

    def _block(self, weights: np.ndarray) -> np.ndarray:
        padded = np.zeros((self._rows(weights.shape[1]), self._columns(len(weights))), np.int8)
        padded[: weights.shape[1], : len(weights)] = weights.T
        return padded.ravel()

    def _columns(self, channels: int) -> int:
        return columns_of(channels, self.block, nibbles=self.nibbles) if self.narrow else self.block

    def _rows(self, depth: int) -> int:
        together = max(NIBBLE_COLUMNS // self.block, 1) if self.nibbles else 1
        return ceil_div(depth, together) * together


def _nibbles(weights: np.ndarray) -> np.ndarray:
    """Weights from -8 to 7 as bytes, the first of two in the low bits."""
    pairs = weights.reshape(-1, 2)
    return (pairs[:, 0] & 15 | pairs[:, 1] << 4).astype(np.int8)


def pack_parameters(bias: np.ndarray, multipliers: np.ndarray, shifts: np.ndarray, block: int) -> np.ndarray:
    """Biases, multipliers and shifts in blocks of `block` channels, as bytes."""
    count, columns = ceil_div(len(bias), block), []
    for values, dtype in ((bias, "<i4"), (multipliers, "<i4"), (shifts, "i1")):
        padded = np.zeros(count * block, dtype)
        padded[: len(values)] = values
        columns.append(padded.view(np.uint8).reshape(count, -1))
    return np.concatenate(columns, axis=1).ravel()


def parameter_bytes(channels: int, block: int, bytes_per_channel: int) -> int:
    return ceil_div(channels, block) * block * bytes_per_channel
