"""Boxes: half-open regions of a tensor. Work and data are divided into boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import ge, le, sub


@dataclass(frozen=True)
class Box:
    """Index range of a tensor: start <= index < stop in each dimension."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        return cls((0,) * len(shape), tuple(shape))

    def __hash__(self) -> int:
        """Computed once per box, because there are millions of look-ups."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.start, self.stop))

    def __str__(self) -> str:
        return "[" + ", ".join(f"{a}:{b}" for a, b in zip(self.start, self.stop, strict=True)) + "]"

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(sub, self.stop, self.start))

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        return any(b <= a for a, b in zip(self.start, self.stop, strict=True))

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index of the box in an array of the tensor."""
        return tuple(map(slice, self.start, self.stop))

    def intersection(self, other: Box) -> Box:
        """The common elements of both boxes; an empty box if none."""
        return Box(tuple(map(max, self.start, other.start)), tuple(map(min, self.stop, other.stop)))

    def hull(self, other: Box) -> Box:
        """The smallest box around both boxes."""
        return Box(tuple(map(min, self.start, other.start)), tuple(map(max, self.stop, other.stop)))

    def cut(self, axis: int, start: int, stop: int) -> Box:
        """The box with another range along an axis."""
        axis %= len(self.start)
        starts, stops = (
            (*self.start[:axis], start, *self.start[axis + 1 :]),
            (*self.stop[:axis], stop, *self.stop[axis + 1 :]),
        )
        return Box(starts, stops)

    def contains(self, other: Box) -> bool:
        return all(map(le, self.start, other.start)) and all(map(ge, self.stop, other.stop))

    def offset_in(self, outer: Box) -> tuple[int, ...]:
        """The start of this box, relative to the start of `outer`."""
        return tuple(a - b for a, b in zip(self.start, outer.start, strict=True))
