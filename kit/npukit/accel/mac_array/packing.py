"""Weights and parameters in the array's memory layout: the hardware manual, section 3.4."""

from __future__ import annotations

import numpy as np

from npukit.accel.mac_array.cycles import ceil_div, columns_of


def pack_weights(weights: np.ndarray, block: int, *, narrow: bool = False) -> np.ndarray:
    """`weights` [channel, depth] as bytes: blocks of [depth][block], missing channels 0.

    `narrow`: the last block has only as many columns as a convolution across channels needs.
    """
    blocks = (weights[first : first + block] for first in range(0, len(weights), block))
    return np.concatenate([_columns(each, columns_of(len(each), block) if narrow else block) for each in blocks])


def _columns(weights: np.ndarray, columns: int) -> np.ndarray:
    padded = np.zeros((weights.shape[1], columns), np.int8)
    padded[:, : len(weights)] = weights.T
    return padded.ravel()


def pack_parameters(bias: np.ndarray, multipliers: np.ndarray, shifts: np.ndarray, block: int) -> np.ndarray:
    """Biases, multipliers and shifts in blocks of `block` channels, as bytes."""
    count, columns = ceil_div(len(bias), block), []
    for values, dtype in ((bias, "<i4"), (multipliers, "<i4"), (shifts, "i1")):
        padded = np.zeros(count * block, dtype)
        padded[: len(values)] = values
        columns.append(padded.view(np.uint8).reshape(count, -1))
    return np.concatenate(columns, axis=1).ravel()


def weight_bytes(channels: int, depth: int, block: int, *, narrow: bool = False) -> int:
    full, left = divmod(channels, block)
    last = 0 if left == 0 else columns_of(left, block) if narrow else block
    return (full * block + last) * depth


def parameter_bytes(channels: int, block: int, bytes_per_channel: int) -> int:
    return ceil_div(channels, block) * block * bytes_per_channel
