"""The plans that a search tries: so many as a budget allows, the best so far told, and given if the user interrupts.

A budget counts the steps and messages that are emitted, which is what takes the time, and not the time: the same
search ends with the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from npukit.dump import lost
from npukit.host.parallel import in_order
from npukit.net.net import CORE
from npukit.plan.emit.allocate import emit_plan
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.kernel_code import with_kernel_code
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.tensors.problem import Problem

Item = TypeVar("Item")
Result = TypeVar("Result")

BUDGET = 250_000
"""Steps and messages that a search may have emitted: six frames of MobileNetV1 on 152 PEs, or a thousand and more of
the MLPerf Tiny networks on 16."""


class Budget:
    """A limit of what one search may have emitted of a problem from now on, within that of the whole call."""

    def __init__(self, problem: Problem, most: int = BUDGET) -> None:
        self._work, self._until = problem.work, min(problem.work.done + most, problem.work.most)

    @property
    def is_spent(self) -> bool:
        return self._work.done >= self._until

    def within(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, until making one of them has spent the budget."""
        for item in items:
            yield item
            if self.is_spent:
                break


def counted_in_order(problem: Problem, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results of `work` for each item, in order; what is emitted for one counts when its result is taken.

    So the budget ends with the same result however many processes there are.
    """

    def counted(item: Item) -> tuple[Result, int]:
        before = problem.work.done
        result = work(item)
        spent, problem.work.done = problem.work.done - before, before
        return result, spent

    for result, spent in in_order(counted, items):
        problem.work.done += spent
        yield result


def latency(plan: Plan) -> int:
    return plan.predicted.latency_cycles


def interval(plan: Plan) -> int:
    return plan.predicted.interval_cycles


def tried(
    problem: Problem, plans: Iterable[Plan | None], budget: int = BUDGET, figure: Callable[[Plan], int] = latency
) -> Iterator[Plan]:
    """Yields these plans, but for those that are none, until the budget is spent. The best has the least `figure`.

    The user's interrupt ends it as well, if one of them fits.
    """
    fitting: Plan | None = None
    try:
        for plan in Budget(problem, budget).within(plans):
            if plan is None:
                continue
            missing = missing_bytes(problem.board, plan)
            better = not missing and (fitting is None or figure(plan) < figure(fitting))
            left, fitting = (fitting, plan) if better else (plan, fitting)
            if left:
                lost(left.headline, partial(why_not, problem, left, fitting))
            problem.tell(_best_so_far(problem, fitting, figure(fitting)) if fitting else _short_of(plan, missing))
            yield plan
    except KeyboardInterrupt:
        if fitting is None:
            raise


def why_not(problem: Problem, plan: Plan, better: Plan | None) -> str:
    """Why a plan was not taken: what it lacks, or which one is better."""
    missing = missing_bytes(problem.board, plan)
    if missing or better is None:
        return f"{missing:,} bytes too many"
    return f"not better than {better.headline()}"


def planned(problem: Problem, assignment: Assignment) -> Plan:
    """A frame in which every op is where the assignment has it. It may not fit: see the PEs' memory."""
    return with_predictions(problem.net, problem.board, emit_plan(problem, assignment, "latency"))


def with_kernels(problem: Problem, plan: Plan) -> Plan:
    """The plan with the code of the problem's kernels in its PEs' memory."""
    return with_kernel_code(problem.net, problem.board, plan, problem.engines[CORE])


def _best_so_far(problem: Problem, plan: Plan, cycles: int) -> str:
    told = f"{cycles:,} cycles{' a frame' if plan.frames > 1 else ''} on {_pes(plan)}"
    return problem.work.compared(cycles, told)


def _short_of(plan: Plan, missing: int) -> str:
    return f"{missing:,} bytes missing on {_pes(plan)}"


def _pes(plan: Plan) -> str:
    return f"{len(plan.pes)} PE{'s' if len(plan.pes) > 1 else ''}"
