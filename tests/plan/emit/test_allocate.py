"""For any assignment and any order of PEs and messages, the plan computes the same as the net."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.board.board import Board, load_board
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.receptive import cuttable_axes
from npukit.net.reference.interpreter import evaluate, run_reference
from npukit.plan.ir.assignment import Assignment, Tile, fault_of, useful
from npukit.plan.ir.plan import SENT_FLAG, Buffer, Compute, Plan
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from oracles.plan_execution import Execution
from plan.assignments import emitted_frame, on_one_pe
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")
PES = 5


@st.composite
def small_nets(draw: st.DrawFn) -> Net:
    """Chains of random ops with occasional residuals, ending in a classifier or in an image."""
    b = Builder("random", seed=draw(st.integers(0, 99)))
    height, width = draw(st.integers(3, 9)), draw(st.integers(3, 9))
    x = b.conv(
        b.input(1, height, width, draw(st.integers(1, 4))), draw(st.sampled_from([4, 6, 16])), draw(st.integers(1, 3))
    )
    for kind in draw(st.lists(st.sampled_from(["conv", "depthwise", "residual", "max", "average"]), max_size=4)):
        channels = b.tensors[x].shape[-1]
        if kind == "conv":
            x = b.conv(x, draw(st.sampled_from([3, 8, 17])), draw(st.integers(1, 3)), draw(st.integers(1, 2)))
        elif kind == "depthwise":
            x = b.depthwise(x, draw(st.sampled_from([1, 3])), draw(st.integers(1, 2)))
        elif kind == "residual":
            x = b.add(x, b.conv(x, channels, 3))
        else:
            x = b.pool(x, 2, draw(st.integers(1, 2)), maximum=kind == "max")
    if draw(st.booleans()):
        return b.net(x)
    y = b.softmax(b.dense(b.flatten(b.global_pool(x)), draw(st.integers(2, 6))))
    return b.net(y, x) if draw(st.booleans()) else b.net(y)


@st.composite
def assignments(draw: st.DrawFn, net: Net) -> Assignment:
    """Each op cut at random, with tiles on random PEs."""
    found: dict[str, tuple[Tile, ...]] = {}
    for op in Graph(net).ops:
        shape = net.tensor(op.output).shape
        parts = [1] * len(shape)
        for axis in cuttable_axes(net, op):
            parts[axis] = draw(st.integers(1, min(shape[axis], max(1, PES // int(np.prod(parts))))))
        pes = draw(st.permutations(range(PES)))
        boxes = to_boxes(grid(shape, tuple(parts), (1,) * len(shape)))
        found[op.name] = tuple(Tile(pe, box) for pe, box in zip(pes, boxes, strict=False))
    return found


def with_flags(flags: int) -> Board:
    """The board with this number of flags a PE."""
    assert BOARD.noc
    return BOARD.model_copy(update={"noc": BOARD.noc.model_copy(update={"flags": flags})})


FEWEST_FLAGS = 7


def planned(net: Net, assignment: Assignment, first: int = 0, flags: int = 64) -> Plan:
    """A plan on a board with dead PEs before `first`: `first` is the root."""
    mesh = BOARD.mesh.model_copy(update={"dead_pes": tuple(range(first))})
    board = with_flags(flags).model_copy(update={"mesh": mesh})
    moved = {name: tuple(Tile(tile.pe + first, tile.box) for tile in tiles) for name, tiles in assignment.items()}
    live = {*range(first, board.pe_count)}
    assert not any(fault_of(Graph(net).shape(op.output), moved[op.name], live) for op in Graph(net).ops)
    return emitted_frame(Problem(Graph(net), board, engines(board)), moved)


def frame(net: Net, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(-128, 128, net.tensor(name).shape, np.int8) for name in net.inputs]


@pytest.mark.exhaustive
@settings(max_examples=60)
@given(data=st.data())
def test_any_assignment_computes_what_the_net_computes(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    plan = planned(net, data.draw(assignments(net)), data.draw(st.integers(0, 9)))
    assert_exact(net, plan, data.draw(st.integers(0, 1000)))


@settings(max_examples=20)
@given(data=st.data())
def test_few_flags_are_enough_for_any_assignment(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    flags = data.draw(st.integers(FEWEST_FLAGS, 12))
    plan = planned(net, data.draw(assignments(net)), flags=flags)
    assert max((landing.flag for message in plan.messages for landing in message.landings), default=0) < flags - 3
    assert_exact(net, plan, data.draw(st.integers(0, 1000)))


def assert_exact(net: Net, plan: Plan, seed: int) -> None:
    execution = Execution(net, plan, seed)
    for number in range(3):
        inputs = frame(net, number)
        for got, want in zip(execution.run(inputs), run_reference(net, inputs), strict=True):
            assert np.array_equal(got, want)


@settings(max_examples=20)
@given(data=st.data())
def test_every_tile_is_its_part_of_the_layer(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    execution = Execution(net, planned(net, data.draw(assignments(net))))
    inputs = frame(net, 0)
    execution.run(inputs)
    layers = evaluate(net, inputs)
    ops = {op.name: op for op in net.ops}
    assert {op.name for op in net.ops if op.kind != "reshape"} >= set(execution.results)
    for name, tiles in execution.results.items():
        for box, value in tiles:
            part = tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))
            assert np.array_equal(value, layers[ops[name].output][part])


@settings(max_examples=30)
@given(data=st.data())
def test_bytes_are_shared_only_by_views_of_one_region_or_at_different_times(data: st.DataObject) -> None:
    """A sum may also share the bytes of an operand, as the operand's last reader."""
    net = data.draw(small_nets())
    graph = Graph(net)
    sums = {(operand, op.output) for op in net.ops if op.parts[-1].kind == "add" for operand in op.inputs}
    for pe in planned(net, data.draw(assignments(net))).pes:
        for i, a in enumerate(pe.buffers):
            for b in pe.buffers[i + 1 :]:
                if together(a, b):
                    homes = graph.homes[a.tensor], graph.homes[b.tensor]
                    assert len(set(homes)) == 1 or {homes, homes[::-1]} & sums
                    assert (a.offset, a.bytes) == (b.offset, b.bytes)


