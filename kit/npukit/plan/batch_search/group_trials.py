"""What a round takes, and whether it fits, as one of its groups tells.

Groups differ only in when their inputs arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from npukit.board.board import Board
from npukit.plan.batch.batch import Round
from npukit.plan.batch.batch_emitter import round_with
from npukit.plan.batch.memory_bound import may_fit
from npukit.plan.batch.weight_streaming import none_or_all_streamed
from npukit.plan.emit.messages import UsualFlags
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

MOST_WAVES = 4

NEARLY_FITS = 6 << 10
"""Bytes by which the flags on which a round settles may be worth another look."""

SECOND_WAVE = 6 << 10
"""Bytes that a second wave takes at least: the inputs of the next are there while one is computed, and what differs of
the program."""

EACH_WAVE = 0.45
"""Of the bytes that a second wave takes, what each further wave takes at least."""


@dataclass(frozen=True)
class Tried:
    """A round, and the cycles that one of its groups takes alone, and that the others come later."""

    wanted: Round
    cycles: int
    later: float
    free: int
    """Bytes that its fullest PE has left."""
    wave: float | None = None
    """Cycles of each wave behind the first, if it has several."""
    settled: UsualFlags = field(default_factory=dict)
    """Of its group, if it has several waves."""

    @property
    def interval(self) -> float:
        """Cycles between frames that this lets expect."""
        return self.interval_in(self.wanted.waves, 0)

    def interval_in(self, waves: int, settled: float) -> float:
        """The same in so many waves, of which each behind the first takes the `settled` part of it if none is known."""
        wave = self.wave or settled * self.cycles
        cycles = self.cycles + (waves - self.wanted.waves) * wave + self.later
        return cycles / (waves * len(self.wanted.groups))


class Trials:
    """Of one net on one board."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def first(self, wanted: Round) -> Tried | None:
        """In one wave, if a group of it fits: with all constants kept or all streamed, in bands only if it must."""
        found = next(filter(None, map(self._fitting, _with_bands_last(wanted))), None)
        if found is None:
            return None
        fitting, plan = found
        later = (len(wanted.groups) - 1) * _input_cycles(self._problem.graph, self._problem.board)
        return Tried(replace(fitting, groups=wanted.groups), self._cycles(plan), later, _free(plan))

    def _fitting(self, wanted: Round) -> tuple[Round, Plan] | None:
        alone = replace(wanted, groups=_one_of(wanted))
        if not may_fit(self._problem, alone):
            return None
        return none_or_all_streamed(self._problem, alone)

    def longest(self, tried: Tried, best: float) -> list[Tried]:
        """Of one wave in more, as many as fit, as long as that may be better than the best interval."""
        two = self.instead(tried, replace(tried.wanted, waves=2)) if tried.free >= SECOND_WAVE else None
        if two is None:
            return []
        second = tried.free - two.free
        for waves in range(MOST_WAVES, 2, -1):
            if two.interval_in(waves, 0) >= best:
                break
            if two.free - (waves - 2) * EACH_WAVE * second < -NEARLY_FITS:
                continue
            longer = self.instead(two, replace(two.wanted, waves=waves))
            if longer:
                return [two, longer]
        return [two]

    def otherwise(self, tried: Tried, least: Round) -> list[Tried]:
        """The same groups in another round, and that with as many more waves as one of them holds."""
        found: list[Tried] = []
        if least.room is not None and tried.free - (_slice_room(least) - _slice_room(tried.wanted)) < -NEARLY_FITS:
            return found
        for waves in range(least.waves, MOST_WAVES + 1):
            other = self.instead(found[-1] if found else tried, replace(least, waves=waves))
            if other is None:
                break
            found.append(other)
        return found

    def instead(self, tried: Tried, wanted: Round) -> Tried | None:
        """Another round of the same groups, if one of them fits."""
        as_before = _ways(wanted) == _ways(tried.wanted)
        alone = replace(wanted, groups=_one_of(wanted))
        plan, settled = self._round_with(alone, tried.settled if as_before else {})
        if wanted.waves > 1 and 0 < missing_bytes(self._problem.board, plan) < NEARLY_FITS:  # its own flags may do
            plan, settled = self._round_with(alone, settled)
        if missing_bytes(self._problem.board, plan):
            return None
        cycles, more = self._cycles(plan), wanted.waves - tried.wanted.waves
        wave = (cycles - tried.cycles) / more if more and as_before else tried.wave
        settled = settled if wanted.waves > 1 else {}
        return replace(tried, wanted=wanted, cycles=cycles, free=_free(plan), wave=wave, settled=settled)

    def _round_with(self, alone: Round, flags: UsualFlags) -> tuple[Plan, UsualFlags]:
        return round_with(self._problem, alone, flags)

    def _cycles(self, plan: Plan) -> int:
        return simulate(self._problem.net, self._problem.board, plan).latency_cycles


def _free(plan: Plan) -> int:
    return min(pe.memory.free for pe in plan.pes)


def _slice_room(wanted: Round) -> int:
    """Bytes for slices where there is least room."""
    return wanted.slices * wanted.slice_bytes


def _with_bands_last(wanted: Round) -> Iterator[Round]:
    """Bands take longer."""
    if wanted.bands:
        yield replace(wanted, bands={})
    yield wanted


def _ways(wanted: Round) -> tuple[int | None, ...]:
    """What of a round is about its slices."""
    return wanted.slice_bytes, wanted.slices, wanted.room, wanted.lead


def _one_of(wanted: Round) -> tuple[Assignment]:
    """The group that tells what all take: none with the root, and if they are alike the one that is emitted."""
    return (wanted.groups[0 if wanted.feeders else -1],)


def _input_cycles(graph: Graph, board: Board) -> float:
    """Of the DRAM, for a frame's inputs."""
    assert board.noc is not None
    return sum(graph.net.tensor(name).bytes for name in graph.net.inputs) / board.noc.dram_bytes_per_cycle
