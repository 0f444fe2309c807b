"""A requested frame rate: reached, or refused with the limiting part of the board."""

from __future__ import annotations

import pytest

from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_network
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.predict.utilisation import refuse_missed_rate
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import emitted_frame
from plan.batch.test_batch_emitter import heavy
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def small() -> Net:
    b = Builder("small")
    x = b.conv(b.conv(b.input(1, 16, 16, 4), 16, 3), 16, 3)
    return b.net(b.dense(b.flatten(b.global_pool(x)), 10))


def planned(net: Net, board: Board, pes: int) -> Plan:
    return plan_network(net, board, engines(board), max_pes=pes)


def narrow(**figures: int) -> Board:
    assert BOARD.noc is not None
    return BOARD.model_copy(update={"noc": BOARD.noc.model_copy(update=figures)})


def refused(net: Net, board: Board, plan: Plan, rate: float) -> DoesNotFit:
    with pytest.raises(DoesNotFit) as raised:
        refuse_missed_rate(net, board, plan, rate)
    return raised.value


def test_a_rate_that_is_reached_is_no_matter() -> None:
    net = small()
    plan = planned(net, BOARD, 4)
    rate = BOARD.core.clock_hz / plan.predicted.interval_cycles
    refuse_missed_rate(net, BOARD, plan, rate)
    refused(net, BOARD, plan, 1.01 * rate)


def test_what_cannot_hold_is_named_with_the_shortfall() -> None:
    net = small()
    plan = planned(net, BOARD, 1)
    interval = plan.predicted.interval_cycles
    error = refused(net, BOARD, plan, 2 * BOARD.core.clock_hz / interval)
    assert f"{interval:,} cycles between frames, {interval - interval // 2:,} more than may be" in error.message
    assert any("PE 0 computes" in fact and "cannot hold" in fact for fact in error.facts)
    assert error.tries[0].startswith("more PEs")
    assert error.exit_status == 3


def test_an_image_in_planes_is_better_given_as_it_is_computed() -> None:
    b = Builder("planes")
    net = b.net(b.conv(b.pixels(b.input(1, 4, 16, 16)), 16, 3))
    plan = planned(net, BOARD, 1)
    (spent,) = [step.predicted_cycles for step in plan.pes[0].computes() if step.op == "transpose0"]
    error = refused(net, BOARD, plan, 2 * BOARD.core.clock_hz / plan.predicted.interval_cycles)
    assert f"--preprocess 'layout=NHWC input=input0' saves {spent:,} cycles a frame of transpose0" in error.tries


def test_a_dram_that_cannot_stream_fast_enough_is_named() -> None:
    net, board = heavy(), narrow(dram_bytes_per_cycle=1)
    plan = planned(net, board, 1)
    error = refused(net, board, plan, 2 * board.core.clock_hz / plan.predicted.interval_cycles)
    assert any("DRAM" in fact and "cannot hold" in fact for fact in error.facts)
    assert "a DRAM of more than 1 bytes a cycle" in error.tries


def test_a_border_that_cannot_carry_the_tensors_is_named() -> None:
    net = small()
    mesh = BOARD.mesh.model_copy(
        update={
            "chips": BOARD.mesh.chips.model_copy(update={"columns": 2}),
            "pes": BOARD.mesh.pes.model_copy(update={"columns": 1, "rows": 1}),
        }
    )
    board = narrow(chip_links_per_border=1, chip_link_bytes_per_cycle=1).model_copy(update={"mesh": mesh})
    plan = _alternating(net, board)
    error = refused(net, board, plan, 16 * board.core.clock_hz / plan.predicted.interval_cycles)
    assert any("the border from PE" in fact and "cannot hold" in fact for fact in error.facts)


def _alternating(net: Net, board: Board) -> Plan:
    """Every second op on the other chip."""
    graph = Graph(net)
    tiles = {op.name: (Tile(n % 2, Box.whole(graph.shape(op.output))),) for n, op in enumerate(graph.ops)}
    return with_predictions(net, board, emitted_frame(Problem(graph, board, engines(board)), tiles))
