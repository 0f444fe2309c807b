"""Trials of a batch by one of its groups: what it takes, and whether it fits.

Groups differ only in when their inputs arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import batch_with_flags
from npukit.plan.batch.memory_bound import may_fit
from npukit.plan.batch.schedule import output_bytes
from npukit.plan.batch.weight_streaming import none_or_all_streamed
from npukit.plan.batch.weight_tiles import MOST_LISTED
from npukit.plan.emit.messages import UsualFlags, descriptor_bytes
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.predict.memory import FIRMWARE_BYTES, STACK_BYTES, missing_bytes
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

MOST_MICRO_BATCHES = 4
"""The most micro-batches: 8 make the held-out networks no faster (`planner_constants.py batches`)."""

WELL_USED = 0.92
"""The part of the PEs that the groups of a size must take together."""

NEARLY_FITS = 6 << 10
"""Bytes by which the flags on which a batch settles may be worth another look. Without it MobileNetV1 on 152 PEs has
three micro-batches instead of four, and is 1.4 % slower (`planner_constants.py batches`)."""

SECOND_MICRO_BATCH = 6 << 10
"""Bytes that a second micro-batch takes at least: the inputs of the next are there while one is computed, and what
differs of the program. With four times as many MobileNetV1 is 7.0 % slower on 152 PEs, with none the planner 10 %
(`planner_constants.py batches`)."""

EACH_MICRO_BATCH = 0.45
"""The least part of the bytes of a second micro-batch that each further one takes. It saves trials: with 0.1 the
planner finds the same batches of MobileNetV1 and V2 and takes 25 % longer (`planner_constants.py batches`)."""


@dataclass(frozen=True)
class Tried:
    """A batch, and the cycles that one of its groups takes alone, and that the others come later."""

    wanted: Batch
    cycles: int
    later: float
    free: int
    """Bytes that its fullest PE has left."""
    micro_batch: float | None = None
    """Cycles of each micro-batch behind the first, if it has several."""
    settled: UsualFlags = field(default_factory=dict)
    """The flags on which its group settles, if it has several micro-batches."""

    @property
    def interval(self) -> float:
        """Cycles between frames that this lets expect."""
        return self.interval_in(self.wanted.pipeline.micro_batches, 0)

    def interval_in(self, micro_batches: int, settled: float) -> float:
        """The same in so many micro-batches, of which each behind the first takes the `settled` part of it if none is
        known."""
        micro_batch = self.micro_batch or settled * self.cycles
        cycles = self.cycles + (micro_batches - self.wanted.pipeline.micro_batches) * micro_batch + self.later
        return cycles / (micro_batches * len(self.wanted.groups))


class Trials:
    """Trials of one net on one board."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def first(self, wanted: Batch) -> Tried | None:
        """A trial in one micro-batch, if a group of it fits: constants kept or streamed, in bands only if it must."""
        found = next(filter(None, map(self._fitting, _with_bands_last(wanted))), None)
        if found is None:
            return None
        fitting, plan = found
        later = (len(fitting.groups) - 1) * _input_cycles(self._problem.graph, self._problem.board)
        return Tried(fitting, self._cycles(plan), later, _free(plan))

    def _fitting(self, wanted: Batch) -> tuple[Batch, Plan] | None:
        """The batch, with constants kept or streamed, and the plan of one of its groups."""
        alone = replace(wanted, groups=_one_of(wanted))
        may = _root_holds_outputs(self._problem, wanted) and may_fit(self._problem, alone)
        found = none_or_all_streamed(self._problem, alone) if may else None
        if found is None:
            return None
        fitting, plan = found
        apart = _with_prefetchers(wanted, _prefetchers_needed(self._problem, wanted, plan))
        return self._fitting(apart) if apart != wanted else (replace(fitting, groups=wanted.groups), plan)

    def longest(self, tried: Tried, best: float) -> list[Tried]:
        """Trials in more micro-batches, as many as fit, as long as that may be better than the best interval."""
        two = self.instead(tried, _in_micro_batches(tried.wanted, 2)) if tried.free >= SECOND_MICRO_BATCH else None
        if two is None:
            return []
        second = tried.free - two.free
        for micro_batches in range(MOST_MICRO_BATCHES, 2, -1):
            if two.interval_in(micro_batches, 0) >= best:
                break
            if two.free - (micro_batches - 2) * EACH_MICRO_BATCH * second < -NEARLY_FITS:
                continue
            longer = self.instead(two, _in_micro_batches(two.wanted, micro_batches))
            if longer:
                return [two, longer]
        return [two]

    def otherwise(self, tried: Tried, least: Batch) -> list[Tried]:
        """The same groups in another batch, and that with as many more micro-batches as one of them holds."""
        found: list[Tried] = []
        more = least.stream.least_bytes - tried.wanted.stream.least_bytes
        if least.stream.room is not None and tried.free - more < -NEARLY_FITS:
            return found
        for micro_batches in range(least.pipeline.micro_batches, MOST_MICRO_BATCHES + 1):
            other = self.instead(found[-1] if found else tried, _in_micro_batches(least, micro_batches))
            if other is None:
                break
            found.append(other)
        return found

    def instead(self, tried: Tried, wanted: Batch) -> Tried | None:
        """Another batch of the same groups, if one of them fits, and the root can hold the outputs of all."""
        if not _root_holds_outputs(self._problem, wanted):
            return None
        as_before = wanted.stream == tried.wanted.stream
        alone = replace(wanted, groups=_one_of(wanted))
        plan, settled = batch_with_flags(self._problem, alone, tried.settled if as_before else {})
        missing = missing_bytes(self._problem.board, plan)
        if wanted.pipeline.micro_batches > 1 and 0 < missing < NEARLY_FITS:  # its own flags may do
            plan, settled = batch_with_flags(self._problem, alone, settled)
        crowded = wanted.prefetchers and _prefetchers_needed(self._problem, wanted, plan) > len(wanted.prefetchers)
        if crowded or missing_bytes(self._problem.board, plan):
            return None
        cycles, more = self._cycles(plan), wanted.pipeline.micro_batches - tried.wanted.pipeline.micro_batches
        micro_batch = (cycles - tried.cycles) / more if more and as_before else tried.micro_batch
        settled = settled if wanted.pipeline.micro_batches > 1 else {}
        return replace(tried, wanted=wanted, cycles=cycles, free=_free(plan), micro_batch=micro_batch, settled=settled)

    def _cycles(self, plan: Plan) -> int:
        return simulate(self._problem.net, self._problem.board, plan).latency_cycles


