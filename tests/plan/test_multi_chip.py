"""Boards of many chips: the chips with equal work, and the extension of one chip's plan to all chips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from npukit.board.board import Board, Grid, load_board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.options import Options
from npukit.pipeline import within_chips
from npukit.plan.ir.plan import Plan
from npukit.plan.ir.store import load_plan, save_plan
from npukit.plan.multi_chip import board_of_one, equal_chips, twins
from npukit.plan.planner import best_of
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem, Work
from npukit.plan.tensors.routes import pes_of_chips, pes_to_use
from plan.engines import engines
from plan.networks import Builder


def board(columns: int = 3, rows: int = 2, **mesh: object) -> Board:
    """A board of chips with 2 x 2 PEs: PEs 4 n to 4 n + 3 are chip n."""
    base = load_board("pe-mesh-7296")
    chips, pes = Grid(columns=columns, rows=rows), Grid(columns=2, rows=2)
    return base.model_copy(update={"mesh": base.mesh.model_copy(update={"chips": chips, "pes": pes, **mesh})})


def test_what_is_dead_on_one_chip_none_uses_unless_there_are_more_pes_without_it() -> None:
    assert equal_chips(board()) == (0, 1, 2, 3, 4, 5)
    one_dead = board(dead_pes=(6,))
    assert equal_chips(one_dead) == (0, 2, 3, 4, 5)  # 5 x 4 PEs, not 6 x 3
    several = board(dead_pes=(6, 10, 14, 18))
    assert equal_chips(several) == (0, 1, 2, 3, 4, 5)  # 6 x 3, not 2 x 4
    assert board_of_one(several, equal_chips(several)).mesh.dead_pes == (2,)


def test_chips_that_the_root_does_not_reach_are_left_out() -> None:
    """The root's packets from chip 1 to chip 2 cross from PE 5 to PE 8; packets to chip 5 take the same row."""
    assert equal_chips(board(dead_links=((5, 8),))) == (0, 1, 3, 4)
    assert equal_chips(board(dead_pes=(20,))) == (0, 1, 2, 3, 4)  # PE 20 would lead chip 5


def test_dead_links_within_a_chip_are_dead_for_all() -> None:
    one = board_of_one(board(dead_links=((6, 7), (1, 4))), (0, 1))
    assert one.mesh.dead_links == ((2, 3),)


def test_chips_that_are_allowed_count_by_their_live_pes() -> None:
    some_dead = board(dead_pes=(6, 7, 12))
    assert [pes_of_chips(some_dead, chips) for chips in (1, 2, 3, 9)] == [4, 6, 10, 21]
    for chips in (1, 2, 3):
        allowed = pes_to_use(some_dead, pes_of_chips(some_dead, chips))
        assert {pe // 4 for pe in allowed} == set(range(chips))
    limits = (Options(chips=2), Options(chips=2, pes=3), Options(chips=2, pes=9), Options(pes=9))
    assert [within_chips(some_dead, options).pes for options in limits] == [6, 3, 6, 9]


def fastest_batch(net: Net, many: Board, max_pes: int | None) -> Plan:
    return best_of([Problem(Graph(net), many, engines(many), max_pes=max_pes)], "throughput").plan


@pytest.mark.parametrize(("max_pes", "chips"), [(None, 6), (24, 6), (11, 2), (7, 1), (3, 1)])
def test_throughput_fills_whole_chips(max_pes: int | None, chips: int) -> None:
    b = Builder("small")
    small, many = b.net(b.dense(b.input(1, 32), 16)), board()
    plan = fastest_batch(small, many, max_pes)
    assert len(plan.chips) == chips
    if chips > 1:
        assert {pe.pe for pe in plan.pes} <= set(range(4))
        assert plan.frames_of_all == chips * plan.frames
        assert [pe for pe, _ in twins(many, plan)] == list(range(4 * chips))
        assert all(message.source_pe < 4 or message.source_pe == DRAM for message in plan.messages)
        alone = fastest_batch(small, many, 4)
        words = plan.predicted.latency_cycles - alone.predicted.latency_cycles
        assert 2 * 40 < words < 1000  # across a border and back, at least


def test_a_frame_takes_the_pes_of_the_roots_chip_unless_more_are_allowed() -> None:
    assert pes_to_use(board(), None) == [0, 1, 3, 2]
    assert pes_to_use(board(), 6) == [0, 1, 3, 2, 4, 5]
    assert pes_to_use(board(dead_pes=(0, 1, 2, 3, 4)), None) == [5, 7, 6]


@pytest.mark.parametrize("most", [1, 1000])
def test_a_budget_is_spent_first_where_all_constants_have_room(most: int) -> None:
    """Three layers of 200 KB fit on two chips. The root's chip streams some of them."""
    b, many = Builder("large"), board(2, 1)
    large = b.net(b.dense(b.dense(b.dense(b.input(1, 448), 448), 448), 448))
    problem = Problem(Graph(large), many, engines(many), max_pes=8, work=Work(most=most))
    assert best_of([problem], "latency").plan.pes_used > many.mesh.pes.count


def test_a_plan_on_chips_reads_back(tmp_path: Path) -> None:
    b = Builder("small")
    small, many = b.net(b.dense(b.input(1, 32), 16)), board()
    plan = fastest_batch(small, many, None)
    save_plan(plan, tmp_path / "plan.txt")
    assert load_plan(tmp_path / "plan.txt") == plan
    assert replace(plan, chips=(0,)) != plan
