"""Neighbours are possible mappings, and the search for layouts estimates them."""

from __future__ import annotations

from itertools import islice

from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.plan.layout.layout_search import LatencySearch, effort_on
from npukit.plan.layout.splits import Splits
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import Builder


def problem(net: Net, pes: int = 8) -> Problem:
    board = load_board("pe-mesh")
    return Problem(Graph(net), board, engines(board)).on(range(pes))


def image_part() -> Net:
    b = Builder("part of an image net")
    x = b.conv(b.input(1, 32, 32, 3), 16, 3)
    x = b.add(b.conv(b.conv(x, 16, 3), 16, 3), x)
    return b.net(b.dense(b.flatten(b.global_pool(b.conv(x, 32, 3, 2))), 10))


def test_what_a_search_expects_of_its_own_splits_is_what_it_found_them_to_take() -> None:
    on_eight = problem(image_part())
    search = LatencySearch(on_eight, effort_on(on_eight.order))
    found = search.best_found()
    near = search.expected_near(found.splits)
    assert near(found.splits) == found.cycles
    others = list(islice(Splits(on_eight, 8).neighbours(found.splits), 40))
    assert others
    assert [near(each) for each in others] == [search.expected_near(each)(each) for each in others]


def test_neighbours_are_mappings_of_the_net_and_differ_from_it() -> None:
    on_eight = problem(image_part())
    splits = Splits(on_eight, 8)
    best = LatencySearch(on_eight, effort_on(on_eight.order)).best_found().splits
    found = [each for each, _ in zip(splits.neighbours(best), range(50), strict=False)]
    assert all(splits.is_possible(i, split) for each in found for i, split in enumerate(each))
    assert any(each != best for each in found)
