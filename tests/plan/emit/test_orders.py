"""Orders on PEs with little memory: as many as fit stay in memory, the others are fetched in pages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from accel.test_mac_array_blended import resizes
from npukit.accel.mac_array.plugin import COMMAND_BYTES
from npukit.board.board import Board
from npukit.codegen.program import gather
from npukit.net.net import Net
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import PAGES, PePlan, Plan
from npukit.plan.ir.text import print_plan
from npukit.plan.predict.memory import with_code
from npukit.plan.predict.simulate import predicted_timeline
from npukit.plan.tensors.core_cycles import FETCH_CYCLES
from plan.emit.test_replicas import BOARD, engines, planned, rows_net

PAGE = 256


def in_pages(lacks: int, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan whose PEs each lack `lacks` bytes, with orders in pages of one size."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 20)
    monkeypatch.setattr("npukit.plan.emit.orders.PAGE_BYTES", PAGE)
    monkeypatch.setattr("npukit.plan.emit.allocate.shortfall", lambda *_: lacks)
    return planned(rows_net(), low_memory=True)


@pytest.mark.parametrize("lacks", [1, 300, 600])
def test_as_many_orders_stay_in_memory_as_have_room(lacks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, plan = in_pages(0, monkeypatch), in_pages(lacks, monkeypatch)
    assert parse_plan(print_plan(plan)) == plan
    for before, pe in zip(whole.pes[1:], plan.pes[1:], strict=True):
        room = before.orders.bytes - lacks - pe.buffer(PAGES).bytes
        assert room - PAGE < pe.orders.bytes <= room
        assert pe.orders.pages[0].first > 0
        assert all(one.first < other.first for one, other in pairwise(pe.orders.pages))
        assert all(page.bytes <= pe.buffer(PAGES).bytes // 2 for page in pe.orders.pages)


def test_the_first_page_is_asked_for_as_a_frame_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page is fetched before any step, even a step in memory, as the firmware does."""
    plan = in_pages(300, monkeypatch)
    moved = predicted_timeline(rows_net(), BOARD, plan).movements
    for pe in plan.pes[1:]:
        pages = [each.asked for each in moved if each.sender == pe.pe and each.bytes == pe.orders.pages[0].bytes]
        assert min(pages) == FETCH_CYCLES


def test_where_none_have_room_all_come_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = in_pages(1 << 20, monkeypatch)
    assert {pe.orders.pages[0].first for pe in plan.pes} == {0}
    assert {pe.orders.descriptors for pe in plan.pes} == {0}


def test_a_page_has_room_for_all_commands_of_a_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile of a bilinear resize is a chain of commands."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    monkeypatch.setattr("npukit.plan.emit.orders.PAGE_BYTES", 0)
    monkeypatch.setattr("npukit.plan.emit.allocate.shortfall", lambda *_: 1 << 20)
    net = resizes((24, 32, "half_pixel"), (11, 16, "align_corners"))
    plan = planned(net, low_memory=True)
    for pe in plan.pes[1:]:
        pages, size = gather(net, plan, pe, engines(BOARD)).pages, pe.buffer(PAGES).bytes // 2
        assert max(page.bytes for page in pages) > 12 * COMMAND_BYTES
        assert all(page.bytes <= size for page in pages)


def test_the_code_of_kernels_wants_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded(net: Net, board: Board, pe: PePlan, core: object, root: int) -> PePlan:
        """The PE with more code than memory."""
        return replace(pe, memory=with_code(board, pe.memory, 1 << 20))

    monkeypatch.setattr("npukit.plan.emit.orders.PAGE_BYTES", PAGE)
    assert not any(pe.orders.pages for pe in planned(rows_net(), low_memory=True).pes)
    monkeypatch.setattr("npukit.plan.emit.allocate.with_code_of_kernels", crowded)
    assert all(pe.orders.pages for pe in planned(rows_net(), low_memory=True).pes)


def used(pe: PePlan) -> int:
    return pe.memory.code + pe.memory.constants + pe.memory.activations


def test_a_crowded_pe_has_a_short_program_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the root gets a table, because much of its memory is reserved for code. No orders are in pages."""
    before = planned(rows_net(), low_memory=True)
    monkeypatch.setattr("npukit.plan.emit.allocate.shortfall", lambda _, use: max(0, use.code - (12 << 10)))
    plan = planned(rows_net(), low_memory=True)
    assert [pe.is_table for pe in plan.pes] == [True, *[False] * (len(plan.pes) - 1)]
    assert not plan.pes[0].orders.pages
    assert plan.pes[0].memory.free > before.pes[0].memory.free + (4 << 10)
    assert plan.pes[1:] == before.pes[1:]
    assert parse_plan(print_plan(plan)) == plan


@pytest.mark.parametrize("code_of_the_loop", [0, 8 << 10])
def test_a_crowded_pe_has_what_takes_least(code_of_the_loop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PE gets a table while the code of the table's loop is small. PEs with equal computations share one program."""
    before = planned(rows_net(), low_memory=True)
    monkeypatch.setattr(
        "npukit.plan.emit.allocate.shortfall", lambda _, use: use.code + use.constants + use.activations
    )
    monkeypatch.setattr("npukit.plan.predict.memory.CODE_OF_THE_LOOP", code_of_the_loop)
    plan = planned(rows_net(), low_memory=True)
    assert all(used(pe) <= used(one) for pe, one in zip(plan.pes, before.pes, strict=True))
    assert [pe.is_table for pe in plan.pes[1:]] == [not code_of_the_loop] * (len(plan.pes) - 1)
    assert len({pe.role for pe in plan.pes if pe.is_table}) <= 1