def _in_micro_batches(wanted: Batch, count: int) -> Batch:
    return replace(wanted, pipeline=replace(wanted.pipeline, micro_batches=count))


def _prefetchers_needed(problem: Problem, wanted: Batch, plan: Plan) -> int:
    """The PEs that hold the descriptors of what a group streams, as its plan has it, for all groups.

    The root, which holds the outputs too, is one of them.
    """
    streamed = {each.source.buffer: len(each.landings) for each in plan.messages if _is_streamed(each)}
    listed = sum(descriptor_bytes(1, len(wanted.groups) * pes) for pes in streamed.values())
    return ceil((listed + wanted.frames * output_bytes(problem.graph)) / MOST_LISTED) if listed else 0


def _is_streamed(message: Message) -> bool:
    return message.source_pe >= DRAM and not message.tensor


def _with_prefetchers(wanted: Batch, needed: int) -> Batch:
    """The batch with as many of the first groups left out as it takes to have so many prefetching PEs, if few are lost.

    PEs that prefetch and compute do as no others do: then each group would be emitted, and wait for those.
    """
    groups, prefetchers = list(wanted.groups), list(wanted.prefetchers)
    while len(prefetchers) < needed and len(groups) > 1:
        prefetchers += dict.fromkeys(tile.pe for tiles in groups.pop(0).values() for tile in tiles)
    if len(groups) < WELL_USED * len(wanted.groups):
        return wanted
    return replace(wanted, groups=tuple(groups), prefetchers=tuple(prefetchers))


def _root_holds_outputs(problem: Problem, wanted: Batch) -> bool:
    """True if the outputs of a whole batch have room beside the root's program."""
    room = problem.board.memory_for("activations").size - FIRMWARE_BYTES - STACK_BYTES
    return wanted.frames * output_bytes(problem.graph) <= room


def _free(plan: Plan) -> int:
    return min(pe.memory.free for pe in plan.pes)


def _with_bands_last(wanted: Batch) -> Iterator[Batch]:
    """Bands take longer."""
    if wanted.bands:
        yield replace(wanted, bands={})
    yield wanted


def _one_of(wanted: Batch) -> tuple[Assignment]:
    """The group that tells what all take: none with the root, and if they are alike the one that is emitted."""
    return (wanted.groups[0 if wanted.prefetchers else -1],)


def _input_cycles(graph: Graph, board: Board) -> float:
    """The cycles of the DRAM for a frame's inputs."""
    assert board.noc is not None
    return sum(graph.net.tensor(name).bytes for name in graph.net.inputs) / board.noc.dram_bytes_per_cycle
