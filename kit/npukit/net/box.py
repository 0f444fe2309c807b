"""Boxes: half-open regions of a tensor, the unit in which work and data are divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod


@dataclass(frozen=True)
class Box:
    """start <= index < stop, for each dimension of a tensor."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        return cls((0,) * len(shape), tuple(shape))

    def __str__(self) -> str:
        return "[" + ", ".join(f"{a}:{b}" for a, b in zip(self.start, self.stop, strict=True)) + "]"

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def empty(self) -> bool:
        return any(b <= a for a, b in zip(self.start, self.stop, strict=True))

    def intersection(self, other: Box) -> Box:
        """What both hold; empty if nothing."""
        return Box(
            tuple(max(a, b) for a, b in zip(self.start, other.start, strict=True)),
            tuple(min(a, b) for a, b in zip(self.stop, other.stop, strict=True)),
        )

    def hull(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(
            tuple(min(a, b) for a, b in zip(self.start, other.start, strict=True)),
            tuple(max(a, b) for a, b in zip(self.stop, other.stop, strict=True)),
        )

    def contains(self, other: Box) -> bool:
        return self.hull(other) == self

    def offset_in(self, outer: Box) -> tuple[int, ...]:
        """Where this box begins, counted from the beginning of `outer`."""
        return tuple(a - b for a, b in zip(self.start, outer.start, strict=True))
