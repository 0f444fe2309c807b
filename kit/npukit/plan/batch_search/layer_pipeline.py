"""Pipelines: consecutive ops as stages, each on PEs of its own, so that several frames are on their way at once.

A PE holds the constants of its stage alone. What a stage takes is estimated op by op; simulation has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.search.splits import Splits
from npukit.plan.tensors.boxes import to_boxes
from npukit.plan.tensors.problem import Problem

EXCHANGE_CYCLES = 250
"""About what an op on several PEs takes besides its engine, which need parts of its inputs from each other."""


@dataclass(frozen=True)
class Stage:
    """The ops from `begin` to before `end`, on `pes` PEs from number `first` of the order on."""

    begin: int
    end: int
    first: int
    pes: int


Stages = tuple[Stage, ...]


class PipelineSearch:
    """The pipelines of one net on at most so many PEs."""

    def __init__(self, problem: Problem, pes: int) -> None:
        self._graph, self._memory = problem.graph, problem.board.memory_for("constants").size
        self._splits = {count: Splits(problem.graph, problem.engines, count) for count in range(1, pes + 1)}
        self._chosen = {count: [each[0] for each in splits.candidates(1)] for count, splits in self._splits.items()}
        self._cycles_to = {count: [0.0, *accumulate(self._cycles(count))] for count in self._splits}
        self._constants_to = {count: [0, *accumulate(self._constants(count))] for count in self._splits}
        self._best = lru_cache(maxsize=None)(self._best_of_first)

    def best(self, pes: int) -> Stages:
        """The stages on so many PEs of which the slowest takes least; empty if the constants need more PEs."""
        found = self._best(len(self._graph.ops), pes)
        return found[1] if found else ()

    def assignment(self, stages: Stages, order: Sequence[int]) -> Assignment:
        """The tiles of each op on the PEs of its stage."""
        return {
            self._graph.ops[index].name: self._tiles(index, stage.pes, order[stage.first :])
            for stage in stages
            for index in range(stage.begin, stage.end)
        }

    def _tiles(self, index: int, pes: int, order: Sequence[int]) -> tuple[Tile, ...]:
        boxes = to_boxes(self._splits[pes].tiles(self._graph.ops[index].output, self._chosen[pes][index]))
        return tuple(Tile(pe, box) for pe, box in zip(order, boxes, strict=False))

    def _cycles(self, pes: int) -> Iterator[float]:
        """Of each op on so many PEs."""
        for index, split in enumerate(self._chosen[pes]):
            yield self._splits[pes].cost(index, split).cycles + (EXCHANGE_CYCLES if pes > 1 else 0)

    def _constants(self, pes: int) -> Iterator[int]:
        for index, split in enumerate(self._chosen[pes]):
            yield self._splits[pes].cost(index, split).constant_bytes

    def _best_of_first(self, ops: int, pes: int) -> tuple[float, Stages] | None:
        """The first ops on the first PEs: what the slowest stage takes, and the stages."""
        if not ops:
            return 0.0, ()
        tried = (self._with_last(begin, ops, pes, count) for begin in range(ops) for count in range(1, pes + 1))
        return min((each for each in tried if each), key=lambda each: (each[0], len(each[1])), default=None)

    def _with_last(self, begin: int, end: int, pes: int, count: int) -> tuple[float, Stages] | None:
        """Those whose last stage begins there and is on so many PEs."""
        if self._constants_to[count][end] - self._constants_to[count][begin] > self._memory:
            return None
        before = self._best(begin, pes - count)
        if before is None:
            return None
        cycles = self._cycles_to[count][end] - self._cycles_to[count][begin]
        return max(before[0], cycles), (*before[1], Stage(begin, end, pes - count, count))


def cuts_of(stages: Stages) -> tuple[int, ...]:
    """The first ops of all stages but the first."""
    return tuple(after.begin for _, after in pairwise(stages))
