"""States on a mesh: each PE keeps a part, for any split and any order of PEs and messages."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from net.small_nets import remembering_net
from npukit.accel.engines import plugins_of, with_core
from npukit.board.board import Grid, load_board
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.receptive import cuttable_axes
from npukit.net.reference import evaluate
from npukit.passes import PLACING, PassOptions, run_passes
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import Plan, Restore
from npukit.plan.ir.text import print_plan
from npukit.plan.planner import plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from oracles.plan_execution import Execution
from plan.assignments import emitted_frame

BOARD = load_board("pe-mesh")
ENGINES = with_core(plugins_of(BOARD))
NET = run_passes(remembering_net(), PLACING, PassOptions(ENGINES))
FRAMES = np.random.default_rng(9).integers(-128, 128, (6, 1, 16)).astype(np.int8)


def drawn(graph: Graph, seed: int) -> Assignment:
    """Each op on one, two or four of four PEs, cut along the channels if possible."""
    chance, found = random.Random(seed), {}
    for op in graph.ops:
        channels = graph.shape(op.output)[-1]
        parts = chance.choice([1, 2, 4]) if 1 in cuttable_axes(graph.net, op) else 1
        step, pes = channels // parts, chance.sample(range(4), parts)
        boxes = [Box((0, begin), (1, begin + step)) for begin in range(0, channels, step)]
        found[op.name] = tuple(map(Tile, pes, boxes))
    return found


def check(net: Net, plan: Plan, seed: int) -> None:
    """Six frames, with a reset of the states after the third."""
    execution, values = Execution(net, plan, seed), None
    for number, frame in enumerate(FRAMES):
        if number == 3:
            execution.reset()
        values = evaluate(net, [frame], None if number == 3 else values)
        assert np.array_equal(execution.run([frame])[0], values[net.outputs[0]]), number


@pytest.mark.parametrize("seed", [*range(40), 321, 371])
def test_any_split_of_a_network_with_states_computes_the_same(seed: int) -> None:
    """With odd seeds an output is also a state's new value. With 321 and 371 a PE must wait for some of its sent
    messages, but not for the others."""
    net = replace(NET, outputs=("sum",)) if seed % 2 else NET
    graph = Graph(net)
    plan = emitted_frame(Problem(graph, BOARD, ENGINES), drawn(graph, seed))
    for turn in range(3):
        check(net, plan, turn)


def test_on_several_chips_one_pe_of_each_starts_the_others_of_it() -> None:
    """The root starts a single PE of each other chip. Otherwise the root of a board of thousands of PEs would need a
    list of all."""
    chips, pes = Grid(columns=2, rows=1), Grid(columns=2, rows=1)
    board = BOARD.model_copy(update={"mesh": BOARD.mesh.model_copy(update={"chips": chips, "pes": pes})})
    graph = Graph(NET)
    plan = emitted_frame(Problem(graph, board, ENGINES, max_pes=4), drawn(graph, 4))
    told = {m.source_pe: {each.pe for each in m.landings} for m in plan.messages if m.source.buffer == "go"}
    assert told == {0: {1, 2}, 2: {3}}
    for turn in range(3):
        check(NET, plan, turn)


def test_a_state_lies_where_it_was_read() -> None:
    graph = Graph(NET)
    plan = emitted_frame(Problem(graph, BOARD, ENGINES), drawn(graph, 1))
    for pe in plan.pes:
        kept = [name for step in pe.steps if isinstance(step, Restore) for name in step.buffers]
        for before, after in ((pe.buffer(name), pe.buffer(graph.kept[name])) for name in kept):
            assert (before.box, before.offset) == (after.box, after.offset)
            assert before.last < after.first
            assert after.last == len(pe.steps) - 1
    assert any(isinstance(step, Restore) for pe in plan.pes[1:] for step in pe.steps)
    assert parse_plan(print_plan(plan)) == plan


def test_throughput_of_a_stream_is_that_of_frames_one_by_one() -> None:
    problem = Problem(Graph(NET), BOARD, ENGINES, max_pes=4)
    latency, throughput = (plan_with_kernels(problem, each).plan for each in ("latency", "throughput"))
    assert throughput.frames == 1
    assert [pe.steps for pe in throughput.pes] == [pe.steps for pe in latency.pes]


def test_without_the_signals_at_the_end_a_frame_would_begin_too_soon() -> None:
    """Without the signals the property test above would fail: some order of turns gives other numbers."""
    graph = Graph(NET)
    plan = emitted_frame(Problem(graph, BOARD, ENGINES), drawn(graph, 1))
    assert any(message.source.buffer == "done" for message in plan.messages)


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_states_stay_while_constants_come_from_dram(seed: int, low_memory: bool) -> None:
    """A frame with streamed weights is emitted as a batch of one."""
    graph = Graph(NET)
    streamed = frozenset(op.name for op in graph.ops if op.kind == "dense")
    wanted = Batch((drawn(graph, seed),), stream=StreamWeights(streamed, 1024), low_memory=low_memory)
    plan = emit_batch(Problem(graph, BOARD, ENGINES), wanted)
    assert plan.streams
    check(NET, plan, seed)
