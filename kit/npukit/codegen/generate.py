"""The C of every program of a plan, the own data of PEs, and the messages between the leaders of chips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from npukit.accel.interface import Accelerator, Address, Call
from npukit.board.board import Board
from npukit.codegen.constants import Absolute, Array, Callee, Fields, Foreign, Number, Record, Value
from npukit.codegen.frame import SendStep, WaitStep
from npukit.codegen.messages import NO_FLAG, descriptor, destinations, multicast, of_this_chip
from npukit.codegen.names import c_string, foreign_arena
from npukit.codegen.parts import Part
from npukit.codegen.program import Program, enclosed, gather_all
from npukit.codegen.render import ChipRow, HostTensors, PeRow, Titles, render
from npukit.codegen.roles import OwnLayout, Role, foreign_pes, roles_of
from npukit.codegen.sources import OwnData, PeData, Row, Sources, Spot
from npukit.codegen.tensors import tensor_rows
from npukit.data import data_folder
from npukit.errors import DoesNotFit
from npukit.net.c_code.function import math_functions
from npukit.net.net import CORE, Net
from npukit.net.ops import TvmCode
from npukit.plan.emit.messages import FIRMWARE_FLAGS
from npukit.plan.ir.plan import Plan
from npukit.plan.multi_chip import twin
from npukit.plan.predict.memory import bank_begins

MOST_TENSORS = 0xFFFF
"""Limit of the protocol on the inputs, or outputs, of a run."""


def generate(
    net: Net,
    plan: Plan,
    board: Board,
    accelerators: Mapping[str, Accelerator],
    build_id: bytes,
    *,
    traces: bool = False,
) -> list[Sources]:
    """The sources of one program for each role of the plan's PEs. `build_id`: 16 bytes, which the device reports.
    `traces`: the programs record when each step of a frame began."""
    link_bytes = min(board.uart.receive_bytes, 0xFFFF)
    titles = Titles(c_string(plan.model), c_string(plan.board), build_id, link_bytes, traces)
    programs = gather_all(net, plan, board, accelerators)

    def kind(program: Program) -> tuple[str, int]:
        """The core type of a program's PE, and the end address of the PE's memory."""
        return board.cpu_of(program.pe), board.seen_by(program.pe).memory_for("activations").end

    roles = roles_of(with_leader(programs, plan, board), partial(_room, board, plan), kind)
    return [_sources(net, plan, board, role, number, titles) for number, role in enumerate(roles)]


def _room(board: Board, plan: Plan, program: Program) -> int:
    """Bytes for constants and activations together on the program's PE: the memory without code and stack. 0 where PEs
    share one address space, as no two PEs can run one program there."""
    if board.shares_memory:
        return 0
    use = plan.by_pe[program.pe].memory
    return board.seen_by(program.pe).memory_for("activations").size - use.code - use.stack


def _sources(net: Net, plan: Plan, board: Board, role: Role, number: int, titles: Titles) -> Sources:
    ends = _ends(net, plan, board, role.first) if role.first.is_root else None
    known = {pe.pe for pe in ends.pes} if ends else set()
    banks = plan.by_pe[role.first.pe].memory.banks
    streamed = (part.streamed for program in role.programs for part in program.parts)
    return Sources(
        role=number,
        pes=pes_of(role.pes, plan, board, root=role.first.is_root, leads=role.first.leads),
        files=render(role, titles, ends, tuple(zip(bank_begins(board)[1:], banks, strict=False))),
        drivers=tuple(_drivers(role.parts, board, ends)),
        wrappers=dict(_wrappers(role.parts)),
        streamed=tuple(dict.fromkeys(piece for piece in streamed if piece)),
        constant_bytes=role.constants.bytes,
        activation_bytes=role.activation_bytes,
        bank_bytes=banks,
        foreign_pes=tuple(sorted((foreign_pes(role.constants.members) | known) - {role.first.pe})),
        own=own_data(role),
        spans={each.pe: each.spans for each in role.programs if not each.leads} if titles.traces else {},
    )


def _ends(net: Net, plan: Plan, board: Board, program: Program) -> HostTensors:
    root, *workers = (pe.pe for pe in plan.pes)
    control = "(uint32_t)&net_activations" if len(plan.chips) > 1 else "0"
    pes = [PeRow(root, control), *(PeRow(pe, f"(uint32_t){foreign_arena(pe)}") for pe in workers)]
    count = plan.frames_of_all * max(len(net.inputs), len(net.outputs))
    if count > MOST_TENSORS:
        raise DoesNotFit(
            f"a run on {plan.pes_used} PEs takes {count:,} inputs, and the link counts up to {MOST_TENSORS:,}",
            tries=["fewer PEs: --pes N"],
        )
    pes_of_chip = board.mesh.pes.count
    chips = [ChipRow((chip - plan.home) * pes_of_chip, chip) for chip in plan.chips]
    inputs, outputs = (tensor_rows(net, plan, program, end) for end in ("input", "output"))
    return HostTensors(inputs, outputs, pes, plan.frames, chips, remembers=bool(net.states))


def _wrappers(parts: Sequence[Part]) -> Iterator[tuple[str, tuple[str, str]]]:
    for part in parts:
        caller = (part.tile.op.name, part.engine.name)
        if part.engine.commands and part.chained:
            yield part.engine.commands.run, caller
            yield f"{part.engine.commands.run}_one", caller
            if part.engine.commands.submit:
                yield part.engine.commands.submit, caller
        elif isinstance(part.lowered.code, Call) and part.engine.name != CORE:
            yield part.lowered.code.function, caller
        if part.engine.abilities.wait:
            yield part.engine.abilities.wait, caller


def _drivers(parts: Sequence[Part], board: Board, ends: HostTensors | None) -> Iterator[Path]:
    """The firmware's sources for the accelerators, for C that calls libm, and for conversions by the link."""
    used = {}
    for part in parts:
        attributes = part.tile.op.attributes
        calls_libm = isinstance(attributes, TvmCode) and math_functions(attributes.code)
        if part.engine.name != CORE or calls_libm:
            used[part.engine.name] = part.engine
    for _, engine in sorted(used.items()):
        yield from engine.sources(board)
    if ends and any(row.conversion for row in (*ends.inputs, *ends.outputs)):
        yield from sorted((data_folder("firmware") / "conversion").glob("*.c"))


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


