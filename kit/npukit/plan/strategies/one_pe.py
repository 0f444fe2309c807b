"""A single PE: the core's kernels in assembly, with tensor layouts chosen for the whole network, at several prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from npukit.accel.core_kernels import USUAL, CoreKernels, CostPreference, choose_core_kernels
from npukit.accel.core_waits import core_waits
from npukit.accel.cpu import Cpu
from npukit.net.net import CORE
from npukit.plan.batch.batch import frame
from npukit.plan.layout.layout_search import LatencySearch, effort_on
from npukit.plan.predict.memory import VARIABLE_BYTES
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Proposals, Slow, Strategy, Tried
from npukit.plan.strategies.frames import resident
from npukit.plan.strategies.streams import streams
from npukit.plan.tensors.problem import Problem


def one_pe(objective: str, preference: CostPreference = USUAL) -> Strategy:
    """Frames on the first PE. Kernels preferred by tuning come first. Tuning measured the cycles, therefore predicted
    kernels follow only if memory is short."""

    def one_pe(problem: Problem) -> Proposals:
        one = problem.on(problem.order[:1])
        if problem.fewest > 1 or not isinstance(problem.engines[CORE], Cpu):
            return
        for kernels, measured in _choices(one, objective, preference):
            board = one.board.seen_by(one.order[0])
            known = one.with_core(Cpu(kernels, board.core.type, core_waits(board)))
            assignment = LatencySearch(known, effort_on(known.order)).best()
            outcome = yield from resident(known, assignment)
            if isinstance(outcome, Slow):  # constants near may make it fast: a probe shows the room for them
                outcome = yield Candidate(known, frame(assignment), probe=True)
            if isinstance(outcome, Lacks) and len(problem.order) == 1:
                yield from streams(known)
            if isinstance(outcome, Fits):
                if near := _near(known, outcome):
                    yield Candidate(near, frame(LatencySearch(near, effort_on(near.order)).best()))
                if measured:
                    return

    return one_pe


def _choices(problem: Problem, objective: str, preference: CostPreference) -> Iterator[tuple[CoreKernels, bool]]:
    """Different choices of kernels: measured by tuning, then the fastest at each price, then the smallest."""
    board = problem.board.seen_by(problem.order[0])
    core, waits, known = board.core.type, core_waits(board), list[Mapping[str, object]]()
    if preference != USUAL:
        yield choose_core_kernels(problem.net, objective, preference, core, waits), True
    prices = () if objective == "memory" else waits.prices
    for goal, price in (*(("latency", price) for price in prices), ("memory", inf)):
        kernels = choose_core_kernels(problem.net, goal, core=core, waits=waits, price=price)
        if kernels.costs not in known:
            known.append(kernels.costs)
            yield kernels, False


def constants_near(best: Tried) -> Strategy:
    """The best plan again, with the constants of slow memory copied at start-up into memory without wait cycles, as
    far as room is left."""

    def constants_near(problem: Problem) -> Proposals:
        del problem
        assert isinstance(best.outcome, Fits)
        if near := _near(best.candidate.problem, best.outcome):
            yield Candidate(near, best.candidate.batch)

    return constants_near


def _near(problem: Problem, fits: Fits) -> Problem | None:
    """The problem with constants near, or None if none are."""
    board, core = problem.board, problem.engines[CORE]
    if not isinstance(core, Cpu) or core.waits.constants is None or board.memory_for("activations").waits is not None:
        return None
    room = min(pe.memory.free for pe in fits.plan.pes) - VARIABLE_BYTES
    fast = core.with_constants_near(problem.net, room)
    return problem.with_core(fast) if fast.constants_near(problem.net) else None
