"""The plans that a search tries: so many as a budget allows, the best so far told, and given if the user interrupts.

The budget counts steps and messages of the plans, which is what takes the time, and not the time: the same search ends
with the same plan on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from npukit.dump import lost
from npukit.plan.emit.allocate import emit_plan
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.predict import with_predictions
from npukit.plan.tensors.problem import Problem

BUDGET = 250_000
"""Steps and messages of the plans that a search may try: six frames of MobileNetV1 on 152 PEs, or a thousand and more
of the MLPerf Tiny networks on 16."""


def tried(problem: Problem, plans: Iterator[Plan | None], budget: int = BUDGET) -> Iterator[Plan]:
    """Yields these plans, but for those that are none, until the budget is spent.

    The user's interrupt ends it as well, if one of them fits.
    """
    fitting: Plan | None = None
    try:
        for plan in plans:
            if plan is None:
                continue
            missing = missing_bytes(problem.board, plan)
            better = not missing and (fitting is None or _cycles(plan) < _cycles(fitting))
            left, fitting = (fitting, plan) if better else (plan, fitting)
            if left:
                lost(left.headline, partial(why_not, problem, left, fitting))
            problem.tell(_told(fitting or plan, 0 if fitting else missing))
            yield plan
            budget -= size_of(plan)
            if budget <= 0:
                break
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


def size_of(plan: Plan) -> int:
    """The steps and messages of a plan."""
    return len(plan.messages) + sum(len(pe.steps) for pe in plan.pes)


def _cycles(plan: Plan) -> int:
    return plan.predicted.latency_cycles


def _told(plan: Plan, missing: int) -> str:
    pes = f"{len(plan.pes)} PE{'s' if len(plan.pes) > 1 else ''}"
    return f"{missing:,} bytes missing on {pes}" if missing else f"best so far {_cycles(plan):,} cycles on {pes}"
