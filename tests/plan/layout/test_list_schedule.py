"""List scheduling: siblings side by side, layers where memory is free, borders of chips crossed only if necessary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from npukit.board.board import Board
from npukit.net.net import Net, Op, State
from npukit.net.receptive import cuttable_axes
from npukit.plan.ir.assignment import Assignment, fault_of
from npukit.plan.layout.list_schedule import TENSORS, ListSchedule, first_blocks, states_early
from npukit.plan.planner import plan_network
from npukit.plan.strategies.list_schedules import list_schedules
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.boards import two_chips
from plan.engines import engines
from plan.networks import Builder, autoencoder, image_net, keyword_net
from plan.planning import best_plan

PES = 6
"""Number of PEs on each of two chips."""


def problem_of(net: Net, board: Board) -> Problem:
    return Problem(Graph(net), board, engines(board), max_pes=board.pe_count)


def chain(layers: int) -> Net:
    b = Builder("chain")
    x = b.input(1, 64)
    for _ in range(layers):
        x = b.dense(x, 64)
    return b.net(x)


def assigned(problem: Problem, room: int = 1 << 16) -> Assignment:
    found = ListSchedule(problem, room).assignment()
    assert found is not None
    return found


@pytest.mark.parametrize("net", [autoencoder(), image_net(), keyword_net()], ids=lambda net: net.name)
def test_every_op_is_on_live_pes_whole_and_the_frame_is_exact(net: Net) -> None:
    whole = two_chips()
    board = whole.model_copy(update={"mesh": whole.mesh.model_copy(update={"dead_pes": (2, 7)})})
    problem = problem_of(net, board)
    assignment = assigned(problem)
    for op in problem.graph.ops:
        assert fault_of(problem.graph.shape(op.output), assignment[op.name], set(problem.order)) is None
    assert_exact(net, best_plan(problem, list_schedules), rounds=1)


def test_layers_that_read_the_same_tensor_lie_side_by_side() -> None:
    b = Builder("siblings")
    x = b.input(1, 512)
    first, second = b.dense(x, 32), b.dense(x, 32)
    problem = problem_of(b.net(b.add(first, second)), two_chips())
    assignment, makers = assigned(problem), problem.graph.maker_of
    places = [{tile.pe for tile in assignment[makers[name].name]} for name in (first, second)]
    assert places[0].isdisjoint(places[1])


@pytest.mark.parametrize(("room", "chips"), [(1 << 16, {0}), (6 << 10, {0, 1})])
def test_a_border_is_crossed_only_where_a_chip_is_full(room: int, chips: set[int]) -> None:
    """Each layer has 4 KB of weights, and orders. With 6 KB per PE, a chip of 6 PEs holds six layers of ten."""
    assignment = assigned(problem_of(chain(10), two_chips()), room)
    order = [{tile.pe // PES for tile in tiles} for tiles in assignment.values()]
    assert set().union(*order) == chips
    assert sum(before != after for before, after in pairwise(order)) <= 2


@pytest.mark.parametrize(("blocks", "room", "cut"), [(4, 15 << 10, 0), (6, 19 << 10, 1)])
def test_a_block_begins_on_the_next_chip_if_all_blocks_then_have_room(blocks: int, room: int, cut: int) -> None:
    """Each block has 24 KB of weights, a chip 6 PEs. `cut`: ops on both chips, at most."""
    b = Builder("blocks")
    x = b.input(1, 64)
    for _ in range(blocks):
        x = b.dense(b.dense(x, 192), 64)
    chips = [{tile.pe // PES for tile in tiles} for tiles in assigned(problem_of(b.net(x), two_chips()), room).values()]
    assert chips[0] == {0}
    assert chips[-1] == {1}
    assert sum(len(each) > 1 for each in chips) <= cut


@pytest.mark.parametrize(("room", "more"), [(1 << 17, False), (28 << 10, True)])
def test_splits_of_blocks_that_are_alike_are_searched_for_once(
    monkeypatch: pytest.MonkeyPatch, room: int, more: bool
) -> None:
    """The search runs again where the split does not fit: each block has 64 KB of weights."""
    b = Builder("blocks")
    x = b.input(1, 512)
    for _ in range(4):
        x = b.dense(b.dense(x, 64), 512)
    problem, searched = problem_of(b.net(x), two_chips()), list[str]()

    def axes(net: Net, op: Op) -> Collection[int]:
        searched.append(op.name)
        return cuttable_axes(net, op)

    monkeypatch.setattr("npukit.plan.layout.list_schedule.cuttable_axes", axes)
    assignment, names = assigned(problem, room), [op.name for op in problem.graph.ops]
    assert searched[:2] == names[:2]
    assert bool(searched[2:]) == more
    counts = [len(assignment[name]) for name in names]
    assert more or counts == counts[:2] * 4


def test_what_has_no_room_is_not_placed() -> None:
    assert ListSchedule(problem_of(chain(10), two_chips()), 1 << 10).assignment() is None


def rows() -> Problem:
    """Ten layers of 128 rows, each with 64 KB of weights."""
    b = Builder("rows")
    x = b.input(128, 256)
    for _ in range(10):
        x = b.dense(x, 256)
    return problem_of(b.net(x), two_chips())


ROOM = 100 << 10


def test_what_has_no_room_while_weights_cost_nothing_has_it_at_a_price() -> None:
    """Rows on separate PEs are fast, but each PE holds a copy of the weights."""
    assert ListSchedule(rows(), ROOM).assignment() is None
    assert ListSchedule(rows(), ROOM, price=10).assignment() is not None


def test_pes_that_hold_weights_have_room_for_the_operands_of_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory reserved for operands, PEs filled with weights also have to hold 32 KB of rows."""
    problem = rows()
    most = ROOM + TENSORS * problem.board.memory_for("activations").size
    assert most_with_operands(problem) <= most
    monkeypatch.setattr("npukit.plan.layout.list_schedule.TENSORS", 1)
    assert most_with_operands(problem) > most


