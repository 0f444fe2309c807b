"""Events of an op: values that a likely mistake of a kernel would change (`net/reference/coverage.py`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LOW, HIGH, ROUNDED, TWICE = "clamped low", "clamped high", "first rounding", "rounding twice"
CLOSE, HALF, TIES = "close to the next rounding", "second rounding", "negative ties"
PADDING, ENTRIES, POOLED, BORDER = "padding", "table entries", "mean's rounding", "padding that never counts"

Events = Iterator[tuple[str, np.ndarray]]
"""Kinds of event, each with a mask [case, place] of the reached events."""


def any_of(events: np.ndarray) -> np.ndarray:
    return np.asarray(events.reshape(len(events), -1).any(axis=1, keepdims=True))


def used(entries: np.ndarray, size: int) -> np.ndarray:
    """Mask of the used entries of a table of `size` entries."""
    return np.stack([np.bincount(each.ravel(), minlength=size) > 0 for each in entries])
