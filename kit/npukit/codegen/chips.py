"""Chips that run the same program: the messages between the root and the leaders of other chips around a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npukit.accel.interface import Address
from npukit.board.board import Board
from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES
from npukit.codegen.constants import Absolute, Fields, Number, Record, Value
from npukit.codegen.frame import SendStep, WaitStep
from npukit.codegen.messages import DESCRIPTOR_ALIGN, NO_FLAG, of_this_chip
from npukit.codegen.program import Program, enclosed
from npukit.plan.emit.messages import FIRMWARE_FLAGS
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import twin

START, DONE = "chips_start", "chip_done"


def with_leader(programs: Sequence[Program], plan: Plan, board: Board) -> list[Program]:
    """The programs of the root's chip, and a leader's program, which other chips run in place of the root's."""
    if len(plan.chips) == 1:
        return list(programs)
    assert board.noc is not None
    flag = board.noc.flags - FIRMWARE_FLAGS
    root, *workers = programs
    return [_as_root(root, plan, board, flag), *workers, _as_leader(root, flag)]


def pes_of(pes: Sequence[int], plan: Plan, board: Board, *, root: bool, leads: bool) -> tuple[int, ...]:
    """The PEs of a program on all chips, chip by chip: the root alone, the leaders of the other chips, or all."""
    chips = plan.chips[:1] if root else plan.chips[1:] if leads else plan.chips
    return tuple(twin(board, pe, plan.home, chip) for chip in chips for pe in pes)


def _as_root(program: Program, plan: Plan, board: Board, flag: int) -> Program:
    """The root's program: starts the leaders before the own chip's round, and waits for the leaders afterwards."""
    leaders = [twin(board, program.pe, plan.home, chip) for chip in plan.chips[1:]]
    to = f"{START}_to"
    rows: tuple[Fields, ...] = tuple((("pe", leader), ("address", 0)) for leader in leaders)
    listed = Record(to, "noc_destination", rows, 4, DESTINATION_BYTES, "leaders of the other chips", listed=True)
    several: Fields = ("options", "NOC_MULTICAST"), ("destination_pe", Number(Address(to))), ("destination", len(rows))
    start = _signal(START, program.pe, several, flag, "the other chips start")
    return enclosed(program, SendStep(START), WaitStep(flag, len(leaders), "the other chips are done"), (start, listed))


def _as_leader(program: Program, flag: int) -> Program:
    """A leader's program: waits for the root's signal before the own chip's round, and answers afterwards."""
    done = _signal(
        DONE, of_this_chip(program.pe), (("destination_pe", program.pe), ("destination", 0)), flag, "this chip is done"
    )
    led = enclosed(program, WaitStep(flag, 1, "the first chip starts"), SendStep(DONE), (done,))
    return replace(led, is_root=False, leads=True)


def _signal(symbol: str, source: Value, destination: Fields, flag: int, what: str) -> Record:
    """A descriptor that moves no bytes and increments a flag."""
    fields: Fields = (
        ("kind", "NOC_COPY"),
        ("tag", "NOC_NO_MESSAGE"),
        ("source_pe", source),
        ("source", Absolute(0)),
        *destination,
        ("source_flag", NO_FLAG),
        ("destination_flag", flag),
    )
    return Record(symbol, "noc_descriptor", (fields,), DESCRIPTOR_ALIGN, DESCRIPTOR_BYTES, what)
