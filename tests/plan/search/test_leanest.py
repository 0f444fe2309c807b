"""Drafts for least memory: a plan that fits is never refused, however small the memory."""

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
from npukit.plan.search.leanest import HASTY, FarTooLarge, Lean, leanest, refuse_if_far
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import autoencoder, image_net, keyword_net, wake_word_net

EDGES = [(keyword_net, 2, 38), (keyword_net, 4, 36), (image_net, 2, 56), (image_net, 4, 50), (image_net, 16, 40)]
"""Network, number of PEs, and KB of memory per PE just above the least that fits."""

EDGES_OF_MANY = [
    (autoencoder, 24, 24, "throughput"),
    (autoencoder, 24, 20, "latency"),
    (keyword_net, 24, 24, "throughput"),
    (keyword_net, 24, 24, "latency"),
    (keyword_net, 152, 24, "latency"),
    (image_net, 24, 24, "latency"),
    (image_net, 24, 24, "throughput"),
    (wake_word_net, 24, 25, "throughput"),
]
"""The same for more than 20 PEs, with the objective. The least memory is the same with and without refusals: with 4 KB
less, neither finds a plan."""


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
@pytest.mark.parametrize(("make", "pes", "kilobytes", "objective"), first_of(EDGES_OF_MANY))
def test_what_fits_many_pes_without_refusals_fits_with_them(
    make: Callable[[], Net], pes: int, kilobytes: int, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fits(make, pes, kilobytes, objective)
    assert not fits(make, pes, kilobytes - 4, objective)
    monkeypatch.setattr(Lean, "is_far", lambda *_: False)
    monkeypatch.setattr(Lean, "is_tight", lambda *_: False)
    assert not fits(make, pes, kilobytes - 4, objective)


def fits(make: Callable[[], Net], pes: int, kilobytes: int, objective: str) -> bool:
    """True if a plan exists on `pes` PEs of a full chip with `kilobytes` of memory each."""
    board = with_memory(kilobytes, "pe-mesh-152")
    try:
        plan = closest_plan(Problem(Graph(make()), board, engines(board), max_pes=pes), objective)
    except DoesNotFit:
        return False
    return not missing_bytes(board, plan)


def test_what_is_far_too_large_is_told_by_its_leanest_draft() -> None:
    problem = on(image_net, 2, 34)
    with pytest.raises(FarTooLarge, match="bytes are missing at least") as refused:
        refuse_if_far(problem, LatencySearch(problem, HASTY))
    assert refused.value.lean.missing > problem.board.memory[0].size // 8
    assert refused.value.lean.pes == 2
