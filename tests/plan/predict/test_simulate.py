from __future__ import annotations

import pytest

from npukit.board.board import Board, Grid, Noc, load_board
from npukit.board.noc import DRAM, Packets
from npukit.net.box import Box
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import PePlan
from npukit.plan.predict.dram import DramTiming
from npukit.plan.predict.noc import Links
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.core_cycles import (
    BEGIN_CYCLES,
    CHAIN_CYCLES,
    DOORBELL_CYCLES,
    END_CYCLES,
    ROW_CYCLES,
    SIGNAL_CYCLES,
    WAKE_CYCLES,
)
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import Link, Routes, pes_in_order
from plan.assignments import emitted_frame, on_one_pe
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def noc_of(board: Board) -> Noc:
    assert board.noc is not None
    return board.noc


NOC = noc_of(BOARD)
SETUP = NOC.setup_cycles


def chips(columns: int, rows: int) -> Board:
    grid = Grid(columns=columns, rows=rows)
    return BOARD.model_copy(update={"mesh": BOARD.mesh.model_copy(update={"chips": grid})})


def test_one_pe_takes_its_engines_cycles_and_the_starts() -> None:
    b = Builder("two")
    net = b.net(b.conv(b.conv(b.input(1, 8, 8, 4), 16, 3), 16, 3))
    plan = emitted_frame(Problem(Graph(net), BOARD, engines(BOARD)), on_one_pe(Graph(net), 0))
    cycles = sum(step.cycles for step in plan.pes[0].computes())
    assert simulate(net, BOARD, plan).latency_cycles == BEGIN_CYCLES + CHAIN_CYCLES + cycles + END_CYCLES


def test_the_rows_of_a_table_take_the_core_some_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder("two")
    net = b.net(b.conv(b.conv(b.input(1, 8, 8, 4), 16, 3), 16, 3))
    plan = emitted_frame(Problem(Graph(net), BOARD, engines(BOARD)), on_one_pe(Graph(net), 0))
    straight = simulate(net, BOARD, plan).latency_cycles
    monkeypatch.setattr(PePlan, "is_table", True)
    assert simulate(net, BOARD, plan).latency_cycles == straight + ROW_CYCLES, "one chain is one row that waits"


