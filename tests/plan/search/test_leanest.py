"""Drafts for least memory: what fits is never taken for too large, however small the memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helpers import first_of
from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.plan.planner import closest_plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.leanest import HASTY, FarTooLarge, leanest, refuse_if_far
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import image_net, keyword_net

EDGES = [(keyword_net, 2, 38), (keyword_net, 4, 36), (image_net, 2, 56), (image_net, 4, 50), (image_net, 16, 40)]
"""Networks on PEs with about as little memory, in KB, as they fit in."""


def with_memory(kilobytes: int, name: str = "pe-mesh") -> Board:
    board = load_board(name)
    return board.model_copy(update={"memory": (board.memory[0].model_copy(update={"size": kilobytes << 10}),)})


def on(make: Callable[[], Net], pes: int, kilobytes: int) -> Problem:
    board = with_memory(kilobytes)
    return Problem(Graph(make()), board, engines(board), max_pes=pes)


@pytest.mark.parametrize(("make", "pes", "kilobytes"), first_of(EDGES))
def test_what_a_search_finds_a_plan_for_is_not_far_too_large(
    make: Callable[[], Net], pes: int, kilobytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npukit.plan.search.objectives.refuse_if_far", lambda *_: None)
    fits = list[bool]()
    for size in (kilobytes, kilobytes - 4):
        problem = on(make, pes, size)
        try:
            fits.append(not missing_bytes(problem.board, closest_plan(problem, "latency")))
        except DoesNotFit:
            fits.append(False)
        assert not (fits[-1] and leanest(problem, LatencySearch(problem, HASTY)).missing)
    assert fits[0]
    assert not fits[-1], "the edge was not tried"


@pytest.mark.exhaustive
def test_what_fits_many_pes_has_a_draft_that_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.plan.search.objectives.refuse_if_far", leanest)
    fits = list[bool]()
    for size in (32, 28):
        problem = Problem(Graph(keyword_net()), board := with_memory(size, "pe-mesh-152"), engines(board), max_pes=24)
        fits.append(not missing_bytes(board, closest_plan(problem, "latency")))
        assert not (fits[-1] and leanest(problem, LatencySearch(problem, HASTY)).missing)
    assert fits == [True, False], "the edge was not tried"


def test_what_is_far_too_large_is_told_by_its_leanest_draft() -> None:
    problem = on(image_net, 2, 34)
    with pytest.raises(FarTooLarge, match="bytes are missing at least") as refused:
        refuse_if_far(problem, LatencySearch(problem, HASTY))
    assert refused.value.lean.missing > problem.board.memory[0].size // 8
    assert refused.value.lean.pes == 2
