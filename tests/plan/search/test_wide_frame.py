"""One frame on a large mesh: data too large for the root and the other PEs comes from DRAM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import first_of
from npukit.accel.engines import core_of
from npukit.board.board import load_board
from npukit.board.noc import DRAM
from npukit.net.net import CORE, Net, State
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import Send
from npukit.plan.ir.text import print_plan
from npukit.plan.planner import best_plan, plan_network
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search import objectives, wide_frame
from npukit.plan.search.frame_memory import lacking_bytes, pes_for_constants, root_lacks_room
from npukit.plan.search.layout_search import QUICK, LatencySearch
from npukit.plan.search.objectives import PRICES
from npukit.plan.search.tries import planned
from npukit.plan.search.wide_frame import ORDERS, WideFrame
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.batch_search.test_data_parallel import wide_board
from plan.engines import engines
from plan.networks import Builder, autoencoder, image_net


def large_image_net(channels: int) -> Net:
    """A net with an image larger than a PE's memory, and two convolutions with many constants."""
    b = Builder("large image")
    x = b.conv(b.input(1, 208, 208, 3), 8, 4, 4)
    x = b.conv(b.conv(x, channels, 3, 4), channels, 3)
    return b.net(b.dense(b.flatten(b.mean(x)), 16))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("channels", "streams"), first_of([(128, False), (512, True)]))
def test_an_image_that_the_root_cannot_hold_comes_from_dram_and_constants_too_if_they_must(
    channels: int, streams: bool
) -> None:
    board, net = wide_board(), large_image_net(channels)
    plan = plan_network(net, board, engines(board), max_pes=board.pe_count)
    assert not missing_bytes(board, plan)
    assert plan.objective == "latency"
    assert plan.streams is streams
    assert [buffer.tensor for buffer in plan.dram if buffer.tensor] == list(net.inputs)
    assert_exact(net, plan, rounds=1)


@pytest.mark.exhaustive
def test_an_output_that_the_root_cannot_hold_goes_to_dram() -> None:
    """Every PE signals the departure of its part. The root then reads a byte back, as the last message of the frame."""
    board, b = wide_board(), Builder("large output")
    net = b.net(b.conv(b.conv(b.input(1, 208, 208, 3), 32, 4, 4), 64, 3))
    plan = plan_network(net, board, engines(board), max_pes=board.pe_count)
    assert not missing_bytes(board, plan)
    assert [buffer.tensor for buffer in plan.dram if buffer.tensor] == [*net.inputs, *net.outputs]
    sends = [plan.messages[step.message] for step in plan.pes[0].steps if isinstance(step, Send)]
    assert (sends[-1].source_pe, sends[-1].tensor, sends[-1].source.box.elements) == (DRAM, net.outputs[0], 1)
    assert parse_plan(print_plan(plan)) == plan
    assert_exact(net, plan, rounds=2)


@pytest.mark.exhaustive
def test_drafts_come_with_the_most_promising_first_and_are_near_what_is_simulated() -> None:
    board = wide_board()
    search = WideFrame(Problem(Graph(large_image_net(512)), board, engines(board)))
    drafts, best = search.drafts(), search.best()
    assert best
    assert drafts == sorted(drafts, key=lambda draft: (not draft.fits, draft.cycles))
    assert drafts[0].cycles == pytest.approx(best.predicted.latency_cycles, rel=0.25)


def test_what_a_pe_is_expected_to_hold_has_scratch_memory_and_what_code_its_core_has() -> None:
    board, b = wide_board(), Builder("large image, then the core")
    x = b.conv(b.input(1, 208, 208, 3), 32, 4, 4)
    net = b.net(b.dense(b.flatten(b.mean(b.depthwise(x))), 16))
    net = net.with_ops(tuple(replace(op, engine=CORE) if op.kind == "depthwise_conv2d" else op for op in net.ops))
    search = WideFrame(Problem(Graph(net), board, engines(board)))
    draft = search.drafts()[0]
    emission = search._emitted(draft, low_memory=False)
    assert emission
    plan = emission.plan
    assert any(step.scratch for pe in plan.pes for step in pe.computes())
    for pe in plan.pes[len(search._prefetchers) :]:
        expected = draft.held.program(pe.pe) + draft.held.tensors_and_weight_tiles(draft.streamed)
        assert pe.memory.code + pe.memory.stack + pe.memory.activations <= expected + ORDERS


