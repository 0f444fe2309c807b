"""Sliding windows over NHWC images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npukit.net.attributes import Padding, Pair


def merge_cases(value: np.ndarray) -> np.ndarray:
    """[case, N, H, W, C] reshaped to [image, H, W, C]."""
    return value.reshape(-1, *value.shape[2:])


def split_cases(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Images reshaped back to [case, *shape]."""
    return value.reshape(-1, *shape)


def padded(images: np.ndarray, padding: Padding, value: int) -> np.ndarray:
    top, left, bottom, right = padding
    if not any(padding):
        return images
    return np.pad(images, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)


def taps(
    source: np.ndarray, window: tuple[int, ...], strides: Pair, dilation: Pair, size: tuple[int, ...]
) -> Iterator[tuple[int, int, np.ndarray]]:
    """Each tap (y, x) of a window in row-major order, with the inputs [image, *size, channel] at all positions."""
    for y in range(window[0]):
        for x in range(window[1]):
            top, left = y * dilation[0], x * dilation[1]
            rows = slice(top, top + (size[0] - 1) * strides[0] + 1, strides[0])
            columns = slice(left, left + (size[1] - 1) * strides[1] + 1, strides[1])
            yield y, x, source[:, rows, columns]
