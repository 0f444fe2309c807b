"""The program of a PE: tiles, constants, commands, kernels, the steps of a frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise, starmap

from npukit.accel.engines import engines_on
from npukit.accel.interface import Accelerator, Call, ConstantArray, Engines, Operand, Routine, Routines
from npukit.board.board import Board
from npukit.codegen.constants import Record
from npukit.codegen.frame import ChainStep, FrameStep, JoinStep, RestoreStep, SendStep, TableStep, WaitStep
from npukit.codegen.messages import Descriptors
from npukit.codegen.parts import Arena, Part, chain_records, commands_of, kernel_step, lower_parts
from npukit.codegen.states import STATES, state_arrays, state_records
from npukit.codegen.table import TABLE, Page, Piece, Room, TableProgram
from npukit.net.net import CORE, Net
from npukit.plan.emit.replay import keys_of_steps, layer_places
from npukit.plan.ir.plan import PAGES, Compute, Join, PePlan, Plan, Restore, Send, Step, Wait, orders_name
from npukit.plan.ir.text import purposes
from npukit.plan.predict.memory import control_bytes

NOC_HEADER = "noc.h"


@dataclass(frozen=True)
class Program:
    """The program of a PE, before PEs with the same code are grouped."""

    pe: int
    is_root: bool
    arena: Arena
    parts: tuple[Part, ...]
    layers: tuple[Operand, ...]
    """The recorded layers: the tiles that the PE computes."""
    arrays: tuple[ConstantArray, ...]
    records: tuple[Record, ...]
    steps: tuple[FrameStep, ...]
    """The steps of a frame. A generated kernel is called by the name of its tile."""
    spans: tuple[int, ...]
    """The number of the plan's steps in each traceable step: each of `steps`, or each row of the table."""
    headers: tuple[str, ...]
    wrappers: tuple[str, ...]
    """Prototypes of plug-ins' functions that are called by name."""
    routines: tuple[Routine, ...]
    table: TableProgram | None = None
    """The source of a long program's table and records."""
    layer_places: tuple[int, ...] = ()
    """The number of each layer's place, in a table. Empty: each layer has a place of its own."""
    leads: bool = False
    """True for the leader of a chip that does the same as the root's chip."""

    @property
    def pages(self) -> Sequence[Page]:
        """The pages of the program's orders, if these lie in DRAM."""
        return self.table.pages if self.table else ()

    @property
    def control_bytes(self) -> int:
        return control_bytes(len(self.layers))

    @property
    def activation_bytes(self) -> int:
        return self.control_bytes + self.arena.bytes

    @cached_property
    def offsets(self) -> dict[str, int]:
        """The offsets of buffers by their C names, from the beginning of the activations."""
        return {self.arena.place(each): self.control_bytes + each.offset for each in self.arena.buffers.values()}


def enclosed(
    program: Program, first: SendStep | WaitStep, last: SendStep | WaitStep, records: Sequence[Record]
) -> Program:
    """The program with a step before all others and one after all others, and the records of both."""
    headers = tuple(sorted({*program.headers, NOC_HEADER}))
    spans = (0, *program.spans, 0)
    if program.table is None:
        steps, every = (first, *program.steps, last), (*program.records, *records)
        return replace(program, steps=steps, spans=spans, records=every, headers=headers)
    table = program.table.enclosed(first, last)
    return replace(program, table=table, spans=spans, records=(*records, *table.records()), headers=headers)


def gather(net: Net, plan: Plan, pe: PePlan, engines: Mapping[str, Accelerator]) -> Program:
    """The program of one PE."""
    arena = Arena(net, pe)
    parts = lower_parts(net, pe, arena, engines)
    descriptors = Descriptors(net, plan, pe.pe, arena)
    table = None
    if pe.is_table and len({part.engine.name for part in parts if part.chained}) < 2:
        firsts = frozenset(page.first for page in pe.orders.pages)
        runs = list(_runs(_pieces(pe.steps, parts), descriptors.is_signal, firsts))
        room, likes = _room_for_pages(plan, pe, arena), list(_likes(plan, pe, runs))
        begins = [number for number, step in enumerate(accumulate(map(len, runs), initial=0)) if step in firsts]
        pages = tuple(starmap(range, pairwise([*begins, len(runs)])))
        table = TableProgram.of(runs, likes, descriptors, room, pages)
        steps = (TableStep(TABLE),)
        records, spans = tuple(table.records()), tuple(table.spans())
    else:
        runs = list(_runs(_pieces(pe.steps, parts)))
        steps = tuple(_with_purposes(runs, descriptors, parts, purposes(plan, pe)))
        records, spans = tuple(_records(runs, descriptors)), tuple(len(run) for run in runs)
    return Program(
        pe=pe.pe,
        is_root=pe is plan.pes[0],
        arena=arena,
        parts=tuple(parts),
        layers=tuple(arena.operand(each.output) for each in pe.tiles),
        arrays=(*(array for part in parts for array in part.lowered.constants), *state_arrays(net, pe, arena)),
        records=(*records, *state_records(net, pe, arena)),
        steps=steps,
        spans=spans,
        headers=_headers(pe, parts),
        wrappers=_wrappers(parts),
        routines=_routines(parts),
        table=table,
        layer_places=tuple(layer_places(plan, pe)) if table else (),
    )


