"""Constants are streamed without an option if necessary, and only then."""

from __future__ import annotations

from itertools import product

import pytest

from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.plan.batch import weight_streaming
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_streaming import fewest, frames_with_streams
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_network
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.objectives import smallest_plan
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
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


def test_the_fewest_pes_are_those_that_hold_the_net() -> None:
    plan = smallest_plan(Problem(Graph(heavy()), BOARD, engines(BOARD)))
    assert not plan.streams
    assert plan.objective == "memory"


def test_the_fewest_that_fit_are_found_near_a_guess_in_few_steps() -> None:
    for least, right, guess in product((0, 3), range(3, 45), range(3, 40)):
        asked: list[int] = []

        def fits(count: int, right: int = right, asked: list[int] = asked) -> bool:
            asked.append(count)
            return count >= right

        assert fewest(fits, least, 40, guess) == min(right, 41)
        assert len(asked) == len(set(asked)) <= 3 + 2 * abs(right - guess).bit_length()


@pytest.mark.parametrize("spent", [False, True])
def test_what_cannot_fit_or_be_paid_for_is_not_emitted(spent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor of 200 KB for a single PE, and a call whose budget for emitting plans is spent."""
    b = Builder("wide")
    net = heavy() if spent else b.net(b.conv(b.input(1, 112, 112, 16), 16, 1))
    problem = Problem(Graph(net), BOARD, engines(BOARD), max_pes=1)
    whole = {op.name: (Tile(0, Box.whole(problem.graph.shape(op.output))),) for op in problem.graph.ops}
    monkeypatch.setattr(weight_streaming, "emit_batch", lambda *_: pytest.fail("emitted"))
    problem.work.done = problem.work.most if spent else 0
    assert not list(frames_with_streams(problem, whole))


def test_a_long_net_is_emitted_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways to fetch the input times six sizes of weight tiles: each finds separately how many ops to stream."""
    b = Builder("long")
    flow = b.input(1, 1, 1, 64)
    for _ in range(64):
        flow = b.conv(flow, 64, 1)
    emitted: list[int] = []

    def noted(problem: Problem, batch: Batch) -> Plan:
        emitted.append(len(batch.stream.ops))
        return emit_batch(problem, batch)

    monkeypatch.setattr(weight_streaming, "emit_batch", noted)
    plan = plan_network(b.net(flow), BOARD, engines(BOARD), max_pes=1)
    assert plan.streams
    assert len(emitted) <= 30
