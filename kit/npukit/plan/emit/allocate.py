"""The step from programs to the plan: offsets, memory, roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
from npukit.plan.predict.kernel_code import with_code_of_kernels
from npukit.plan.predict.memory import (
    CODE_OF_STATES,
    MANY_PROGRAMS,
    STACK_BYTES,
    WORKER_STACK_BYTES,
    aligned,
    code_bytes,
    code_bytes_with_table,
    control_bytes,
    in_banks,
    is_table,
    is_worker,
    missing_bytes,
    shortfall,
)
from npukit.plan.tensors.problem import Problem


def emit_plan(problem: Problem, assignment: Assignment, objective: str) -> Plan:
    """The plan of an assignment, one frame at a time, without its predicted cycles.

    It may not fit: see the PEs' memory. Where PEs need their memory sooner, they wait until what they sent has left.
    """
    plan = _emitted(problem, assignment, objective, patient=True)
    too_large = missing_bytes(problem.board, plan)
    return _emitted(problem, assignment, objective, patient=False) if too_large else plan


def _emitted(problem: Problem, assignment: Assignment, objective: str, *, patient: bool) -> Plan:
    root = problem.board.root_pe
    used, ends = useful(problem.graph, assignment), Ends(root, root)
    emitter = Emitter(problem, {0: used}, {0: regions_of(problem.graph, used, ends, 0)}, ends, patient=patient)
    emitter.emit_frame(0)
    emitter.end()
    problem.work.done += emitter.traffic.size
    return finished(problem, emitter.traffic, objective)


def finished(problem: Problem, traffic: Traffic, objective: str, frames: int = 1, *, in_pages: bool = False) -> Plan:
    """The plan of emitted programs, the root's first: it knows the inputs and outputs of every frame.

    Orders of PEs that lack memory, the code of the core's kernels counted, may be fetched from DRAM `in_pages`.
    """
    graph, board = problem.graph, problem.board
    alike, known = traffic.alike, frames * (len(graph.net.inputs) + len(graph.net.outputs))
    programs = [with_uses_of_all(program, alike) for program in traffic.programs.values()]
    pe_count = len(programs) + alike.more_pes
    numbers: dict[tuple[object, ...], int] = {}
    pes, roles, extents = [], [], list[Sequence[int]]()
    tables = _tables(programs, pe_count)
    for program, table in zip(programs, tables, strict=True):
        banks = Banks.of(board.seen_by(program.pe), program)
        places = placed(graph, program, banks, traffic.frames if table else None)
        steps = tuple(_waiting(program.steps, places.waits) if places.waits else program.steps)
        pes.append(PePlan(program.pe, 0, steps, tuple(places.buffers), MemoryUse(0, 0, 0, 0, 0)))
        roles.append(numbers.setdefault(_code_of_program(steps, table), len(numbers)))
        extents.append(places.extents)
    plan = Plan(graph.net.name, board.name, objective, tuple(pes), tuple(traffic.messages))
    tensors = [known, *[0] * (len(pes) - 1)]
    every = zip(programs, pes, roles, extents, tensors, tables, strict=True)
    fitted = [_fitted(board, plan, pe, p, pe_count, role, own, ends, table) for p, pe, role, own, ends, table in every]
    if in_pages:
        each = zip(programs, fitted, strict=True)
        fitted = [_with_pages(problem, plan, pe, program) for program, pe in each]
    return with_replicas(replace(plan, pes=tuple(fitted)), alike.places)


def _waiting(steps: Sequence[Step], waits: Mapping[int, int]) -> Iterator[Step]:
    """The steps with the cycles that they wait for activations."""
    for number, step in enumerate(steps):
        waited = waits.get(number, 0)
        yield replace(step, cycles=step.cycles + waited) if waited and isinstance(step, Compute) else step


def _fitted(
    board: Board,
    plan: Plan,
    pe: PePlan,
    program: PeProgram,
    pe_count: int,
    role: int,
    extents: Sequence[int],
    tensors: int,
    table: bool,
) -> PePlan:
    """The PE's plan with the role and memory of its program, one of `pe_count`, of which the host knows `tensors`."""
    layers, rest = len(pe.tiles), len(program.steps) - len(program.costs)
    kernels = sum(isinstance(step, Compute) and step.engine == CORE for step in program.steps)
    stack = WORKER_STACK_BYTES if is_worker(tensors, kernels, pe_count) else STACK_BYTES
    if table:
        code = code_bytes_with_table(tensors, kernels)
        orders = TableOrders(plan, pe, program).all
    else:
        code = code_bytes(layers, rest, tensors, kernels, pe_count)
        pieces = sum(command for command, *_ in program.pieces.values())
        descriptors = program.signal_bytes + sum(program.descriptors.values())
        orders = Orders(sum(program.commands.values()) + pieces, descriptors)
    code += CODE_OF_STATES if program.kept else 0
    constants = aligned(sum(program.constants.values()) + orders.bytes)
    first, *others = extents
    use = MemoryUse(code, constants, 0, stack, 0)
    memory = in_banks(board.seen_by(pe.pe), use, (control_bytes(layers) + first, *others))
    return replace(pe, role=role, memory=memory, orders=orders)


