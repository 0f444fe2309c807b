"""Constants are streamed without an option if necessary, and only then."""

from __future__ import annotations

import pytest

from npukit.board.board import load_board
from npukit.plan.planner import plan_network
from npukit.plan.predict.memory import missing_bytes
from plan.batch.test_batch_emitter import assert_exact, heavy
from plan.engines import engines
from plan.networks import Builder, keyword_net

BOARD = load_board("pe-mesh")


@pytest.mark.parametrize("pes", [1, 2])
def test_a_net_that_its_pes_cannot_hold_is_streamed(pes: int) -> None:
    plan = plan_network(heavy(), BOARD, engines(BOARD), max_pes=pes)
    assert plan.streams
    assert not missing_bytes(BOARD, plan)
    assert plan.frames == 1
    assert_exact(heavy(), plan)


def test_channels_too_heavy_to_stream_by_sixteens_are_streamed_by_fours() -> None:
    """16 channels of the layer are 74 KB; a PE cannot hold two tiles of this size."""
    b = Builder("deep")
    net = b.net(b.conv(b.input(1, 3, 3, 512), 48, 3))
    plan = plan_network(net, BOARD, engines(BOARD), max_pes=1)
    assert plan.streams
    assert max(buffer.bytes for buffer in plan.dram) < 20_000
    assert_exact(net, plan)


@pytest.mark.exhaustive
def test_tiles_that_need_too_much_of_their_inputs_are_cut_otherwise() -> None:
    """By cycles alone, each PE would compute all pixels of some channels, and would need 100 KB of the input."""
    b = Builder("wide")
    net = b.net(b.conv(b.input(1, 14, 14, 512), 384, 3, 2))
    plan = plan_network(net, BOARD, engines(BOARD))
    assert plan.streams
    assert not missing_bytes(BOARD, plan)
    assert_exact(net, plan)


def test_without_a_limit_more_pes_are_taken_rather_than_streams() -> None:
    plan = plan_network(heavy(), BOARD, engines(BOARD))
    assert not plan.streams
    assert len(plan.pes) > 1


def test_what_fits_is_not_streamed() -> None:
    assert not plan_network(keyword_net(), BOARD, engines(BOARD), max_pes=1).dram


def test_constants_are_streamed_before_the_fewest_pes_are_two() -> None:
    plan = plan_network(heavy(), BOARD, engines(BOARD), objective="memory")
    assert plan.streams
    assert len(plan.pes) == 1
    assert plan.objective == "memory"
