"""Tables of the C in `templates/ops/signal`: of its Fourier transforms and its logarithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LOGARITHMS = np.rint(65536 * (np.log2(1 + np.arange(130) / 128) - np.arange(130) / 128)).astype(np.int32)
"""The height of the logarithm to base 2 above a straight line between two powers, in 128 segments."""
WIDTHS: Mapping[str, Mapping[str, Any]] = {
    "int16": {"number": "int16_t", "wide": "int32_t", "bits": 15, "half": 1 << 14, "largest": (1 << 15) - 1},
    "int32": {"number": "int32_t", "wide": "int64_t", "bits": 31, "half": 1 << 30, "largest": (1 << 31) - 1},
}
"""The words of numbers of a Fourier transform."""


def fourier_tables(points: int, kind: str) -> tuple[np.ndarray, ...]:
    """The order of the inputs, the factors of the steps and of the last one."""
    angles, last = -2 * np.pi * np.arange(points) / points, -np.pi * ((np.arange(points // 2) + 1) / points + 0.5)
    order = np.array(_order(points, _steps(points)), np.int16 if points < 1 << 15 else np.int32)
    return order, _turns(angles, kind), _turns(last, kind)


def fourier_words(points: int, kind: str) -> dict[str, Any]:
    """The words of a transform: of its numbers, and how many pairs and steps of radix 4 it has."""
    steps = _steps(points)
    twos, fours = steps.count(2), steps.count(4)
    return {**WIDTHS[kind], "points": points, "twos": twos * points // 2, "first_span": 1 + twos, "fours": fours}


def fourier_bytes(points: int, kind: str) -> int:
    """The bytes that a transform works in."""
    return 2 * points * np.dtype(kind).itemsize


def _steps(points: int) -> list[int]:
    """The radices, the last one first: four as long as it divides, then two."""
    return [4] * ((points.bit_length() - 1) // 2) + [2] * ((points.bit_length() - 1) % 2)


def _order(points: int, steps: Sequence[int], begin: int = 0, stride: int = 1) -> list[int]:
    """The inputs as the first step takes them: every fourth or second one, and so on within these."""
    if not steps:
        return [begin]
    parts = (_order(points, steps[1:], begin + part * stride, stride * steps[0]) for part in range(steps[0]))
    return [place for part in parts for place in part]


def _turns(angles: np.ndarray, kind: str) -> np.ndarray:
    """Cosine and sine of each angle as integers."""
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1).ravel()
    return np.floor(0.5 + WIDTHS[kind]["largest"] * pairs).astype(kind)
