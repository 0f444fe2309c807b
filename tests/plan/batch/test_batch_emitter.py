"""Rounds of several frames: each frame's outputs equal the reference for any groups, lanes, waves and streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.reference.interpreter import run_reference
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.channel_bands import bands_for
from npukit.plan.batch.weight_tiles import StreamWeights, cut_in_weight_tiles
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.plan import Plan, Send
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.predict.simulate import simulate
from npukit.plan.search.candidate import Proposals
from npukit.plan.strategies.streams import fewest_streamed
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order
from oracles.plan_execution import Execution
from plan.assignments import on_one_pe
from plan.emit.test_allocate import FEWEST_FLAGS, assignments, small_nets, with_flags
from plan.engines import engines
from plan.networks import Builder, keyword_net
from plan.planning import best_plan

BOARD = load_board("pe-mesh")
GROUP = 5


def assert_exact(net: Net, plan: Plan, seed: int = 0, rounds: int = 2) -> None:
    random = np.random.default_rng(seed)
    execution = Execution(net, plan, seed)
    for _ in range(rounds):
        frames = [
            [random.integers(-128, 128, net.tensor(name).shape, np.int8) for name in net.inputs]
            for _ in range(plan.frames)
        ]
        for inputs, outputs in zip(frames, execution.run_round(frames), strict=True):
            for got, want in zip(outputs, run_reference(net, inputs), strict=True):
                assert np.array_equal(got, want)


def on_groups(assignment: Assignment, count: int, first: int = 0) -> tuple[Assignment, ...]:
    """The assignment repeated on PEs 0-4, 5-9, 10-14, or shifted by `first`."""
    return tuple(
        {op: tuple(Tile(tile.pe + start, tile.box) for tile in tiles) for op, tiles in assignment.items()}
        for start in range(first, first + GROUP * count, GROUP)
    )


def test_pes_that_need_the_same_of_an_input_get_it_at_once_but_for_later_micro_batches() -> None:
    b = Builder("shared input")
    net = b.net(b.conv(b.input(1, 8, 8, 4), 32, 3))
    halves = tuple(Tile(pe, Box((0, 0, 0, 16 * pe), (1, 8, 8, 16 * pe + 16))) for pe in (0, 1))
    wanted = Batch(({net.ops[0].name: halves},), 1, 2)
    plan = emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), wanted)
    fetched = [message for message in plan.messages if message.source_pe == DRAM]
    assert [landing.pe for landing in fetched[0].landings] == [0, 1]
    assert sorted(message.landings[0].pe for message in fetched[1:]) == sorted([0, 1] * (len(fetched[1:]) // 2))
    assert_exact(net, plan)


def test_narrower_weight_tiles_are_taken_if_they_are_smaller() -> None:
    """Weights in blocks of 16 channels gain nothing from tiles of four channels."""
    box = Box.whole((1, 2, 2, 64))
    sixteens = cut_in_weight_tiles(box, lambda part: 40_000 * -(-part.shape[-1] // 16) + part.shape[-1], 9_000, 36_000)
    fours = cut_in_weight_tiles(box, lambda part: 2_500 * part.shape[-1], 9_000, 36_000)
    assert ({part.shape[-1] for part in sixteens}, {part.shape[-1] for part in fours}) == ({16}, {4})


@pytest.mark.exhaustive
@settings(max_examples=25)
@given(data=st.data())
def test_any_batch_computes_what_the_net_computes(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    prefetchers = data.draw(st.sampled_from([(), (15,), (0,)]))
    groups = on_groups(data.draw(assignments(net)), data.draw(st.integers(1, 3)), first=1 if prefetchers == (0,) else 0)
    filtered = [op.name for op in net.ops if op.engine == "mac_array" and len(op.inputs) == 3]
    streamed = frozenset(data.draw(st.sets(st.sampled_from(filtered))))
    interleaved, micro_batches = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    wanted = Batch(groups, interleaved, micro_batches, StreamWeights(streamed), prefetchers=prefetchers)
    board = with_flags(data.draw(st.sampled_from([FEWEST_FLAGS, 9, 64])))
    assert_exact(net, emit_batch(Problem(Graph(net), board, engines(board)), wanted), data.draw(st.integers(0, 99)))


def heavy() -> Net:
    """A net with constants larger than one PE."""
    b = Builder("heavy")
    x = b.input(1, 512)
    for _ in range(3):
        x = b.dense(x, 512)
    return b.net(x)


def test_what_does_not_fit_is_streamed_in_weight_tiles_to_all_groups_at_once() -> None:
    net = heavy()
    alone = best_plan(Problem(Graph(net), BOARD, engines(BOARD), [0]))
    assert alone.streams
    assert missing_bytes(BOARD, alone) == 0
    assert_exact(net, alone)
    groups = tuple(on_one_pe(Graph(net), pe) for pe in pes_in_order(BOARD)[:2])

    def on_two(problem: Problem) -> Proposals:
        yield from fewest_streamed(problem, Batch(groups))

    plan = best_plan(Problem(Graph(net), BOARD, engines(BOARD)), on_two)
    assert missing_bytes(BOARD, plan) == 0
    weight_tiles = [message for message in plan.messages if message.source_pe == DRAM and not message.tensor]
    assert weight_tiles
    assert all(len(message.landings) == 2 for message in weight_tiles)
    assert max(buffer.bytes for buffer in plan.dram) <= 2 * StreamWeights().tile_bytes
    assert_exact(net, plan)


def test_tiles_of_other_pixels_share_a_weight_tile() -> None:
    """Two groups put four rows of an op on one PE and three on the other: all four PEs need every slice. A slice leaves
    DRAM once."""
    b = Builder("rows")
    net = b.net(b.conv(b.conv(b.input(1, 7, 7, 16), 48, 3), 32, 3))
    groups = tuple(on_rows(net, (pe, pe + 1)) for pe in (0, 2))
    streamed = frozenset(op.name for op in net.ops)
    plan = emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), Batch(groups, stream=StreamWeights(streamed, 4096)))
    weight_tiles = [message for message in plan.messages if message.source_pe == DRAM and not message.tensor]
    assert len({message.source.buffer for message in weight_tiles}) == len(weight_tiles) > len(net.ops)
    assert all(len(message.landings) == 4 for message in weight_tiles)
    assert_exact(net, plan)


def asked_by(net: Net, prefetchers: tuple[int, ...]) -> dict[int, int]:
    """Number of slices that each PE requests from DRAM: two computing PEs and the prefetchers."""
    wanted = Batch((on_rows(net, (0, 1)),), stream=StreamWeights(frozenset(op.name for op in net.ops), 1024))
    plan = emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), replace(wanted, prefetchers=prefetchers))
    assert_exact(net, plan)
    numbers = {pe.pe: [step.message for step in pe.steps if isinstance(step, Send)] for pe in plan.pes}
    messages = {pe: [plan.messages[n] for n in sent] for pe, sent in numbers.items()}
    return {pe: sum(m.source_pe == DRAM and not m.tensor for m in sent) for pe, sent in messages.items()}


def test_weight_tiles_are_asked_for_in_turn_and_by_idle_pes_while_they_have_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = Builder("rows")
    net = b.net(b.conv(b.conv(b.input(1, 7, 7, 16), 48, 3), 32, 3))
    alone, fed = asked_by(net, ()), asked_by(net, (3,))
    assert min(alone.values()) > 1
    assert fed == {0: 0, 1: 0, 3: sum(alone.values())}
    monkeypatch.setattr("npukit.plan.batch.schedule.most_listed", lambda board: 128)
    shared = asked_by(net, (3,))
    assert all(shared.values())
    assert sum(shared.values()) == fed[3]


def test_two_ops_that_take_turns_in_bands_of_channels_are_exact_and_hold_less() -> None:
    b = Builder("inverted")
    x = b.conv(b.input(1, 12, 12, 8), 8, 1)
    net = b.net(b.add(x, b.conv(b.depthwise(b.conv(x, 48, 1), 3), 8, 1)))
    graph, wide = Graph(net), net.ops[1].name
    group = on_rows(net, (0, 1))

    def activations(wanted: Batch) -> int:
        plan = emit_batch(Problem(graph, BOARD, engines(BOARD)), wanted)
        assert_exact(net, plan)
        assert any(m.tensor == net.ops[1].output for m in plan.messages)  # rows of each band go to the neighbour
        return max(pe.memory.activations for pe in plan.pes)

    whole, cut = activations(Batch((group,))), activations(Batch((group,), bands={wide: 3}))
    assert cut < 0.75 * whole
    streamed = frozenset(op.name for op in net.ops)
    activations(Batch((group,), 2, 2, StreamWeights(streamed), bands={wide: 3}))


@settings(max_examples=8, derandomize=True)
@given(st.data())
def test_any_bands_compute_what_the_net_computes(data: st.DataObject) -> None:
    b = Builder("inverted", seed=data.draw(st.integers(0, 99)))
    x = b.conv(b.input(1, data.draw(st.integers(4, 9)), 7, 4), data.draw(st.sampled_from([17, 32, 40])), 1)
    net = b.net(b.conv(b.depthwise(x, 3, data.draw(st.integers(1, 2))), 5, 1))
    graph = Graph(net)
    parts = {op.name: (1, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)), 1) for op in net.ops}
    boxes = {op.name: to_boxes(grid(graph.shape(op.output), parts[op.name], (1, 1, 1, 1))) for op in net.ops}
    group = {name: tuple(Tile(pe, box) for pe, box in enumerate(found)) for name, found in boxes.items()}
    streamed = frozenset(data.draw(st.sets(st.sampled_from([op.name for op in net.ops]))))
    bands = {net.ops[0].name: data.draw(st.integers(1, 3))}
    interleaved, micro_batches = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    assert_exact(
        net,
        emit_batch(
            Problem(graph, BOARD, engines(BOARD)),
            Batch((group,), interleaved, micro_batches, StreamWeights(streamed), bands=bands),
        ),
    )


def test_bands_are_for_what_would_crowd_a_pe() -> None:
    b = Builder("inverted")
    x = b.conv(b.input(1, 32, 32, 8), 96, 1)
    net = b.net(b.conv(b.depthwise(x, 3, 2), 8, 1))
    found = [bands_for(Graph(net), BOARD, on_rows(net, pes)) for pes in [(0, 1)]]
    assert found == [{net.ops[0].name: 2}]
    small = b.net(x)
    assert bands_for(Graph(small), BOARD, on_rows(small, (0, 1))) == {}


def on_rows(net: Net, pes: tuple[int, int]) -> Assignment:
    def halves(name: str) -> tuple[Tile, ...]:
        _, rows, *rest = net.tensor(name).shape
        middle = -(-rows // 2)
        cuts = ((0, middle), (middle, rows))
        return tuple(Tile(pe, Box((0, a, 0, 0), (1, b, *rest))) for pe, (a, b) in zip(pes, cuts, strict=True))

    return {op.name: halves(op.output) for op in net.ops}


@pytest.mark.parametrize(("net", "cycles"), [(keyword_net(), 5_000)], ids=["kws"])
def test_replicas_on_sixteen_pes_reach_the_throughput_asked_for(net: Net, cycles: int) -> None:
    one = emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), Batch(replicas(net)))
    interval = simulate(net, BOARD, one, 3).interval_cycles / one.frames
    assert interval <= cycles
    assert_exact(net, one)


def replicas(net: Net) -> tuple[Assignment, ...]:
    graph = Graph(net)
    return tuple(on_one_pe(graph, pe) for pe in pes_in_order(BOARD))


def small() -> Net:
    b = Builder("small")
    x = b.conv(b.input(1, 12, 12, 4), 32, 3)
    return b.net(b.dense(b.flatten(b.global_pool(b.add(b.conv(x, 32, 3), x))), 6))


def test_throughput_beats_one_frame_at_a_time() -> None:
    net, order = small(), pes_in_order(BOARD)[:4]
    one = best_plan(Problem(Graph(net), BOARD, engines(BOARD), order))
    many = best_plan(Problem(Graph(net), BOARD, engines(BOARD), order), objective="throughput")
    assert many.frames > 1
    assert many.predicted.interval_cycles < one.predicted.interval_cycles
    assert_exact(net, many)
