"""A frame with inputs, outputs or constants too large for the PEs: they come from DRAM and go there, exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import first_of
from npukit.board.noc import DRAM
from npukit.net.net import Net, State
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import Send
from npukit.plan.ir.text import print_plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.strategies.drafts import drafts
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.boards import wide_board
from plan.engines import engines
from plan.networks import Builder
from plan.planning import best_plan, searched

BOARD = wide_board()


def large_image_net(channels: int) -> Net:
    """A net with an image larger than a PE's memory, and two convolutions with many constants."""
    b = Builder("large image")
    x = b.conv(b.input(1, 208, 208, 3), 8, 4, 4)
    x = b.conv(b.conv(x, channels, 3, 4), channels, 3)
    return b.net(b.dense(b.flatten(b.mean(x)), 16))


def problem_of(net: Net) -> Problem:
    return Problem(Graph(net), BOARD, engines(BOARD))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("channels", "streams"), first_of([(128, False), (512, True)]))
def test_a_large_image_comes_from_dram_and_constants_too_if_they_must(channels: int, streams: bool) -> None:
    net = large_image_net(channels)
    plan = best_plan(problem_of(net), drafts)
    assert not missing_bytes(BOARD, plan)
    assert plan.streams is streams
    assert [buffer.tensor for buffer in plan.dram if buffer.tensor] == list(net.inputs)
    assert_exact(net, plan, rounds=1)


@pytest.mark.exhaustive
def test_a_large_output_goes_to_dram() -> None:
    """Every PE signals the departure of its part. The root then reads a byte back, as the last message of the frame."""
    b = Builder("large output")
    net = b.net(b.conv(b.conv(b.input(1, 208, 208, 3), 32, 4, 4), 64, 3))
    plan = best_plan(problem_of(net), drafts)
    assert [buffer.tensor for buffer in plan.dram if buffer.tensor] == [*net.inputs, *net.outputs]
    sends = [plan.messages[step.message] for step in plan.pes[0].steps if isinstance(step, Send)]
    assert (sends[-1].source_pe, sends[-1].tensor, sends[-1].source.box.elements) == (DRAM, net.outputs[0], 1)
    assert parse_plan(print_plan(plan)) == plan
    assert_exact(net, plan, rounds=2)


@pytest.mark.exhaustive
def test_a_stream_whose_constants_no_pes_hold_keeps_its_state() -> None:
    """Twelve matrices of 256 KB, and a state kept between frames."""
    b = Builder("stream")
    x, state = b.input(1, 512), b.input(1, 512)
    for _ in range(12):
        x = b.dense(x, 512)
    net = b.net(b.add(x, state))
    net = replace(net, inputs=net.inputs[:1], states=(State(state, net.outputs[0], np.zeros((1, 512), np.int8)),))
    plan = best_plan(problem_of(net), drafts)
    assert plan.streams
    assert_exact(net, plan, rounds=1)


@pytest.mark.exhaustive
def test_few_drafts_are_emitted() -> None:
    """Of up to 28 drafts, those that promise to be slower than the best emitted one are not."""
    log = searched(problem_of(large_image_net(512)), drafts).log
    assert any(line.outcome == "fits" for line in log)
    assert len(log) < 15
