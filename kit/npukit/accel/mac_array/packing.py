"""Weights and parameters in the array's memory layout: the hardware manual, section 3.4."""

from __future__ import annotations

import numpy as np

from npukit.accel.mac_array.cycles import ceil_div


def pack_weights(weights: np.ndarray, block: int) -> np.ndarray:
    """`weights` [channel, depth] packed as [channels / block][depth][block], missing channels 0."""
    channels, depth = weights.shape
    padded = np.zeros((ceil_div(channels, block) * block, depth), np.int8)
    padded[:channels] = weights
    return np.ascontiguousarray(padded.reshape(-1, block, depth).transpose(0, 2, 1))


def pack_parameters(bias: np.ndarray, multipliers: np.ndarray, shifts: np.ndarray, block: int) -> np.ndarray:
    """Biases, multipliers and shifts in blocks of `block` channels, as bytes."""
    count, columns = ceil_div(len(bias), block), []
    for values, dtype in ((bias, "<i4"), (multipliers, "<i4"), (shifts, "i1")):
        padded = np.zeros(count * block, dtype)
        padded[: len(values)] = values
        columns.append(padded.view(np.uint8).reshape(count, -1))
    return np.concatenate(columns, axis=1).ravel()


def weight_bytes(channels: int, depth: int, block: int) -> int:
    return ceil_div(channels, block) * block * depth


def parameter_bytes(channels: int, block: int, bytes_per_channel: int) -> int:
    return ceil_div(channels, block) * block * bytes_per_channel