@pytest.mark.exhaustive
def test_a_long_network_has_fewer_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    board, net = wide_board(), large_image_net(512)
    problem = Problem(Graph(net), board, engines(board))
    assert root_lacks_room(problem)
    many = WideFrame(problem).drafts()
    monkeypatch.setattr(wide_frame, "SEARCHED", 2 * len(problem.graph.ops))
    search = WideFrame(problem)
    few = search.drafts()
    assert len(few) < len(many)
    assert sum(1 for _ in search._layouts()) <= 2
    assert {draft.cycles for draft in few} <= {draft.cycles for draft in many}


@pytest.mark.exhaustive
def test_layers_of_a_stream_that_all_pes_together_cannot_hold_are_streamed() -> None:
    """Twelve matrices of 256 KB, and a state kept between frames."""
    board, b = wide_board(), Builder("stream")
    x, state = b.input(1, 512), b.input(1, 512)
    for _ in range(12):
        x = b.dense(x, 512)
    net = b.net(b.add(x, state))
    net = replace(net, inputs=net.inputs[:1], states=(State(state, net.outputs[0], np.zeros((1, 512), np.int8)),))
    problem = Problem(Graph(net), board, engines(board), max_pes=board.pe_count)
    assert pes_for_constants(problem) > len(problem.order)
    plan = best_plan(problem, "latency")
    assert plan.streams
    assert_exact(net, plan, rounds=1)


@pytest.mark.parametrize("net", [autoencoder(), image_net()], ids=lambda net: net.name)
def test_a_pe_lacks_no_less_than_was_known_before_anything_was_emitted(net: Net) -> None:
    board = load_board("pe-mesh")
    for pes in (1, 2, 4):
        problem = Problem(Graph(net), board, engines(board)).on(range(pes))
        search = LatencySearch(problem, QUICK)
        for assignment in map(search.best, PRICES):
            assert lacking_bytes(problem, assignment) <= missing_bytes(board, planned(problem, assignment))


@pytest.mark.parametrize("engine", ["mac_array", CORE])
def test_constants_that_ops_share_are_there_once(engine: str) -> None:
    """A hundred dense layers with a shared matrix."""
    b = Builder("shared")
    x = b.input(1, 64)
    for _ in range(100):
        x = b.dense(x, 64)
    net = b.net(x)
    first, *others = net.ops
    same = [replace(op, inputs=(op.inputs[0], *first.inputs[1:])).placed(engine) for op in others]
    net, board = net.with_ops((first.placed(engine), *same)), load_board("pe-mesh")
    problem = Problem(Graph(net), board, {**engines(board), CORE: core_of(board)}).on([0])
    whole = LatencySearch(problem, QUICK).best()
    assert len(set(problem.graph.constants_as.values())) < 3
    assert lacking_bytes(problem, whole) == missing_bytes(problem.board, planned(problem, whole)) == 0


@pytest.mark.parametrize("fits", [True, False])
def test_a_large_image_is_for_the_first_chip_if_it_fits_there(monkeypatch: pytest.MonkeyPatch, *, fits: bool) -> None:
    board, tried = load_board("pe-mesh-7296"), list[int]()

    class Search:
        def __init__(self, problem: Problem) -> None:
            tried.append(len(problem.order))

        def best(self) -> str | None:
            return "plan" if fits or len(tried) > 1 else None

    monkeypatch.setattr(objectives, "WideFrame", Search)
    monkeypatch.setattr(objectives, "resident_plan", lambda problem: "closest")
    monkeypatch.setattr(objectives, "missing_bytes", lambda board, plan: int(plan != "plan"))
    assert objectives.fastest_plan(Problem(Graph(large_image_net(128)), board, engines(board), max_pes=304)) == "plan"
    assert tried == [152, 304][: 1 if fits else 2]
