"""Boxes: half-open regions of a tensor, the unit in which work and data are divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from operator import ge, le, sub


@dataclass(frozen=True)
class Box:
    """start <= index < stop, for each dimension of a tensor."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        return cls((0,) * len(shape), tuple(shape))

    def __hash__(self) -> int:
        """Worked out once: there are millions of look-ups."""
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

    def intersection(self, other: Box) -> Box:
        """The elements that both hold; empty if none."""
        return Box(tuple(map(max, self.start, other.start)), tuple(map(min, self.stop, other.stop)))

    def hull(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(tuple(map(min, self.start, other.start)), tuple(map(max, self.stop, other.stop)))

    def contains(self, other: Box) -> bool:
        return all(map(le, self.start, other.start)) and all(map(ge, self.stop, other.stop))

    def offset_in(self, outer: Box) -> tuple[int, ...]:
        """The beginning of this box, counted from the beginning of `outer`."""
        return tuple(a - b for a, b in zip(self.start, outer.start, strict=True))
