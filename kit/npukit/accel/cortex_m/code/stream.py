"""The stream of words for a chain of 2x2 blocks: weights, then the constants of the block's end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.block import BlockShape, Density, constants_order
from npukit.accel.cortex_m.code.requantize import FastRequantization

BYTE_BITS = 8


@dataclass(frozen=True)
class Blocks:
    """The numbers of a layer: weights [channels, depth] in gathering order, biases, and the final shifts for bytes."""

    weights: np.ndarray
    biases: np.ndarray
    fast: FastRequantization
    shifts: np.ndarray | None
    left_shift: bool = False


def block_stream(blocks: Blocks, shape: BlockShape) -> np.ndarray:
    """All words in reading order. Odd blocks read K backwards; each block contains the biases of the next."""
    starts = blocks.biases.copy()
    if shape.density is Density.BYTES:
        # The first channel's sum starts from both biases, because its products include both weights.
        second = np.append(starts, 0)[1::2][: len(starts[0::2])]
        starts[0::2] = 256 * starts[0::2] + second
    biases = _pairs(starts)
    constants = {
        "multiplier": _pairs(blocks.fast.multipliers),
        "addend": _pairs(blocks.fast.addends),
        "tie": _pairs(blocks.fast.ties),
        "exponent": _pairs(blocks.fast.exponents),
        "shift": _pairs(blocks.shifts) if blocks.shifts is not None else np.zeros_like(biases),
        "next bias": np.concatenate([biases[1:], np.zeros((1, 2), np.int64)]),
    }
    words = [biases[0]]
    for index in range(shape.blocks):
        words.append(_weights(blocks, shape, index))
        words += [constants[name][index] for names in constants_order(shape, index % 2) for name in names]
    return (np.concatenate(words) & 0xFFFFFFFF).astype(np.uint32)


def bytes_refusal(weights: np.ndarray, fast: FastRequantization, magnitude: np.ndarray) -> str | None:
    """The reason why two channels cannot share halfwords of weights and an accumulator, or None."""
    first = fast.prescale[0::2]
    pairs = 256 * weights[0 : len(weights) // 2 * 2 : 2] + weights[1::2]
    if magnitude[0::2].max() >= 1 << 23:
        return "an accumulator beyond 2^23 does not fit beside another"
    if pairs.size and (pairs.min() < -(1 << 15) or pairs.max() >= 1 << 15):
        return "a weight of -128 does not fit beside another"
    if first.min() < BYTE_BITS < first.max():
        return "some channels shift left and some right"
    return None


def packed(halves: np.ndarray) -> np.ndarray:
    """Neighbours along the last axis as the halves of a word, the first in the low half."""
    low, high = halves[..., 0::2] & 0xFFFF, halves[..., 1::2] & 0xFFFF
    return low | high << 16


def _pairs(values: np.ndarray) -> np.ndarray:
    """Channel pairs, padded with 0 for an odd count."""
    values = np.asarray(values, np.int64)
    return np.append(values, np.zeros(len(values) % 2, np.int64)).reshape(-1, 2)


def _weights(blocks: Blocks, shape: BlockShape, index: int) -> np.ndarray:
    both = np.zeros((2, shape.depth), np.int64)
    chosen = blocks.weights[2 * index : 2 * index + 2]
    both[: len(chosen)] = chosen
    if shape.density is Density.BYTES:
        both = 256 * both[:1] + both[1:]
    quads = packed(both).reshape(len(both), -1, 2)
    if index % 2:
        quads = quads[:, ::-1]
    return quads.transpose(1, 2, 0).ravel() if shape.density is Density.HALFWORDS else quads.ravel()
