"""The search: strategies propose candidates, lower bounds drop most, the others are emitted and simulated, and the best
plan is kept.

The search ends with the same plan on every machine, because the budget counts work instead of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import inf

from npukit.accel.cpu import Cpu
from npukit.net.net import CORE
from npukit.plan.batch.batch import weighed
from npukit.plan.batch.batch_emitter import emit_with_flags
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.kernels import with_kernel_code
from npukit.plan.predict.memory import lacking_of, with_code
from npukit.plan.predict.simulate import ROUNDS, with_predictions
from npukit.plan.search.bound import least_cycles, least_lacking
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Line, Outcome, Slow, Strategy, Tried
from npukit.plan.tensors.problem import Problem


@dataclass(frozen=True)
class Objective:
    """`figure`: the figures to compare plans by; less is better. `bound`: the first figure of a plan with at least
    these cycles per frame, on this number of PEs."""

    name: str
    figure: Callable[[Plan], tuple[float, ...]]
    bound: Callable[[float, int], float]


OBJECTIVES = {
    each.name: each
    for each in (
        Objective("latency", lambda p: (p.predicted.latency_cycles, p.pes_used), lambda cycles, pes: cycles),
        Objective("memory", lambda p: (p.pes_used, p.predicted.latency_cycles), lambda cycles, pes: pes),
        Objective(
            "throughput",
            lambda p: (weighed(p.predicted.interval_cycles, p.frames), p.predicted.latency_cycles, p.pes_used),
            lambda cycles, pes: cycles,
        ),
    )
}


@dataclass
class Search:
    """A search for an objective.

    `nearest`: the candidate with the fewest missing bytes. `log`: a line for every candidate.
    """

    objective: Objective
    best: Tried | None = None
    nearest: Tried | None = None
    log: list[Line] = field(default_factory=list)

    def run(self, problem: Problem, strategies: Iterable[Strategy]) -> None:
        """Try the candidates of each strategy until the budget is spent. An interrupt ends the search as well, if a
        plan fits."""
        try:
            for strategy in strategies:
                self._run(problem, strategy)
        except KeyboardInterrupt:
            if self.best is None:
                raise

    def _run(self, problem: Problem, strategy: Strategy) -> None:
        known, outcome = list[Tried](), None
        with closing(strategy(problem)) as proposals:
            while problem.work.done < problem.work.most:
                try:
                    candidate = proposals.send(outcome)  # pyright: ignore[reportArgumentType]
                except StopIteration:
                    return
                if candidate.probe and problem.work.done > 3 / 4 * problem.work.most:  # whole candidates need the rest
                    outcome = Slow(inf)
                    continue
                tried = next((each for each in known if each.candidate == candidate), None)
                if tried is None:
                    tried = Tried(strategy.__name__, candidate, self._outcome(candidate))
                    known.append(tried)
                    self._note(tried, problem.net.outputs)
                outcome = tried.outcome

    def _note(self, tried: Tried, outputs: Sequence[str]) -> None:
        """Log a candidate and compare it with the best. A candidate without the network's outputs is never kept."""
        self.log.append(tried.line)
        is_whole = tried.candidate.problem.net.outputs == outputs
        match tried.outcome:
            case Fits() if is_whole and not tried.candidate.probe:
                if self.best is None or self._figure(tried) < self._figure(self.best):
                    self.best = tried
            case Lacks(missing) if is_whole:
                if self.nearest is None or missing < _missing(self.nearest):
                    self.nearest = tried
        tried.candidate.problem.tell(f"best of {len(self.log)}: {(self.best or tried).line.text}")

    def _figure(self, tried: Tried) -> tuple[float, ...]:
        assert isinstance(tried.outcome, Fits)
        return self.objective.figure(tried.outcome.plan)

    def _outcome(self, candidate: Candidate) -> Outcome:
        problem, batch = candidate.problem, candidate.batch
        cycles = least_cycles(problem, batch)
        if self.best and not candidate.probe and self.objective.bound(cycles, batch.pes) > self._figure(self.best)[0]:
            return Slow(cycles)
        least = least_lacking(problem, batch)
        if least.missing:
            return least
        plan, flags = emit_with_flags(problem, batch, settle=not candidate.probe)
        plan = _complete(problem, plan)
        lacking = lacking_of(problem.board, plan)
        if lacking.missing:
            return lacking
        plan = with_predictions(
            problem.net, problem.board, plan, ROUNDS if batch.frames > 1 and not candidate.probe else 1
        )
        return Fits(replace(plan, objective=self.objective.name), flags)


def _missing(tried: Tried) -> int:
    assert isinstance(tried.outcome, Lacks)
    return tried.outcome.missing


def _complete(problem: Problem, plan: Plan) -> Plan:
    """The plan with the code of the core's kernels, and the constants copied at start-up, in the memory of the PEs."""
    core, board = problem.engines[CORE], problem.board
    plan = with_kernel_code(problem.net, board, plan, core)
    near = core.constants_near(problem.net) if isinstance(core, Cpu) else 0
    if not near:
        return plan
    pes = (replace(pe, memory=with_code(board.seen_by(pe.pe), pe.memory, 0, near)) for pe in plan.pes)
    return replace(plan, pes=tuple(pes))