def own_data(role: Role) -> OwnData:
    """The data of every PE of the role."""
    headers = tuple(sorted({"net.h", *role.headers}))
    pages = tuple(_pages(own) for own in role.places_of_pages)
    return OwnData(role.own_bytes, tuple(_pe_data(own) for own in role.own), headers, pages)


def _pages(own: OwnLayout) -> tuple[int, PeData]:
    """The pages of a PE in DRAM, and their total bytes."""
    program, rows, size = own.program, list[Row](), 0
    assert program.table is not None
    assert program.table.room is not None
    room = program.table.room
    for number, page in enumerate(program.pages):
        begin, here = number * room.bytes, program.offsets[room.symbol] + number % 2 * room.bytes
        homes = {record.symbol: Spot("activations", here + offset) for offset, record in page.members()}
        for offset, record in page.members():
            rows += _record_rows(own, begin + offset, record, homes)
        size = begin + page.bytes
    return size, PeData(program.pe, (), tuple(rows))


def _pe_data(own: OwnLayout) -> PeData:
    (start, words), arrays, rows = own.words, list[tuple[int, bytes]](), list[Row]()
    if words:
        values = tuple(_value(own, word.value, {}) for word in words)
        rows.append(Row(start, "", tuple(word.name for word in words), values))
    for offset, member in own.parts:
        if isinstance(member, Array):
            arrays.append((offset, np.ascontiguousarray(member.array.values).tobytes()))
        else:
            rows += _record_rows(own, offset, member, {})
    return PeData(own.program.pe, tuple(arrays), tuple(rows))


def _record_rows(own: OwnLayout, offset: int, record: Record, homes: Mapping[str, Spot]) -> Iterator[Row]:
    """The rows of a record. `homes`: the addresses of symbols that exist only in a page."""
    for index, fields in enumerate(record.rows):
        names, values = zip(*fields, strict=True)
        yield Row(offset + index * record.row_bytes, record.struct, names, tuple(_value(own, v, homes) for v in values))


def _value(own: OwnLayout, value: Value, homes: Mapping[str, Spot]) -> int | str | Spot:
    if isinstance(value, int | str):  # the common case
        return value
    match value:
        case Number(Address() as address) | (Address() as address):
            if address.symbol in homes:
                return replace(homes[address.symbol], offset=homes[address.symbol].offset + address.offset)
            if address.symbol in own.program.offsets:
                return Spot("activations", own.program.offsets[address.symbol] + address.offset)
            if address.symbol in own.homes:
                return Spot("own", own.homes[address.symbol] + address.offset)
            return Spot("constants", own.common[address.symbol] + address.offset)
        case Foreign(pe, offset):
            return Spot("activations", offset, pe)
        case Absolute(address):
            return address
        case Callee():
            return own.functions[value]
    return value
