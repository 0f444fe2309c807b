"""A search ends when its budget is spent, tells how far it has come, and gives its best to whoever interrupts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from npukit.board.board import load_board
from npukit.plan.ir.plan import Plan, Predicted
from npukit.plan.search.objectives import fastest_plan
from npukit.plan.search.tries import size_of, tried
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import small_net


def problem(told: list[str]) -> Problem:
    board = load_board("pe-mesh")
    return Problem(Graph(small_net()), board, engines(board), tuple(range(4)), told.append)


def plans(*cycles: int) -> Iterator[Plan]:
    """A plan that fits, said to take so many cycles; then whoever waits is interrupted."""
    plan = fastest_plan(problem([]))
    for each in cycles:
        yield replace(plan, predicted=Predicted(each, each))
    raise KeyboardInterrupt


def test_a_search_ends_when_its_steps_and_messages_are_spent() -> None:
    size = size_of(next(plans(1)))
    assert [plan.predicted.latency_cycles for plan in tried(problem([]), plans(3, 2, 1), 2 * size)] == [3, 2]


def test_who_interrupts_a_search_has_what_it_has_found() -> None:
    told: list[str] = []
    found = list(tried(problem(told), plans(9000, 7000, 8000)))
    assert len(found) == 3
    assert told == [f"best so far {each} cycles on 4 PEs" for each in ("9,000", "7,000", "7,000")]


def test_who_interrupts_a_search_that_has_found_nothing_ends_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(tried(problem([]), plans()))