def _with_pages(problem: Problem, plan: Plan, pe: PePlan, program: PeProgram) -> PePlan:
    """The PE with its last orders in DRAM, as many as it lacks room for, if its program is a table of one accelerator's
    chains. Kernels of its core have their code."""
    board, engines = problem.board.seen_by(pe.pe), {step.engine for step in pe.computes()} - {CORE}
    full = with_code_of_kernels(problem.net, problem.board, pe, problem.engines[CORE], plan.pes[0].pe)
    lacks, chip = max(shortfall(board, each.memory) for each in (pe, full)), board.mesh.pes.count
    away = pe.pe // chip != board.root_pe // chip
    if not lacks or away or pe.memory.banks or len(engines) > 1 or not pe.is_table:
        return pe
    listed = TableOrders(plan, pe, program)
    size = listed.page_size
    last = max((aligned(each.offset + each.bytes) for each in pe.buffers), default=0)
    buffer = Buffer(PAGES, "", Box.whole((2 * size,)), 2 * size, last, 0, len(pe.steps) - 1)
    orders = listed.in_pages(pe.orders.bytes - aligned(lacks) - 2 * size)
    constants = aligned(pe.memory.constants - pe.orders.bytes + orders.bytes)
    memory = in_banks(board, replace(pe.memory, constants=constants), (pe.memory.activations + 2 * size,))
    return replace(pe, memory=memory, orders=orders, buffers=tuple(in_order([*pe.buffers, buffer])))


def _tables(programs: Sequence[PeProgram], pe_count: int) -> list[bool]:
    """The answer for each program whether it is a table: long ones are, and all where they would be too many."""
    long = [is_table(len(program.steps), pe_count) for program in programs]
    different = {_code_of_program(program.steps, table) for program, table in zip(programs, long, strict=True)}
    return [True] * len(programs) if len(different) > MANY_PROGRAMS else long


def _code_of_program(steps: Sequence[Step], table: bool) -> tuple[object, ...]:
    """The key that is equal for programs that are one, as tables are that have room for each other."""
    return () if table else tuple(_code_of(step) for step in steps)


def _code_of(step: Step) -> Sequence[object]:
    """The code of a step: kinds and order. Boxes, addresses and flags are data, but for the core's own kernels."""
    if isinstance(step, Join):
        return ("Join", step.engine)
    if not isinstance(step, Compute):
        return (type(step).__name__,)
    boxes = (step.output.box.shape, *(view.box.shape for view in step.inputs)) if step.engine == CORE else ()
    return (step.op, step.submitted, *boxes)
