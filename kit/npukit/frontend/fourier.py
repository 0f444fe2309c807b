"""Fourier transforms as constant matrices."""

from __future__ import annotations

import numpy as np


def fourier(size: int, length: int, parts: int, *, inverse: bool = False, onesided: bool = False) -> np.ndarray:
    """The matrix of a transform: [size * parts, frequencies * 2]. Complex numbers lie as pairs.

    `size`: numbers of the data, of which the first `length` count; `parts`: 1 for real data, 2 for complex data;
    `onesided`: frequencies up to the half, of real numbers. The inverse transform then has real results alone."""
    to_real = inverse and onesided
    count = length // 2 + 1 if onesided and not inverse else length
    places = np.arange(size)
    waves = np.exp((2j if inverse else -2j) * np.pi / length * np.outer(places, np.arange(count)))
    waves[places >= (length // 2 + 1 if to_real else length)] = 0
    if to_real:
        waves[(places > 0) & (2 * places < length)] *= 2
    turned = np.stack([waves, 1j * waves][:parts], 1) / (length if inverse else 1)
    numbers = np.stack([turned.real, turned.imag][: 1 if to_real else 2], -1)
    return np.ascontiguousarray(numbers.reshape(size * parts, -1), np.float32)
