"""Source positions of resized rows and columns, as in TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import floor

import numpy as np

from npukit.errors import NpukitError

PLACE_UNIT = 1 << 10
"""Distance of two neighbouring rows or columns. Places are whole numbers of this unit."""
ROUNDINGS: Mapping[str, Callable[[float], int]] = {
    "round": lambda place: floor(place + 0.5),
    "round_prefer_floor": lambda place: -floor(0.5 - place),
    "round_prefer_ceil": lambda place: floor(place + 0.5),
    "floor": floor,
    "ceil": lambda place: -floor(-place),
}


def nearest(size: int, result: int, mode: str, rounding: str) -> tuple[int, ...]:
    """The input position of each output position, computed in float32 like TFLite."""
    if rounding not in ROUNDINGS:
        raise NpukitError(f"it rounds places by {rounding}, which npukit does not know")
    scale, offset = _scale(size, result, mode), np.float32(0.5 if _is_half(mode, result) else 0)
    places = (float((np.float32(place) + offset) * scale - offset) for place in range(result))
    return tuple(min(max(ROUNDINGS[rounding](place), 0), size - 1) for place in places)


def _scale(size: int, result: int, mode: str) -> np.float32:
    if mode not in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
        raise NpukitError(f"it resizes with {mode} coordinates, which npukit does not compute yet")
    if mode == "align_corners" and result > 1:
        return np.float32(size - 1) / np.float32(result - 1)
    return np.float32(size) / np.float32(result)


def linear(size: int, result: int, mode: str) -> tuple[tuple[int, int, int], ...]:
    """The two input positions around each output position, and 1024ths from the first, as in TFLite."""
    _scale(size, result, mode)
    if mode == "align_corners" and result > 1:
        step = (PLACE_UNIT * (size - 1) + (result - 1) // 2) // (result - 1)
    else:
        step = (PLACE_UNIT * size + result // 2) // result
    half = step // 2 - PLACE_UNIT // 2 if _is_half(mode, result) else 0
    return tuple(_between(place * step + half, size) for place in range(result))


def _is_half(mode: str, result: int) -> bool:
    """True if places are the middles of pixels. PyTorch's single pixel lies at the first."""
    return mode == "half_pixel" or (mode == "pytorch_half_pixel" and result > 1)


def _between(place: int, size: int) -> tuple[int, int, int]:
    low = max(int(place / PLACE_UNIT), 0)
    high = min(int((place + PLACE_UNIT - 1) / PLACE_UNIT), size - 1)
    return min(low, size - 1), high, place - low * PLACE_UNIT


RATIOS: Mapping[str, Callable[[int, int], tuple[int, int, int]]] = {
    "half_pixel": lambda size, result: (2 * size, size - result, 2 * result),
    "pytorch_half_pixel": lambda size, result: (2 * size, (size - result) * (result > 1), 2 * result),
    "asymmetric": lambda size, result: (size, 0, result),
    "align_corners": lambda size, result: (size - 1, 0, max(result - 1, 1)),
}
"""Parameters (a, b, c) of a coordinate mode: output position i lies at input position (i * a + b) / c."""
