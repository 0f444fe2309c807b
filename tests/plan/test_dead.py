"""Boards with dead parts: the plan avoids these parts and still computes the net."""

from __future__ import annotations

import random

import numpy as np
import pytest

from helpers import first_of
from npukit.board.board import Board, Grid, load_board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.net.reference.interpreter import run_reference
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_network
from npukit.plan.tensors.routes import Routes, pes_in_order
from oracles.plan_execution import Execution
from plan.engines import engines
from plan.networks import small_net

BOARD = load_board("pe-mesh")


def board_with(**mesh: object) -> Board:
    return BOARD.model_copy(update={"mesh": BOARD.mesh.model_copy(update=mesh)})


def assert_exact(net: Net, plan: Plan) -> None:
    inputs = [np.random.default_rng(3).integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)]
    for got, want in zip(Execution(net, plan).run(inputs), run_reference(net, inputs), strict=True):
        assert np.array_equal(got, want)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dead", first_of(sorted(range(BOARD.pe_count), key=lambda pe: pe not in (0, 5)), 2))
def test_any_one_pe_may_be_dead(dead: int) -> None:
    board = board_with(dead_pes=(dead,))
    plan = plan_network(small_net(), board, engines(board), max_pes=16)
    assert dead not in {pe.pe for pe in plan.pes}
    assert_exact(small_net(), plan)


@pytest.mark.exhaustive
def test_a_twentieth_of_a_chip_may_be_dead() -> None:
    grid = Grid(columns=8, rows=19)
    dead = tuple(random.Random(1).sample(range(grid.count), grid.count // 20))
    board = board_with(pes=grid, dead_pes=dead)
    plan = plan_network(small_net(), board, engines(board), max_pes=grid.count)
    assert {pe.pe for pe in plan.pes}.isdisjoint(dead)
    assert_exact(small_net(), plan)


@pytest.mark.exhaustive
@pytest.mark.parametrize("link", [(5, 6), (9, 5), pytest.param((0, 1), marks=pytest.mark.exhaustive)])
def test_no_message_takes_a_dead_link(link: tuple[int, int]) -> None:
    board = board_with(dead_links=(link,))
    plan = plan_network(small_net(), board, engines(board), max_pes=16)
    paths = [
        Routes(board).path(message.source_pe, landing.pe) for message in plan.messages for landing in message.landings
    ]
    assert len(plan.pes) >= 4
    assert not any({step.source, step.destination} == set(link) for path in paths for step in path)
    assert_exact(small_net(), plan)


def test_a_board_of_dead_pes_is_refused() -> None:
    with pytest.raises(DoesNotFit, match="every PE"):
        pes_in_order(board_with(dead_pes=tuple(range(16))))
