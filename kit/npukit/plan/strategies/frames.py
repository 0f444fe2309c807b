"""Steps shared by strategies for single frames."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from npukit.plan.batch.batch import frame
from npukit.plan.ir.assignment import Assignment
from npukit.plan.search.candidate import Candidate, Lacks, Outcome
from npukit.plan.tensors.problem import Problem

Step = Generator[Candidate, Outcome, Outcome]
"""A part of a strategy: proposes candidates and returns the last outcome."""


def resident(problem: Problem, assignment: Assignment, *, probe: bool = False) -> Step:
    """A frame with all constants in the PEs. If it lacks memory, PEs wait until their messages have left."""
    outcome = yield Candidate(problem, frame(assignment), probe)
    if isinstance(outcome, Lacks) and outcome.plan:
        outcome = yield Candidate(problem, frame(assignment, patient=False), probe)
    return outcome


def fewer(count: int, least: int) -> Iterator[int]:
    """Numbers of PEs below `count`, the largest first: powers of two, and three quarters of each."""
    rungs = sorted({times << power for power in range(count.bit_length()) for times in (1, 3)}, reverse=True)
    return (each for each in rungs if least <= each < count)
