"""Neighbours of a mapping: other splits of one op, or of a run of ops of one shape that are split alike."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.plan.layout.splits import Splits
from npukit.plan.tensors.boxes import Split
from npukit.plan.tensors.graph import Graph

WIDTH = 14
"""Splits of an op to try."""

MappingOf = tuple[Split, ...]
"""The split of each op."""


class Neighbours:
    """Mappings that differ in one op, or in a run of ops of one shape that are split alike."""

    def __init__(self, graph: Graph, splits: Splits) -> None:
        self._graph, self._splits = graph, splits
        self._choices = splits.candidates(WIDTH)

    def of(self, splits: MappingOf) -> Iterator[MappingOf]:
        """The most promising first."""
        for place in range(WIDTH):
            for first in range(len(splits)):
                changed = self._changed(splits, first, place)
                if changed:
                    yield changed

    def _changed(self, splits: MappingOf, first: int, place: int) -> MappingOf | None:
        """Op number `first` in its `place`-th best split, and the ops behind it that are as it was."""
        choices = self._choices[first]
        if place >= len(choices):
            return None
        last = first + 1
        while last < len(splits) and self._alike(splits, first, last):
            last += 1
        wanted = choices[place]
        able = all(self._splits.is_possible(index, wanted) for index in range(first, last))
        return (*splits[:first], *([wanted] * (last - first)), *splits[last:]) if able else None

    def _alike(self, splits: MappingOf, first: int, other: int) -> bool:
        ops = self._graph.ops
        same_shape = self._graph.shape(ops[first].output) == self._graph.shape(ops[other].output)
        return same_shape and splits[first] == splits[other]
