"""The C of every program of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from npukit.accel.interface import Accelerator, Call
from npukit.board.board import Board
from npukit.codegen.chips import pes_of, with_leader
from npukit.codegen.names import c_string, foreign_arena
from npukit.codegen.own import own_data
from npukit.codegen.parts import Part
from npukit.codegen.program import Program, gather_all
from npukit.codegen.render import ChipRow, HostTensors, PeRow, Titles, render
from npukit.codegen.roles import Role, foreign_pes, roles_of
from npukit.codegen.sources import Sources
from npukit.codegen.tensors import tensor_rows
from npukit.data import data_folder
from npukit.errors import DoesNotFit
from npukit.net.c_code.function import math_functions
from npukit.net.net import CORE, Net
from npukit.net.ops import TvmCode
from npukit.plan.ir.plan import Plan
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
