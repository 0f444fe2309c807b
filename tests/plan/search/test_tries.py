"""A search ends when its budget is spent, reports progress, and returns the best plan after an interrupt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from npukit.board.board import load_board
from npukit.host import parallel
from npukit.plan.batch_search.throughput import densest_plan
from npukit.plan.ir.plan import Plan, Predicted
from npukit.plan.search.layout_search import THOROUGH, LatencySearch
from npukit.plan.search.objectives import fastest_plan
from npukit.plan.search.tries import Budget, counted_in_order, interval, planned, tried
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import small_net

Item = TypeVar("Item")


def problem(told: list[str]) -> Problem:
    board = load_board("pe-mesh")
    return Problem(Graph(small_net()), board, engines(board), tuple(range(4)), told.append)


def plans(*cycles: int) -> Iterator[Plan]:
    """A fitting plan, with each of the predicted cycles in turn; then an interrupt."""
    plan = fastest_plan(problem([]))
    for each in cycles:
        yield replace(plan, predicted=Predicted(each, each))
    raise KeyboardInterrupt


def emitting(given: Problem, size: int, made: Iterable[Item]) -> Iterator[Item]:
    """The items, each at the cost of `size` steps and messages."""
    for each in made:
        given.work.done += size
        yield each


def test_a_search_ends_when_its_steps_and_messages_are_spent() -> None:
    given = problem([])
    given.work.done = 1000  # spent by other searches
    found = tried(given, emitting(given, 10, plans(3, 2, 1)), 20)
    assert [plan.predicted.latency_cycles for plan in found] == [3, 2]


def test_the_searches_of_a_call_share_what_it_may_emit() -> None:
    given = problem([])
    given.work.most = 30
    assert len(list(tried(given, emitting(given, 10, plans(4, 3))))) == 2
    assert len(list(tried(given, emitting(given, 10, plans(2, 1))))) == 1
    assert given.work.is_spent


def test_what_is_emitted_is_counted() -> None:
    given = problem([])
    plan = planned(given, LatencySearch(given, THOROUGH).best())
    assert given.work.done == len(plan.messages) + sum(len(pe.steps) for pe in plan.pes)


def test_what_is_done_in_other_processes_counts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem([])

    def work(size: int) -> int:
        return sum(emitting(given, size, [size]))

    for in_order in (parallel.in_order, map):
        monkeypatch.setattr("npukit.plan.search.tries.in_order", in_order)
        given.work.done = 0
        assert list(Budget(given, 30).within(counted_in_order(given, work, [10, 25, 40]))) == [10, 25]
        assert given.work.done == 35


def test_of_batches_the_shortest_interval_is_told() -> None:
    told: list[str] = []
    plan = replace(fastest_plan(problem([])), frames=2)
    batches = (replace(plan, predicted=Predicted(*cycles)) for cycles in ((10, 7), (11, 5)))
    assert len(list(tried(problem(told), batches, figure=interval))) == 2
    assert told == [
        "best of 1 plan so far 7 cycles a frame on 4 PEs",
        "best of 2 plans so far 5 cycles a frame on 4 PEs",
    ]


def test_a_search_whose_budget_is_spent_ends_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "is_spent", True)
    assert densest_plan(problem([])).frames == 4


def test_who_interrupts_a_search_has_what_it_has_found() -> None:
    told: list[str] = []
    found = list(tried(problem(told), plans(9000, 7000, 8000)))
    assert len(found) == 3
    best = ("1 plan so far 9,000", "2 plans so far 7,000", "3 plans so far 7,000")
    assert told == [f"best of {each} cycles on 4 PEs" for each in best]


def test_who_interrupts_a_search_that_has_found_nothing_ends_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(tried(problem([]), plans()))
