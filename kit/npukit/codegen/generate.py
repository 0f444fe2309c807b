"""From a plan to the C of every program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.codegen.names import c_string
from npukit.codegen.program import Program, gather
from npukit.codegen.render import Ends, Titles, render
from npukit.codegen.sources import Sources
from npukit.codegen.tensors import input_rows, output_rows
from npukit.net.net import Net
from npukit.plan.plan import PePlan, Plan


def generate(
    net: Net, plan: Plan, board: Board, accelerators: Mapping[str, Accelerator], build_id: bytes
) -> list[Sources]:
    """One program for each role of the plan. `build_id` is what the device says it runs, 16 bytes."""
    roles: dict[int, list[PePlan]] = {}
    for pe in plan.pes:
        roles.setdefault(pe.role, []).append(pe)
    titles = Titles(c_string(plan.model), c_string(plan.board), build_id)
    root = plan.pes[0].pe
    return [_sources(net, board, accelerators, pes, titles, root) for _, pes in sorted(roles.items())]


def _sources(
    net: Net, board: Board, engines: Mapping[str, Accelerator], pes: list[PePlan], titles: Titles, root: int
) -> Sources:
    program = gather(net, pes[0], engines)
    on_root = any(pe.pe == root for pe in pes)
    ends = Ends(input_rows(net, program), output_rows(net, program)) if on_root else Ends((), ())
    return Sources(
        role=pes[0].role,
        pes=tuple(pe.pe for pe in pes),
        files=render(program, titles, ends),
        drivers=_drivers(program, board),
        constant_bytes=program.constants.bytes,
        activation_bytes=program.arena.bytes,
    )


def _drivers(program: Program, board: Board) -> tuple[Path, ...]:
    used = {part.engine.name: part.engine for part in program.parts}
    return tuple(path for _, engine in sorted(used.items()) for path in engine.sources(board))