def together(a: Buffer, b: Buffer) -> bool:
    meet = a.first <= b.last and b.first <= a.last
    return meet and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes


def two_convolutions() -> Net:
    b = Builder("two")
    return b.net(b.conv(b.conv(b.input(1, 8, 8, 4), 16, 3), 16, 3))


def by_rows(net: Net, parts: int) -> Assignment:
    found = {}
    for op in Graph(net).ops:
        shape = net.tensor(op.output).shape
        boxes = to_boxes(grid(shape, (1, parts, 1, 1), (1, 1, 1, 1)))
        found[op.name] = tuple(Tile(pe, box) for pe, box in enumerate(boxes))
    return found


def test_halos_land_beside_the_own_tile() -> None:
    """Rows of a tensor share a buffer, from whichever PE: no copies within a PE."""
    plan = planned(two_convolutions(), by_rows(two_convolutions(), 4))
    assert all(landing.pe != message.source_pe for message in plan.messages for landing in message.landings)
    for pe in plan.pes:
        tensors = [buffer.tensor for buffer in pe.buffers]
        assert len(tensors) == len(set(tensors))


def test_equal_boxes_travel_as_one_multicast() -> None:
    net = two_convolutions()
    first, second = Graph(net).ops
    whole = Box.whole(net.tensor(first.output).shape)
    by_channels = to_boxes(grid(net.tensor(second.output).shape, (1, 1, 1, 4), (1, 1, 1, 1)))
    plan = planned(
        net,
        {first.name: (Tile(0, whole),), second.name: tuple(Tile(pe, box) for pe, box in enumerate(by_channels))},
    )
    (to_all,) = [m for m in plan.messages if m.tensor == first.output]
    assert sorted(landing.pe for landing in to_all.landings) == [1, 2, 3]


@settings(max_examples=20)
@given(data=st.data())
def test_all_landings_of_a_multicast_count_one_flag(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    for message in planned(net, data.draw(assignments(net))).messages:
        assert len({landing.flag for landing in message.landings}) == 1
        assert message.landings[0].flag != SENT_FLAG
        assert len({landing.pe for landing in message.landings}) == len(message.landings)


def test_a_long_chain_takes_flags_again() -> None:
    b = Builder("long")
    x = b.input(1, 6, 6, 4)
    for _ in range(100):
        x = b.conv(x, 4, 3)
    net = b.net(x)
    plan = planned(net, by_rows(net, 2))
    assert len(plan.messages) > 100
    (got,) = Execution(net, plan).run(frame(net, 1))
    assert np.array_equal(got, run_reference(net, frame(net, 1))[0])


def test_pes_with_the_same_steps_share_a_role() -> None:
    plan = planned(two_convolutions(), by_rows(two_convolutions(), 4))
    assert len({pe.role for pe in plan.pes}) < len(plan.pes)


def test_a_tile_nobody_needs_is_not_computed() -> None:
    b = Builder("crop")
    x = b.conv(b.input(1, 4, 1, 2), 4)
    net = b.net(b.conv(x, 4, 1, stride=4))
    graph = Graph(net)
    first, second = graph.ops
    whole = Box.whole(net.tensor(second.output).shape)
    assignment = {first.name: by_rows(net, 1)[first.name], second.name: (Tile(0, whole),)}
    assignment[first.name] = tuple(Tile(row, Box((0, row, 0, 0), (1, row + 1, 1, 4))) for row in range(4))
    assert [tile.pe for tile in useful(graph, assignment)[first.name]] == [0]
    assert [pe.pe for pe in planned(net, assignment).pes] == [0]


@pytest.mark.parametrize(
    ("tiles", "fault"),
    [
        ((Tile(9, Box((0, 0, 0, 0), (1, 8, 8, 16))),), "dead"),
        ((Tile(0, Box((0, 0, 0, 0), (1, 4, 8, 16))),), "512 elements"),
        ((Tile(0, Box((0, 0, 0, 0), (1, 5, 8, 16))), Tile(1, Box((0, 4, 0, 0), (1, 8, 8, 16)))), "overlap"),
        ((Tile(0, Box((0, 0, 0, 0), (1, 4, 8, 16))), Tile(0, Box((0, 4, 0, 0), (1, 8, 8, 16)))), "two tiles"),
        ((Tile(0, Box((0, 0, 0, 0), (1, 9, 8, 16))),), "not inside"),
    ],
)
def test_a_wrong_assignment_is_refused(tiles: tuple[Tile, ...], fault: str) -> None:
    graph = Graph(two_convolutions())
    assert fault in (fault_of(graph.shape(graph.ops[0].output), tiles, {*range(PES)}) or "")


def test_one_pe_needs_no_messages() -> None:
    net = two_convolutions()
    plan = planned(net, on_one_pe(Graph(net), 0))
    assert plan.messages == ()
    assert all(isinstance(step, Compute) for step in plan.pes[0].steps)