def most_with_operands(problem: Problem) -> int:
    """Bytes of constants and of the largest tile's operands, on the PE with most."""
    assignment, graph = ListSchedule(problem, ROOM, price=10).assignment(), problem.graph
    assert assignment is not None
    held, operands = Counter[int](), Counter[int]()
    for op in graph.ops:
        for tile in assignment[op.name]:
            held[tile.pe] += problem.cost(op, tile.box).constant_bytes
            size = tile.box.elements + sum(box.elements for _, box in graph.needs_of(op, tile.box))
            operands[tile.pe] = max(operands[tile.pe], size)
    return max((held + operands).values())


@pytest.mark.exhaustive
def test_a_frame_on_two_chips_is_exact() -> None:
    board, net = two_chips(), image_net()
    plan = plan_network(net, board, engines(board), max_pes=board.pe_count)
    assert plan.objective == "latency"
    assert_exact(net, plan, rounds=1)


def test_ops_of_nothing_but_states_follow_the_one_of_a_block_before() -> None:
    """Four layers in a chain, each with a state read by a separate layer: dense 1, 4, 7 and 10."""
    b = Builder("states")
    x, states = b.input(1, 64), [b.input(1, 64) for _ in range(4)]
    for state in states:
        x = b.add(b.dense(x, 64), b.dense(state, 64))
    net = b.net(x)
    kept = tuple(State(name, x, np.zeros((1, 64), np.int8)) for name in states)
    net = replace(net, inputs=net.inputs[:1], states=kept)
    assert places(net) == [0, 1, 7, 2, 3, 4, 10, 5, 6, 8, 9, 11]
    changed = replace(kept[3], output=net.ops[10].output)
    assert places(replace(net, states=(*kept[:3], changed))) == [0, 1, 7, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    assert places(chain(3)) == [0, 1, 2]


def test_ops_of_nothing_but_states_follow_those_that_make_what_they_read() -> None:
    """A chain of ops after one state, like slices of a state. The third op must not move before the second."""
    b = Builder("chain of a state")
    x, state = b.input(1, 64), b.input(1, 64)
    first = b.dense(state, 64)
    x = b.dense(x, 64)
    second = b.dense(first, 64)
    x = b.dense(x, 64)
    net = b.net(b.add(x, b.dense(second, 64)))
    net = replace(net, inputs=net.inputs[:1], states=(State(state, net.outputs[0], np.zeros((1, 64), np.int8)),))
    assert places(net) == [0, 1, 2, 4, 3, 5]


def places(net: Net) -> list[int]:
    """Original positions of the ops, in the order of `states_early`."""
    return [net.ops.index(op) for op in states_early(Graph(net)).net.ops]


def test_first_blocks_end_where_the_next_ones_begin() -> None:
    """Blocks of two layers and a state. The first blocks include the layer before them and all inputs they share."""
    b = Builder("blocks")
    x, *states = (b.input(1, 64) for _ in range(6))
    y = b.dense(x, 64)
    made = list[str]()
    for state in states:
        made.append(b.dense(b.add(y, state), 64))
        y = b.add(made[-1], x)
    net = b.net(y)
    kept = tuple(State(*names, np.zeros((1, 64), np.int8)) for names in zip(states, made, strict=True))
    graph = Graph(replace(net, inputs=net.inputs[:1], states=kept))
    first = first_blocks(graph).net
    assert [op.name for op in first.ops] == [op.name for op in net.ops[:7]]
    assert first.outputs == (net.ops[6].output,)
    assert first.states == kept[:2]
    shorter = Graph(graph.net.with_ops(graph.net.ops[:7]))
    assert first_blocks(shorter) is shorter
