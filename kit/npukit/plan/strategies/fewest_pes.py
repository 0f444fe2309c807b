"""The fewest PEs: frames with resident constants, else with streamed constants, else with all in DRAM until its use."""

from __future__ import annotations

from collections.abc import Generator

from npukit.plan.search.candidate import Candidate, Outcome, Proposals
from npukit.plan.strategies.frames import fewer
from npukit.plan.strategies.layouts import at_prices
from npukit.plan.strategies.low_memory import low_memory_frame
from npukit.plan.strategies.streams import streams
from npukit.plan.tensors.problem import Problem


def fewest_pes(problem: Problem) -> Proposals:
    """Frames on more and more PEs, until the memory suffices, then on the numbers of PEs in between."""
    count, too_few = len(problem.order), problem.fewest - 1
    for enough in (*reversed([*fewer(count, problem.fewest)]), count):
        if (yield from _fits_on(problem, enough)):
            break
        too_few = enough
    else:
        return
    while too_few + 1 < enough:
        count = (too_few + enough) // 2
        if (yield from _fits_on(problem, count)):
            enough = count
        else:
            too_few = count


def _fits_on(problem: Problem, count: int) -> Generator[Candidate, Outcome, bool]:
    few = problem.on(problem.order[:count])
    found = yield from at_prices(few)
    return found is not None or (yield from streams(few)) or (yield from low_memory_frame(few))
