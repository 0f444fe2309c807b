"""Tensors of the integer network: shape, type, and how integers stand for reals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

import numpy as np


@dataclass(frozen=True)
class Quantization:
    """real = scale * (integer - zero_point); one pair, or one for each index of `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def scale(self) -> float:
        """The one scale of a tensor quantised as a whole."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The one zero point of a tensor quantised as a whole."""
        (zero_point,) = self.zero_points
        return zero_point

    def is_begin_of(self, other: Quantization) -> bool:
        """True if it says where the other's integers begin, and no scale: that of integers which are summed up."""
        return self == replace(other, scales=(1.0,) * len(other.scales))


@dataclass(frozen=True)
class Tensor:
    """The description of a tensor; constants keep their values in `Net.constants`."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    quantization: Quantization | None = None
    title: str = field(default="", compare=False)
    """The layer of the user's model that makes it, by its name there."""

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * np.dtype(self.dtype).itemsize


Each = TypeVar("Each")


def transposed(values: Sequence[Each], axes: Sequence[int]) -> tuple[Each, ...]:
    """One value for each axis of a tensor, for the axes of its transpose; without `axes` as they are."""
    return tuple(values[axis] for axis in axes) if axes else tuple(values)


def untransposed(values: Sequence[Each], axes: Sequence[int]) -> tuple[Each, ...]:
    """One value for each axis of a tensor, given those for the axes of its transpose."""
    return tuple(values[axes.index(axis)] for axis in range(len(axes))) if axes else tuple(values)
