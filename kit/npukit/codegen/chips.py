"""Chips that run the same program: the messages between the root and the leaders of other chips around a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npukit.board.board import Board
from npukit.codegen.constants import Absolute, Fields, Record, Value
from npukit.codegen.frame import SendStep, WaitStep
from npukit.codegen.messages import NO_FLAG, descriptor, destinations, multicast, of_this_chip
from npukit.codegen.program import Program, enclosed
from npukit.plan.emit.messages import FIRMWARE_FLAGS
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import twin

START, DONE = "chips_start", "chip_done"


def with_leader(programs: Sequence[Program], plan: Plan, board: Board) -> list[Program]:
    """The programs of the root's chip, and a leader's program, which other chips run in place of the root's. The root
    starts the leaders before the own chip's round, and waits for their answers afterwards."""
    if len(plan.chips) == 1:
        return list(programs)
    assert board.noc is not None
    flag, to = board.noc.flags - FIRMWARE_FLAGS, f"{START}_to"
    root, *workers = programs
    leaders = [twin(board, root.pe, plan.home, chip) for chip in plan.chips[1:]]
    listed = destinations(to, [(leader, 0) for leader in leaders], "leaders of the other chips")
    start = _signal(START, root.pe, multicast(to, len(leaders)), flag, "the other chips start")
    answer: Fields = ("destination_pe", root.pe), ("destination", 0)
    done = _signal(DONE, of_this_chip(root.pe), answer, flag, "this chip is done")
    all_done = WaitStep(flag, len(leaders), "the other chips are done")
    leader = enclosed(root, WaitStep(flag, 1, "the first chip starts"), SendStep(DONE), (done,))
    starter = enclosed(root, SendStep(START), all_done, (start, listed))
    return [starter, *workers, replace(leader, is_root=False, leads=True)]


def pes_of(pes: Sequence[int], plan: Plan, board: Board, *, root: bool, leads: bool) -> tuple[int, ...]:
    """The PEs of a program on all chips, chip by chip: the root alone, the leaders of the other chips, or all."""
    chips = plan.chips[:1] if root else plan.chips[1:] if leads else plan.chips
    return tuple(twin(board, pe, plan.home, chip) for chip in chips for pe in pes)


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
    return descriptor(symbol, fields, what)
