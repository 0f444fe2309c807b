"""Allocation: turns emitted programs into a plan with buffer offsets, memory use and roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import CORE
from npukit.plan.emit.banks import Banks
from npukit.plan.emit.emitter import Emitter
from npukit.plan.emit.messages import Traffic
from npukit.plan.emit.orders import TableOrders
from npukit.plan.emit.pe_program import PeProgram
from npukit.plan.emit.place import placed
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.emit.replicas import with_uses_of_all
from npukit.plan.ir.assignment import Assignment, useful
from npukit.plan.ir.names import in_order
from npukit.plan.ir.plan import PAGES, Buffer, Compute, Join, MemoryUse, Orders, PePlan, Plan, Step
from npukit.plan.ir.replicas import with_replicas
from npukit.plan.predict.kernels import with_code_of_kernels
from npukit.plan.predict.memory import (
    CODE_OF_STATES,
    MANY_PROGRAMS,
    aligned,
    control_bytes,
    in_banks,
    is_table,
    program_bytes,
    shortfall,
)
from npukit.plan.tensors.problem import Problem


def emit_frame(problem: Problem, assignment: Assignment, *, patient: bool) -> Plan:
    """The plan of an assignment, one frame at a time, without predicted cycles.

    The plan may exceed a PE's memory. `patient` PEs (`Emitter`) reserve the sources of messages longer. Others wait
    until their messages have left.
    """
    root = problem.board.root_pe
    used, ends = useful(problem.graph, assignment), Ends(root, root)
    emitter = Emitter(problem, {0: used}, {0: regions_of(problem.graph, used, ends, 0)}, ends, patient=patient)
    emitter.emit_frame(0)
    emitter.end()
    problem.work.done += emitter.traffic.size
    return finished(problem, emitter.traffic, "latency")


def finished(
    problem: Problem,
    traffic: Traffic,
    objective: str,
    frames: int = 1,
    *,
    in_pages: bool = False,
    low_memory: bool = False,
) -> Plan:
    """The plan of emitted programs. The root's program comes first and includes the inputs and outputs of every frame.

    `in_pages`: PEs short of memory, code of CPU kernels included, may fetch orders from DRAM if their programs are
    tables. `low_memory`: other programs may become tables as well, where a table lacks less.
    """
    graph, board, replicas = problem.graph, problem.board, traffic.replicas
    programs = [with_uses_of_all(program, replicas) for program in traffic.programs.values()]
    pe_count = len(programs) + replicas.more_pes
    pes, extents = [], list[Sequence[int]]()
    tables = _tables(programs, pe_count)
    for program, table in zip(programs, tables, strict=True):
        banks = Banks.of(board.seen_by(program.pe), program)
        buffers, used, waits = placed(graph, program, banks, traffic.frames if table else None)
        steps = list(program.steps)
        for index in waits:
            step = program.compute(index)
            steps[index] = replace(step, cycles=step.cycles + waits[index])
        pes.append(PePlan(program.pe, 0, tuple(steps), tuple(buffers), MemoryUse(0, 0, 0, 0, 0)))
        extents.append(used)
    plan = Plan(graph.net.name, board.name, objective, tuple(pes), tuple(traffic.messages))
    tensors = [frames * (len(graph.net.inputs) + len(graph.net.outputs)), *[0] * (len(pes) - 1)]
    each = zip(programs, pes, extents, tensors, strict=True)
    fits = [partial(_fitted, board, plan, pe, program, pe_count, *more) for program, pe, *more in each]
    fitted = [fit(table) for fit, table in zip(fits, tables, strict=True)]
    for number, (program, fit) in enumerate(zip(programs, fits, strict=True)):
        if in_pages and (low_memory or fitted[number].is_table):
            fitted[number] = _less_crowded(problem, plan, fitted[number], program, fit)
    roles: dict[tuple[object, ...], int] = {}
    numbers = [roles.setdefault(_code_of_program(pe.steps, pe.is_table), len(roles)) for pe in fitted]
    fitted = tuple(replace(pe, role=role) for pe, role in zip(fitted, numbers, strict=True))
    return with_replicas(replace(plan, pes=fitted), replicas.places)


def _fitted(
    board: Board,
    plan: Plan,
    pe: PePlan,
    program: PeProgram,
    pe_count: int,
    extents: Sequence[int],
    tensors: int,
    table: bool,
) -> PePlan:
    """The PE's plan with the memory use of the program. `pe_count`: number of programs. `tensors`: number of tensors on
    this PE accessible to the host."""
    layers, rest = len(pe.tiles), len(program.steps) - len(program.costs)
    kernels = sum(isinstance(step, Compute) and step.engine == CORE for step in program.steps)
    code, stack = program_bytes(pe_count, tiles=layers, messages=rest, tensors=tensors, kernels=kernels, table=table)
    if table:
        orders = TableOrders(plan, pe, program).all
    else:
        pieces = sum(command for command, *_ in program.pieces.values())
        descriptors = program.signal_bytes + sum(program.descriptors.values())
        orders = Orders(sum(program.commands.values()) + pieces, descriptors)
    code += CODE_OF_STATES if program.kept else 0
    constants = aligned(sum(program.constants.values()) + orders.bytes)
    use = MemoryUse(code, constants, 0, stack, 0)
    memory = in_banks(board.seen_by(pe.pe), use, (control_bytes(layers) + extents[0], *extents[1:]))
    return replace(pe, memory=memory, orders=orders)


def _less_crowded(
    problem: Problem, plan: Plan, pe: PePlan, program: PeProgram, fit: Callable[[bool], PePlan]
) -> PePlan:
    """The PE's plan. If memory is short, code of CPU kernels included, the variant with the fewest missing bytes: the
    program unchanged, as a table, or as a table with the last orders in DRAM. A table can contain the chains of a
    single accelerator only."""

    def lacks(pe: PePlan) -> int:
        board, core = problem.board.seen_by(pe.pe), problem.engines[CORE]
        full = with_code_of_kernels(problem.net, problem.board, pe, core, plan.pes[0].pe)
        return max(shortfall(board, each.memory) for each in (pe, full))

    if len({step.engine for step in pe.computes()} - {CORE}) > 1 or not lacks(pe):
        return pe
    table = pe if pe.is_table else fit(True)
    if not (lacking := lacks(table)):
        return table
    board = problem.board
    pages = board.is_on_roots_chip(pe.pe) and not table.memory.banks
    return min([_with_pages(board, plan, table, program, lacking)] * pages + [table, pe], key=lacks)


def _with_pages(board: Board, plan: Plan, pe: PePlan, program: PeProgram, lacks: int) -> PePlan:
    """The PE's plan, a table, with the last orders in DRAM: enough orders to free the `lacks` bytes."""
    listed = TableOrders(plan, pe, program)
    size = listed.page_size
    last = max((aligned(each.offset + each.bytes) for each in pe.buffers), default=0)
    buffer = Buffer(PAGES, "", Box.whole((2 * size,)), 2 * size, last, 0, len(pe.steps) - 1)
    orders = listed.in_pages(pe.orders.bytes - aligned(lacks) - 2 * size)
    constants = aligned(pe.memory.constants - pe.orders.bytes + orders.bytes)
    extents = (pe.memory.activations + 2 * size,)
    memory = in_banks(board.seen_by(pe.pe), replace(pe.memory, constants=constants), extents)
    return replace(pe, memory=memory, orders=orders, buffers=tuple(in_order([*pe.buffers, buffer])))


def _tables(programs: Sequence[PeProgram], pe_count: int) -> list[bool]:
    """True for each program that becomes a table: for long programs, or for all if too many programs differ."""
    long = [is_table(len(program.steps), pe_count) for program in programs]
    different = {_code_of_program(program.steps, table) for program, table in zip(programs, long, strict=True)}
    return [True] * len(programs) if len(different) > MANY_PROGRAMS else long


def _code_of_program(steps: Sequence[Step], table: bool) -> tuple[object, ...]:
    """The key of a program's code, equal for programs with the same code. All tables share one key, because tables with
    room for each other are one program."""
    return () if table else tuple(_code_of(step) for step in steps)


def _code_of(step: Step) -> tuple[object, ...]:
    """The key of a step's code: the kind, and the op or engine. Boxes, addresses and flags are data, except the boxes
    of CPU kernels."""
    match step:
        case Join(engine):
            return "Join", engine
        case Compute(engine=engine):
            boxes = (step.output.box.shape, *(view.box.shape for view in step.inputs)) if engine == CORE else ()
            return step.op, step.submitted, *boxes
        case _:
            return (type(step).__name__,)
