"""A walk moves from the planner's first plan to faster neighbours, by simulation, within a budget."""

from __future__ import annotations

from itertools import islice

import pytest

from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search import neighbours
from npukit.plan.search.layout_search import THOROUGH, LatencySearch
from npukit.plan.search.neighbours import NEAREST, WEIGHTS, Neighbours, NeighbourWalk
from npukit.plan.search.splits import Splits
from npukit.plan.search.tries import planned
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import Builder, image_net


def problem(net: Net, pes: int = 8) -> Problem:
    board = load_board("pe-mesh")
    return Problem(Graph(net), board, engines(board)).on(range(pes))


def image_part() -> Net:
    b = Builder("part of an image net")
    x = b.conv(b.input(1, 32, 32, 3), 16, 3)
    x = b.add(b.conv(b.conv(x, 16, 3), 16, 3), x)
    return b.net(b.dense(b.flatten(b.global_pool(b.conv(x, 32, 3, 2))), 10))


@pytest.mark.exhaustive
def test_a_walk_finds_what_is_faster_than_a_search_that_weighs_moves_too_much() -> None:
    on_four = problem(image_net(), 4)
    search = LatencySearch(on_four, THOROUGH, moves_weigh=8.0)
    first = planned(on_four, search.best())
    found = NeighbourWalk(on_four, search, 0.0, {}).from_plan(first)
    assert found.predicted.latency_cycles < first.predicted.latency_cycles
    assert not missing_bytes(on_four.board, found)


@pytest.mark.exhaustive
def test_a_walk_leaves_pinned_ops_where_they_are() -> None:
    on_eight = problem(image_part())
    search = LatencySearch(on_eight, THOROUGH)
    best = search.best()
    op = on_eight.graph.ops[0].name
    pins = {op: best[op]}
    found = NeighbourWalk(on_eight, search, 0.0, pins).from_plan(planned(on_eight, best))
    tiles = {(pe.pe, step.output.box) for pe in found.pes for step in pe.computes() if step.op == op}
    assert tiles == {(tile.pe, tile.box) for tile in pins[op]}


def test_a_walk_tries_the_neighbours_that_are_expected_to_be_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan here is faster than the first, so the walk tries only neighbours of the first."""
    on_eight, tries = problem(image_part()), list[Assignment]()
    search = LatencySearch(on_eight, THOROUGH)
    first = planned(on_eight, search.best())

    def as_fast(_: Problem, assignment: Assignment) -> Plan:
        tries.append(assignment)
        return first

    monkeypatch.setattr(neighbours, "planned", as_fast)
    assert NeighbourWalk(on_eight, search, 0.0, {}).from_plan(first) == first
    assert NEAREST <= len(tries) < NEAREST + len(WEIGHTS)


def test_what_a_search_expects_of_its_own_splits_is_what_it_found_them_to_take() -> None:
    on_eight = problem(image_part())
    search = LatencySearch(on_eight, THOROUGH)
    found = search.best_found()
    near = search.expected_near(found.splits)
    assert near(found.splits) == found.cycles
    others = list(islice(Neighbours(on_eight.graph, Splits(on_eight, 8)).of(found.splits), 40))
    assert others
    assert [near(each) for each in others] == [search.expected_near(each)(each) for each in others]


def test_neighbours_are_mappings_of_the_net_and_differ_from_it() -> None:
    on_eight = problem(image_part())
    splits = Splits(on_eight, 8)
    best = LatencySearch(on_eight, THOROUGH).best_splits()
    found = [each for each, _ in zip(Neighbours(on_eight.graph, splits).of(best), range(50), strict=False)]
    assert all(splits.is_possible(i, split) for each in found for i, split in enumerate(each))
    assert any(each != best for each in found)
