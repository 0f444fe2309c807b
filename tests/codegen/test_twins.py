"""PEs with the same work in different groups: generating all together gives the C and data of generating each alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.codegen.program import gather_all
from npukit.plan.ir.plan import Plan
from plan.emit.test_replicas import planned, rows_net
from plan.engines import engines

BOARD = load_board("pe-mesh")


def long_plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan of three groups with tables as programs."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 20)
    return planned(rows_net(), micro_batches=2)


def plan_in_pages(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The same plan with memory short on all PEs: their orders are in DRAM."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 20)
    monkeypatch.setattr("npukit.plan.emit.orders.PAGE_BYTES", 0)
    monkeypatch.setattr("npukit.plan.emit.allocate.shortfall", lambda *_: 1)
    plan = planned(rows_net(), micro_batches=2, low_memory=True)
    assert all(pe.orders.pages for pe in plan.pes)
    return plan


@pytest.mark.parametrize("plan_of", [long_plan, plan_in_pages])
def test_data_and_code_of_twins_are_what_they_would_be_alone(
    monkeypatch: pytest.MonkeyPatch, plan_of: Callable[[pytest.MonkeyPatch], Plan]
) -> None:
    plan, net = plan_of(monkeypatch), rows_net()
    assert len(plan.alike) == 3
    together = generate(net, plan, BOARD, engines(BOARD), bytes(16))
    alone = generate(net, replace(plan, alike=()), BOARD, engines(BOARD), bytes(16))
    for one, other in zip(together, alone, strict=True):
        assert one.own == other.own
        assert (one.files, one.streamed, one.foreign_pes) == (other.files, other.streamed, other.foreign_pes)


def test_tiles_of_twins_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = long_plan(monkeypatch)
    programs = {program.pe: program for program in gather_all(rows_net(), plan, BOARD, engines(BOARD))}
    for group in plan.alike[1:]:
        for first, twin in zip(plan.alike[0], group, strict=True):
            assert programs[twin].parts is programs[first].parts
            assert programs[twin].records != programs[first].records