def test_a_table_tells_each_pe_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of a frame and every grant of space are signals. The last signal of each counts as sent."""
    b = Builder("two")
    graph = Graph(b.net(b.conv(b.conv(b.input(1, 8, 8, 4), 16, 3), 16, 3)))
    rows = [tuple(map(Tile, range(4), to_boxes(grid((1, 8, 8, 16), (1, 4, 1, 1), (1, 1, 1, 1)))))] * 2
    assignment = dict(zip([op.name for op in graph.ops], rows, strict=True))
    plan = emit_batch(Problem(graph, BOARD, engines(BOARD)), Batch((assignment,)))
    straight = simulate(graph.net, BOARD, plan).latency_cycles
    monkeypatch.setattr(PePlan, "is_table", True)
    told = [message for message in plan.messages if not message.tensor]
    assert simulate(graph.net, BOARD, plan).latency_cycles > straight + 3 * SIGNAL_CYCLES
    assert max(len(message.landings) for message in told) == 3


def alone(data: int, hops: int = 1) -> int:
    """Cycles from a doorbell to the flag of a short message alone: fetch, router, hops, header and data."""
    return 1 + SETUP + 2 + hops * NOC.hop_cycles + 1 + data + 1


def test_one_message_there_and_one_back() -> None:
    """Computed by hand from the manual: 64 bytes there, 16 x 16 bytes back, over one hop."""
    b = Builder("away")
    net = b.net(b.conv(b.input(1, 4, 4, 4), 16))
    (op,) = net.ops
    tile = Tile(1, Box.whole((1, 4, 4, 16)))
    plan = emitted_frame(Problem(Graph(net), BOARD, engines(BOARD)), {op.name: (tile,)})
    (compute,) = plan.pes[1].computes()
    there = DOORBELL_CYCLES + alone(4) + WAKE_CYCLES
    back = DOORBELL_CYCLES + alone(16) + WAKE_CYCLES
    frame = BEGIN_CYCLES + there + CHAIN_CYCLES + compute.cycles + back + END_CYCLES
    assert simulate(net, BOARD, plan).latency_cycles == frame


def test_frames_follow_each_other() -> None:
    b = Builder("away")
    net = b.net(b.conv(b.input(1, 4, 4, 4), 16))
    tile = Tile(1, Box.whole((1, 4, 4, 16)))
    plan = emitted_frame(Problem(Graph(net), BOARD, engines(BOARD)), {net.ops[0].name: (tile,)})
    result = simulate(net, BOARD, plan, frames=4)
    assert len(result.frame_ends) == 4
    assert result.interval_cycles == pytest.approx(result.latency_cycles, rel=0.05)


def data(flits: int, destinations: int = 1) -> Packets:
    return NOC.packets(1, 16 * flits, destinations)


def test_a_message_takes_setup_hops_header_and_data() -> None:
    flight = Links(BOARD).carry(100, 0, 0, [2], data(10))
    assert flight.done == 100 + SETUP + 11
    assert flight.arrived == {2: 99 + alone(10, hops=2)}


def test_loads_are_whole_rows_or_pieces_of_rows() -> None:
    assert (data(40).count, data(40).flits) == (2, 42)
    assert NOC.packets(3, 16 * 12).count == 2
    assert NOC.packets(3, 16 * 20).count == 3
    assert (NOC.packets(0, 0).count, NOC.packets(0, 0).flits) == (1, 1)
    assert (data(40, 15).lists, data(40, 15).count) == (4, 2)
    assert data(16, 61).count == 2 * data(16, 60).count


def test_a_message_waits_where_a_link_is_taken() -> None:
    network = Links(BOARD)
    network.carry(0, 0, 0, [2], data(20))
    assert network.carry(0, 1, 1, [2], data(5)).arrived == {2: SETUP + 2 + NOC.hop_cycles + 21 + NOC.hop_cycles + 6 + 1}


def test_a_multicast_crosses_each_link_once() -> None:
    network = Links(BOARD)
    arrived = network.carry(0, 0, 0, [1, 2, 3], data(10, 3)).arrived
    assert arrived == {pe: SETUP + 1 + 3 + pe * (NOC.hop_cycles + 1) + 12 + 1 for pe in (1, 2, 3)}
    assert set(network.busy.values()) == {12}


def test_a_copy_within_a_pe_takes_twice_its_flits() -> None:
    assert Links(BOARD).carry(0, 3, 3, [3], data(7)).arrived == {3: SETUP + 2 + 16 + 1}


def test_a_message_that_comes_in_delays_the_one_that_goes_out() -> None:
    network = Links(BOARD)
    out = network.carry(0, 1, 1, [2], data(30))
    network.carry(0, 0, 0, [1], data(20))
    assert out.late == 21


def test_routes_go_along_x_then_y() -> None:
    assert [link.destination for link in Routes(BOARD).path(0, 10)] == [1, 2, 6, 10]


def test_routes_cross_chips_at_the_facing_pe() -> None:
    board = chips(2, 2)
    path = Routes(board).path(4, 16 * 3 + 4)
    assert [link.border for link in path] == [False] * 3 + [True] + [False] * 2 + [True] + [False]
    assert path[-1].destination == 16 * 3 + 4


def test_packets_on_a_torus_enter_each_chip_at_one_border() -> None:
    """With a single border per chip a multicast is a tree, as the emulator requires."""
    board = load_board("spinnaker2-48")
    routes, count = Routes(board), board.mesh.pes.count
    before: dict[Link, Link | None] = {}
    for chip in range(48):
        way = routes.path(7 * count + 30, chip * count + 80)
        assert all(before.setdefault(link, last) == last for link, last in zip(way, (None, *way), strict=False))
    assert sorted(link.destination for link in before if link.border) == [chip for chip in range(48) if chip != 7]


def test_a_border_is_as_slow_as_its_links() -> None:
    board = chips(2, 1)
    network, slow = Links(board), NOC.border_cycles(9)
    first = SETUP + 2 + 9 + 1 + slow + NOC.chip_hop_cycles + 9 + 1
    for lane in range(NOC.chip_links_per_border):
        assert network.carry(0, 3 + 4 * lane, 3 + 4 * lane, [16 + 4 * lane], data(8)).arrived == {16 + 4 * lane: first}
    assert network.carry(0, 11, 11, [24], data(8)).arrived == {24: first + slow}


def test_the_order_is_a_snake_from_the_root_past_dead_pes() -> None:
    assert pes_in_order(BOARD) == [0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12]
    dead = BOARD.model_copy(update={"mesh": BOARD.mesh.model_copy(update={"dead_pes": (0, 1, 2, 3, 6)})})
    assert pes_in_order(dead)[:3] == [4, 7, 5]


def answered(flits: int) -> int:
    """Cycles from an answer's first flit to its last: cycles of the DRAM, or of flits and headers on a link."""
    begin, end = DramTiming(NOC).access(0, -NOC.dram_row_cycles, data(flits))
    return max(end - begin, data(flits).flits)


def test_dram_is_asked_and_answers_one_after_the_other() -> None:
    network = Links(BOARD)
    answer = SETUP + 2 + 3 * NOC.hop_cycles + 3 + NOC.dram_latency_cycles + NOC.dram_row_cycles
    arrived = answer + 2 + 3 * NOC.hop_cycles + answered(12) + 1
    assert network.carry(0, 3, DRAM, [3], data(12)).arrived == {3: arrived}
    arrived = answer + 12 + 2 + NOC.hop_cycles + answered(400) + 1
    assert network.carry(0, 4, DRAM, [4], data(400)).arrived == {4: arrived}


def test_what_waits_for_dram_takes_no_link_meanwhile() -> None:
    network = Links(BOARD)
    network.departure(0, 0, DRAM, data(1000))
    later = network.departure(0, 0, DRAM, data(8))
    assert network.carry(20, 1, 1, [2], data(10)).arrived == {2: 19 + alone(10)}
    arrived = later[0] + 2 + NOC.hop_cycles + answered(8) + 1
    assert network.deliver(later, 0, DRAM, [1], data(8)).arrived == {1: arrived}
