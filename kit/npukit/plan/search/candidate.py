"""The values of a search: candidates, outcomes, and the lines of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from npukit.plan.batch.batch import Batch
from npukit.plan.emit.messages import UsualFlags
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import Lacks
from npukit.plan.tensors.problem import Problem


@dataclass(frozen=True)
class Candidate:
    """A mapping to try: a batch of frames on the PEs of a problem. A single frame is a batch of size 1.

    `probe`: a group of a larger batch, or the network's first ops, tried for cycles and memory, and never the result.
    """

    problem: Problem
    batch: Batch
    probe: bool = False


@dataclass(frozen=True)
class Fits:
    """Every PE has room for the plan. The plan has predictions. `flags`: settled on by later micro-batches."""

    plan: Plan
    flags: UsualFlags = field(default_factory=dict)


@dataclass(frozen=True)
class Slow:
    """The best plan is below this lower bound on the cycles."""

    cycles: float


Outcome = Fits | Lacks | Slow

Proposals = Generator[Candidate, Outcome, object]
"""Candidates of a strategy. Each receives the outcome of the candidate before. A return value serves other strategies
only."""

Strategy = Callable[[Problem], Proposals]


@dataclass(frozen=True, eq=False)
class Tried:
    """A candidate of a strategy, with the outcome."""

    strategy: str
    candidate: Candidate
    outcome: Outcome

    @property
    def line(self) -> Line:
        batch, name = self.candidate.batch, self.strategy
        on = f"{batch.frames} frame{'s' if batch.frames > 1 else ''} on {batch.pes} PE{'s' if batch.pes > 1 else ''}"
        on = f"a group of {on}" if self.candidate.probe else on
        match self.outcome:
            case Fits(plan):
                return Line(name, FITS, plan.predicted.interval_cycles, plan.headline())
            case Lacks(missing, pe):
                return Line(name, LACKS, missing, f"{on}: PE {pe} lacks {missing:,} bytes")
            case Slow(cycles):
                return Line(name, SLOW, cycles, f"{on}: {cycles:,.0f} cycles a frame at least")


FITS, LACKS, SLOW = "fits", "lacks memory", "too slow"


class Line(NamedTuple):
    """A line of the search's log. `figure`: cycles between frames, or missing bytes."""

    strategy: str
    outcome: str
    figure: float
    text: str

    def __str__(self) -> str:
        return f"{self.strategy}: {self.text}"


def summary_of(log: Sequence[Line]) -> list[str]:
    """A line for each strategy: the number of candidates by outcome, and the best, or the nearest to fit."""
    return [
        _of_strategy(name, [line for line in log if line.strategy == name])
        for name in dict.fromkeys(n for n, *_ in log)
    ]


def _of_strategy(name: str, lines: Sequence[Line]) -> str:
    counts = Counter(line.outcome for line in lines)
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (FITS, LACKS, SLOW) if counts[outcome])
    best = min(lines, key=lambda line: ((FITS, LACKS, SLOW).index(line.outcome), line.figure))
    return f"{name}: {counted}; best: {best.text}"
