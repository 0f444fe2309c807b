"""Tensors of the integer network: shape, type and quantisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

import numpy as np


@dataclass(frozen=True)
class Quantization:
    """Quantisation: real = scale * (integer - zero_point). One pair per tensor, or one per index of `axis`."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None = None

    @property
    def scale(self) -> float:
        """The only scale of a tensor quantised as a whole."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The only zero point of a tensor quantised as a whole."""
        (zero_point,) = self.zero_points
        return zero_point

    def arrays(self, rank: int) -> tuple[np.ndarray, np.ndarray]:
        """Scales and zero points, which broadcast to a tensor of `rank` axes."""
        scales, zero_points = np.array(self.scales), np.array(self.zero_points)
        if self.axis is None:
            return scales.reshape((1,) * rank), zero_points.reshape((1,) * rank)
        return along(scales, rank, self.axis), along(zero_points, rank, self.axis)

    def real(self, integers: np.ndarray) -> np.ndarray:
        """The real numbers of integers, in double precision."""
        scales, zero_points = self.arrays(integers.ndim)
        return (integers - zero_points) * scales

    def is_begin_of(self, other: Quantization) -> bool:
        """True if zero points are equal and this scale is 1, as for summed integers: a zero point without a scale."""
        return self == replace(other, scales=(1.0,) * len(other.scales))


@dataclass(frozen=True)
class Tensor:
    """The description of a tensor. `Net.constants` holds the values of constants."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    quantization: Quantization | None = None
    title: str = field(default="", compare=False)
    """Name of the layer in the user's model that produces the tensor."""

    @property
    def has_one_scale(self) -> bool:
        """True if the tensor has a single scale for all elements."""
        return self.quantization is not None and self.quantization.axis is None

    @property
    def zero_point(self) -> int:
        return self.quantization.zero_point if self.quantization else 0

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * np.dtype(self.dtype).itemsize


Each = TypeVar("Each")


def along(numbers: np.ndarray, rank: int, axis: int) -> np.ndarray:
    """Numbers along one of `rank` axes."""
    return numbers.reshape([-1 if each == axis else 1 for each in range(rank)])


def transposed(values: Sequence[Each], axes: Sequence[int]) -> tuple[Each, ...]:
    """Values of each axis of a tensor, reordered for its transpose. Empty `axes`: unchanged."""
    return tuple(values[axis] for axis in axes) if axes else tuple(values)


def untransposed(values: Sequence[Each], axes: Sequence[int]) -> tuple[Each, ...]:
    """Values of each axis of a transpose, reordered for the original tensor. Empty `axes`: unchanged."""
    return tuple(values[axes.index(axis)] for axis in range(len(axes))) if axes else tuple(values)
