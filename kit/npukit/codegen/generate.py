"""From a plan to the C of every program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from npukit.accel.interface import Accelerator, Call
from npukit.board.board import Board
from npukit.codegen.messages import foreign_arena
from npukit.codegen.names import c_string
from npukit.codegen.program import CPU, Program, gather
from npukit.codegen.render import Ends, PeRow, Titles, render
from npukit.codegen.sources import Sources
from npukit.codegen.tensors import input_rows, output_rows
from npukit.net.net import Net
from npukit.plan.plan import Plan


def generate(
    net: Net, plan: Plan, board: Board, accelerators: Mapping[str, Accelerator], build_id: bytes
) -> list[Sources]:
    """One program for each PE of the plan. `build_id` is what the device says it runs, 16 bytes."""
    titles = Titles(c_string(plan.model), c_string(plan.board), build_id, min(board.uart.receive_bytes, 0xFFFF))
    return [_sources(net, plan, board, accelerators, role, titles) for role in range(len(plan.pes))]


def _sources(
    net: Net, plan: Plan, board: Board, engines: Mapping[str, Accelerator], role: int, titles: Titles
) -> Sources:
    pe, root = plan.pes[role], role == 0
    program = gather(net, plan, pe, engines)
    return Sources(
        role=role,
        pes=(pe.pe,),
        files=render(program, titles, _ends(net, plan, program) if root else None),
        drivers=_drivers(program, board),
        wrappers=dict(_wrappers(program)),
        streamed=tuple({part.streamed.name: part.streamed for part in program.parts if part.streamed}.values()),
        constant_bytes=program.constants.bytes,
        activation_bytes=program.activation_bytes,
    )


def _ends(net: Net, plan: Plan, program: Program) -> Ends:
    root, *workers = (pe.pe for pe in plan.pes)
    pes = [PeRow(root, "0"), *(PeRow(pe, f"(uint32_t){foreign_arena(pe)}") for pe in workers)]
    return Ends(input_rows(net, plan, program), output_rows(net, plan, program), pes)


def _wrappers(program: Program) -> Iterator[tuple[str, tuple[str, str]]]:
    for part in program.parts:
        caller = (part.tile.op.name, part.engine.name)
        if part.engine.commands and part.chained:
            yield part.engine.commands.run, caller
            yield f"{part.engine.commands.run}_one", caller
        elif isinstance(part.lowered.code, Call) and part.engine.name != CPU:
            yield part.lowered.code.function, caller


def _drivers(program: Program, board: Board) -> tuple[Path, ...]:
    used = {part.engine.name: part.engine for part in program.parts}
    return tuple(path for _, engine in sorted(used.items()) for path in engine.sources(board))
