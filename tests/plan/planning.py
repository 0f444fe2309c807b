"""Plans for tests, from the strategies of the planner's search."""

from __future__ import annotations

from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import STRATEGIES
from npukit.plan.search.candidate import Fits, Strategy
from npukit.plan.search.search import OBJECTIVES, Search
from npukit.plan.strategies.layouts import pinned
from npukit.plan.tensors.problem import Problem


def searched(problem: Problem, *strategies: Strategy, objective: str = "latency") -> Search:
    """The search by these strategies alone, or by all for the objective."""
    search = Search(OBJECTIVES[objective])
    search.run(problem, strategies or STRATEGIES[objective](problem, search))
    return search


def best_plan(problem: Problem, *strategies: Strategy, objective: str = "latency") -> Plan:
    """The best plan of these strategies alone, or of all for the objective."""
    best = searched(problem, *strategies, objective=objective).best
    assert best is not None, "nothing fits"
    assert isinstance(best.outcome, Fits)
    return best.outcome.plan


def plan_with_pins(problem: Problem, pins: Assignment) -> Plan:
    """The plan with pinned ops, on the PEs of these, without kernels in assembly."""
    named = {tile.pe for tiles in pins.values() for tile in tiles}
    return best_plan(problem.on([pe for pe in problem.order if pe in named]), pinned(pins))
