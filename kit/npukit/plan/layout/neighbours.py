"""Neighbours of a mapping: another split of one op, or of a run of ops with equal shapes and equal splits."""

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
    """The neighbours of mappings of one graph."""

    def __init__(self, graph: Graph, splits: Splits) -> None:
        self._shapes, self._splits = [graph.shape(op.output) for op in graph.ops], splits
        self._choices = splits.candidates(WIDTH)

    def of(self, splits: MappingOf) -> Iterator[MappingOf]:
        """The neighbours of a mapping, the most promising first."""
        for place in range(WIDTH):
            for first, choices in enumerate(self._choices):
                if place < len(choices) and (changed := self._changed(splits, first, choices[place])):
                    yield changed

    def _changed(self, splits: MappingOf, first: int, split: Split) -> MappingOf | None:
        """The mapping with another split of the run of ops from `first` on, or None if not every op permits the
        split."""
        last = first + 1
        while last < len(splits) and (self._shapes[last], splits[last]) == (self._shapes[first], splits[first]):
            last += 1
        if not all(self._splits.is_possible(index, split) for index in range(first, last)):
            return None
        return (*splits[:first], *([split] * (last - first)), *splits[last:])
