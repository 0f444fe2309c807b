"""The rows of a frame follow the critical path, and add up to the frame."""

from __future__ import annotations

from npukit.board.board import Board, load_board
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import on_chips
from npukit.plan.planner import plan_network
from npukit.plan.predict.frame_table import MESSAGES, SETUP, frame_table, from_json, predicted_frame, to_json
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.predict.timeline import CORE, SEND, WAIT, Movement, Timeline, TimeSlice
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.core_cycles import BEGIN_CYCLES, CHAIN_CYCLES, DOORBELL_CYCLES, END_CYCLES, WAKE_CYCLES
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import emitted_frame
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")
CALLS_OF_ONE_CHAIN = BEGIN_CYCLES + CHAIN_CYCLES + END_CYCLES


def work(pe: int, layer: str, start: int, end: int, track: str = CORE) -> TimeSlice:
    return TimeSlice(pe, track, layer, start, end, layer, 0)


def call(pe: int, name: str, start: int, end: int) -> TimeSlice:
    return TimeSlice(pe, CORE, name, start, end)


def rows(*slices: TimeSlice, end: int, movements: tuple[Movement, ...] = (), start: int = 0) -> dict[str, int]:
    timeline = Timeline("net", "board", 1, ((start, end),), slices, movements=movements)
    return dict(frame_table(timeline))


def test_what_is_between_layers_are_calls() -> None:
    assert rows(work(0, "a", 3, 10), work(0, "b", 14, 20), end=21) == {"a": 7, "b": 6, MESSAGES: 0, SETUP: 8}


def test_a_message_is_charged_from_its_departure_and_the_sender_before_that() -> None:
    """PE 1 computes until cycle 30, long after PE 0 began to wait."""
    sent = Movement(source=1, target=0, bytes=16, start=36, end=40, sender=1, asked=32)
    slices = [work(0, "a", 0, 10), call(0, WAIT, 10, 42), work(0, "c", 42, 50)]
    slices += [work(1, "b", 5, 30), call(1, SEND, 30, 34)]
    assert rows(*slices, end=50, movements=(sent,)) == {"a": 0, "b": 25, "c": 8, MESSAGES: 12, SETUP: 5}


def test_a_message_that_was_there_before_is_not_what_the_frame_waited_for() -> None:
    sent = Movement(source=1, target=0, bytes=16, start=3, end=8, sender=1, asked=2)
    slices = [work(0, "a", 0, 10), call(0, WAIT, 10, 13), work(0, "b", 13, 20), work(1, "x", 0, 1), call(1, SEND, 1, 3)]
    assert rows(*slices, end=20, movements=(sent,)) == {"a": 10, "x": 0, "b": 7, MESSAGES: 3, SETUP: 0}


def test_of_a_core_and_its_accelerator_the_one_that_ends_last_counts() -> None:
    """The core computes in parallel with the accelerator, then waits for the accelerator."""
    beside = [work(0, "a", 10, 90, "npu"), work(0, "b", 15, 60), work(0, "c", 95, 100)]
    assert rows(*beside, end=100) == {"a": 80, "b": 0, "c": 5, MESSAGES: 0, SETUP: 15}


def test_cycles_before_the_frame_are_not_its() -> None:
    sent = Movement(source=1, target=0, bytes=16, start=90, end=104, sender=1, asked=80)
    slices = [work(1, "a", 0, 70), call(1, SEND, 70, 85), call(0, WAIT, 100, 110), work(0, "b", 110, 120)]
    assert rows(*slices, end=120, movements=(sent,), start=100) == {"a": 0, "b": 10, MESSAGES: 10, SETUP: 0}


def test_a_table_is_read_back() -> None:
    table = {"conv2d_0": 1500, MESSAGES: 400, SETUP: 100}
    assert from_json(to_json(table)) == table
    assert to_json(table)[0] == {"name": "conv2d_0", "cycles": 1500}


def two_layers() -> Net:
    b = Builder("two")
    return b.net(b.conv(b.conv(b.input(1, 8, 8, 4), 16, 3), 16, 3))


def by_rows(net: Net, pes: int, board: Board = BOARD) -> Plan:
    boxes = to_boxes(grid((1, 8, 8, 16), (1, pes, 1, 1), (1, 1, 1, 1)))
    assignment = {op.name: tuple(map(Tile, range(pes), boxes)) for op in net.ops}
    return with_predictions(net, board, emitted_frame(Problem(Graph(net), board, engines(board)), assignment))


def test_a_frame_on_one_pe_is_by_hand() -> None:
    net = two_layers()
    plan = by_rows(net, 1)
    first, second = (step.cycles for step in plan.pes[0].computes())
    told = predicted_frame(net, BOARD, plan)
    assert list(told.values()) == [first, second, 0, CALLS_OF_ONE_CHAIN]


def test_a_tile_on_another_pe_is_waited_for_by_messages() -> None:
    b = Builder("away")
    net = b.net(b.conv(b.input(1, 4, 4, 4), 16))
    (op,) = net.ops
    tile = Tile(1, Box.whole((1, 4, 4, 16)))
    emitted = emitted_frame(Problem(Graph(net), BOARD, engines(BOARD)), {op.name: (tile,)})
    plan = with_predictions(net, BOARD, emitted)
    (compute,) = plan.pes[1].computes()
    told = predicted_frame(net, BOARD, plan)
    assert told[op.name] == compute.predicted_cycles
    assert told[MESSAGES] >= 2 * (DOORBELL_CYCLES + WAKE_CYCLES)
    assert told[SETUP] == CALLS_OF_ONE_CHAIN


def test_predicted_rows_add_up_to_the_prediction() -> None:
    net = two_layers()
    batch = plan_network(net, BOARD, engines(BOARD), objective="throughput", max_pes=4)
    assert batch.frames > 1
    for plan in [*(by_rows(net, pes) for pes in (1, 2, 4, 8)), batch]:
        table = predicted_frame(net, BOARD, plan)
        assert sum(table.values()) == plan.predicted.latency_cycles
        assert all(cycles >= 0 for cycles in table.values())


def test_what_chips_tell_each_other_are_messages() -> None:
    board, net = load_board("pe-mesh-7296"), two_layers()
    alone = by_rows(net, 2, board)
    several = on_chips(board, alone, (0, 1))
    one, two = (predicted_frame(net, board, plan) for plan in (alone, several))
    more = several.predicted.latency_cycles - alone.predicted.latency_cycles
    assert more > 0
    assert {**one, MESSAGES: one[MESSAGES] + more} == two