def gather_all(net: Net, plan: Plan, board: Board, engines: Engines) -> list[Program]:
    """The programs of all PEs. For PEs of equal groups (`Plan.alike`) everything but messages is made once."""
    firsts = {twin: first for group in plan.alike for twin, first in zip(group, plan.alike[0], strict=True)}

    def gathered(pe: PePlan) -> Program:
        return gather(net, plan, pe, engines_on(engines, board.cpu_of(pe.pe)))

    made = {pe.pe: gathered(pe) for pe in plan.pes if firsts.get(pe.pe, pe.pe) == pe.pe}
    return [made.get(pe.pe) or _twin(net, plan, pe, made[firsts[pe.pe]]) or gathered(pe) for pe in plan.pes]


def _twin(net: Net, plan: Plan, pe: PePlan, first: Program) -> Program | None:
    """The program of a PE that does the same as the PE of `first`, if the program is a table."""
    if first.table is None:
        return None
    arena = first.arena.of_twin(pe)
    descriptors = Descriptors(net, plan, pe.pe, arena)
    table = first.table.of_twin(pe.steps, descriptors, _room_for_pages(plan, pe, arena))
    return replace(first, pe=pe.pe, arena=arena, records=tuple(table.records()), table=table)


def _room_for_pages(plan: Plan, pe: PePlan, arena: Arena) -> Room | None:
    """The room for the pages of the PE's table, if the table comes from DRAM."""
    if not pe.orders.pages:
        return None
    buffer, name = pe.buffer(PAGES), orders_name(pe.pe)
    dram = next(each.offset for each in plan.dram if each.name == name)
    return Room(arena.place(buffer), buffer.bytes // 2, dram)


def _likes(plan: Plan, pe: PePlan, runs: Sequence[Sequence[Piece]]) -> Iterator[Hashable]:
    """The kind of each run. A run with a called kernel has a kind of its own."""
    likes, begin = keys_of_steps(plan, pe), 0
    for run in runs:
        called = any(isinstance(piece, Part) and not piece.chained for piece in run)
        yield begin if called else tuple(likes[begin : begin + len(run)])
        begin += len(run)


def _pieces(steps: Sequence[Step], parts: Sequence[Part]) -> Iterator[Piece]:
    following = iter(parts)
    for step in steps:
        yield next(following) if isinstance(step, Compute) else step


def _runs(
    pieces: Iterator[Piece], apart: Callable[[int], bool] = lambda message: False, firsts: Collection[int] = ()
) -> Iterator[list[Piece]]:
    """Group pieces into runs, each of `firsts` in a new one. Messages that are `apart` share no run with others."""
    run: list[Piece] = []
    for number, piece in enumerate(pieces):
        if run and (number in firsts or not _together(run[-1], piece, apart)):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _together(first: Piece, second: Piece, apart: Callable[[int], bool]) -> bool:
    if isinstance(first, Part) and isinstance(second, Part):
        alike = first.engine is second.engine and first.submitted == second.submitted
        return first.chained and second.chained and alike
    if isinstance(first, Send) and isinstance(second, Send):
        return apart(first.message) == apart(second.message)
    return False


def _records(runs: Sequence[Sequence[Piece]], descriptors: Descriptors) -> Iterator[Record]:
    for run in runs:
        parts = [piece for piece in run if isinstance(piece, Part) and piece.chained]
        sends = [piece.message for piece in run if isinstance(piece, Send)]
        yield from chain_records(parts) if parts else descriptors.chain(sends)


def _with_purposes(
    runs: Sequence[Sequence[Piece]], descriptors: Descriptors, parts: Sequence[Part], purposes: Mapping[int, str]
) -> Iterator[FrameStep]:
    """The steps of the frame. `purposes`: the contents of messages, by the number of the plan's step."""
    begin, waits = 0, {part.engine.name: part.engine.abilities.wait or "" for part in parts}
    for run in runs:
        found = dict.fromkeys(purposes[i] for i in range(begin, begin + len(run)) if i in purposes)
        yield _step(run, descriptors, waits, "; ".join(found))
        begin += len(run)


def _step(run: Sequence[Piece], descriptors: Descriptors, waits: Mapping[str, str], purpose: str) -> FrameStep:
    first = run[0]
    if isinstance(first, Wait):
        return WaitStep(first.flag, first.count, purpose)
    if isinstance(first, Join):
        return JoinStep(waits[first.engine])
    if isinstance(first, Restore):
        return RestoreStep(STATES, len(first.buffers))
    if isinstance(first, Send):
        return SendStep(descriptors.first(first.message), purpose)
    if not first.chained:
        return kernel_step(first)
    form = first.engine.commands
    assert form is not None
    layers = tuple((part.layer, tuple(commands_of(part))) for part in run if isinstance(part, Part))
    return ChainStep(form, layers, first.submitted)


def _routines(parts: Sequence[Part]) -> tuple[Routine, ...]:
    """Each routine once. Tiles share routines of the same name."""
    codes = (part.lowered.code for part in parts)
    calls = (call for code in codes if isinstance(code, Routines) for call in code.calls)
    return tuple({call.routine.name: call.routine for call in calls}.values())


def _headers(pe: PePlan, parts: Sequence[Part]) -> tuple[str, ...]:
    found = {part.engine.commands.header for part in parts if part.engine.commands}
    found |= {NOC_HEADER} if any(isinstance(step, Send | Wait) for step in pe.steps) else set()
    return tuple(sorted(found))


def _wrappers(parts: Sequence[Part]) -> tuple[str, ...]:
    calls = [p for p in parts if isinstance(p.lowered.code, Call) and p.engine.name != CORE]
    waits = [f"int32_t {wait}(void);" for wait in dict.fromkeys(p.engine.abilities.wait for p in calls) if wait]
    return (*dict.fromkeys(part.prototype for part in calls if part.prototype), *waits)
