"""The values of a search: a candidate, its outcome, and the record of both."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from npukit.plan.batch.batch import Batch
from npukit.plan.ir.plan import MemoryUse, Plan
from npukit.plan.tensors.problem import Problem


@dataclass(frozen=True)
class Candidate:
    """A mapping to try: a batch of frames on the PEs of a problem. A single frame is a batch of one.

    `probe`: the batch is one group of a larger batch, tried for its cycles and memory, and never the result.
    """

    problem: Problem
    batch: Batch
    probe: bool = False


@dataclass(frozen=True)
class Fits:
    """Every PE has room for the plan. The plan has its predictions."""

    plan: Plan


@dataclass(frozen=True)
class Lacks:
    """A PE has too little memory, or the emission failed for the reason `what`.

    `plan` is None if a lower bound on the memory was enough.
    """

    missing: int
    pe: int
    use: MemoryUse | None
    plan: Plan | None = None
    what: str = ""


@dataclass(frozen=True)
class Slow:
    """A lower bound on the cycles shows that the best plan so far is better."""

    cycles: float


Outcome = Fits | Lacks | Slow

Proposals = Generator[Candidate, Outcome, None]
"""Candidates of a strategy. Each receives the outcome of the candidate before."""

Strategy = Callable[[Problem], Proposals]


@dataclass(frozen=True, eq=False)
class Tried:
    """A candidate of a strategy with its outcome."""

    strategy: str
    candidate: Candidate
    outcome: Outcome

    def __str__(self) -> str:
        match self.outcome:
            case Fits(plan):
                return f"{self.strategy}: {plan.headline()}"
            case Lacks(missing, pe, what=what):
                return f"{self.strategy}: {what or f'PE {pe} lacks {missing:,} bytes'}"
            case Slow(cycles):
                return f"{self.strategy}: takes {cycles:,.0f} cycles at least"
