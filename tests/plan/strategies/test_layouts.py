"""Layouts: the walk over neighbours helps, pinned ops stay in place, memory asks for the fewest PEs."""

from __future__ import annotations

import pytest

from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.plan.layout.layout_search import LatencySearch, effort_on
from npukit.plan.strategies import layouts as strategy
from npukit.plan.strategies.fewest_pes import fewest_pes
from npukit.plan.strategies.layouts import layouts, pinned
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import Builder, image_net
from plan.planning import best_plan

BOARD = load_board("pe-mesh")


def problem(net: Net, pes: int = 4) -> Problem:
    return Problem(Graph(net), BOARD, engines(BOARD)).on(range(pes))


def image_part() -> Net:
    b = Builder("part of an image net")
    x = b.conv(b.input(1, 32, 32, 3), 16, 3)
    x = b.add(b.conv(b.conv(x, 16, 3), 16, 3), x)
    return b.net(b.dense(b.flatten(b.global_pool(b.conv(x, 32, 3, 2))), 10))


@pytest.mark.exhaustive
def test_a_walk_over_neighbours_finds_a_faster_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = best_plan(problem(image_net()), layouts).predicted.latency_cycles
    monkeypatch.setattr(strategy, "WALKED", 0)
    assert walked < best_plan(problem(image_net()), layouts).predicted.latency_cycles


@pytest.mark.exhaustive
def test_pinned_ops_stay_in_place() -> None:
    given = problem(image_part(), 8)
    op = given.graph.ops[0].name
    pins = {op: LatencySearch(given, effort_on(given.order)).best()[op]}
    plan = best_plan(given, pinned(pins))
    tiles = {(pe.pe, step.output.box) for pe in plan.pes for step in pe.computes() if step.op == op}
    assert tiles == {(tile.pe, tile.box) for tile in pins[op]}


def test_constants_are_streamed_before_a_frame_takes_more_pes() -> None:
    plan = best_plan(problem(image_net(), 8), fewest_pes, objective="memory")
    assert plan.pes_used == 1
    assert plan.streams
