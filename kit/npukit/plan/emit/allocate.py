"""The step from programs to the plan: offsets, memory, roles."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import CORE
from npukit.plan.emit.banks import Banks
from npukit.plan.emit.emitter import Emitter
from npukit.plan.emit.messages import Traffic
from npukit.plan.emit.pe_program import PeProgram
from npukit.plan.emit.place import placed
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.emit.replay import layer_places, likes_of, rows_of, stretches
from npukit.plan.emit.replicas import with_uses_of_all
from npukit.plan.ir.assignment import Assignment, useful
from npukit.plan.ir.names import in_order
from npukit.plan.ir.plan import PAGES, Buffer, Compute, Join, MemoryUse, Orders, PePlan, Plan, Send, Step
from npukit.plan.ir.replicas import with_replicas
from npukit.plan.predict.memory import (
    CODE_OF_STATES,
    PAGE_BYTES,
    ROWS_OF_A_PAGE,
    STACK_BYTES,
    STEP_BYTES,
    WORKER_STACK_BYTES,
    aligned,
    code_bytes,
    code_bytes_with_table,
    control_bytes,
    in_banks,
    is_table,
    is_worker,
    missing_bytes,
    rows_of_signal,
    shortfall,
    table_bytes,
)
from npukit.plan.tensors.graph import Graph
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
    return finished(problem.graph, problem.board, emitter.traffic, objective)


def finished(
    graph: Graph, board: Board, traffic: Traffic, objective: str, frames: int = 1, *, in_pages: bool = False
) -> Plan:
    """The plan of emitted programs, the root's first: it knows the inputs and outputs of every frame.

    Orders of PEs that lack memory may be fetched from DRAM `in_pages`.
    """
    alike, known = traffic.alike, frames * (len(graph.net.inputs) + len(graph.net.outputs))
    programs = [with_uses_of_all(program, alike) for program in traffic.programs.values()]
    pe_count = len(programs) + alike.more_pes
    numbers: dict[tuple[object, ...], int] = {}
    pes, roles, extents = [], [], list[Sequence[int]]()
    for program in programs:
        table = is_table(len(program.steps), pe_count)
        banks = Banks.of(board.seen_by(program.pe), program)
        places = placed(graph, program, banks, traffic.frames if table else None)
        steps = tuple(_waiting(program.steps, places.waits) if places.waits else program.steps)
        pes.append(PePlan(program.pe, 0, steps, tuple(places.buffers), MemoryUse(0, 0, 0, 0, 0)))
        roles.append(numbers.setdefault(_code_of_program(pes[-1], table), len(numbers)))
        extents.append(places.extents)
    plan = Plan(graph.net.name, board.name, objective, tuple(pes), tuple(traffic.messages))
    tensors = [known, *[0] * (len(pes) - 1)]
    every = zip(programs, pes, roles, extents, tensors, strict=True)
    fitted = [_fitted(board, plan, pe, p, pe_count, role, own, ends) for p, pe, role, own, ends in every]
    if in_pages:
        each = zip(programs, fitted, strict=True)
        fitted = [_with_pages(board, plan, pe, program, pe_count) for program, pe in each]
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
) -> PePlan:
    """The PE's plan with the role and memory of its program, one of `pe_count`, of which the host knows `tensors`."""
    layers, rest = len(pe.tiles), len(program.steps) - len(program.costs)
    kernels = sum(isinstance(step, Compute) and step.engine == CORE for step in program.steps)
    stack = WORKER_STACK_BYTES if is_worker(tensors, kernels, pe_count) else STACK_BYTES
    if is_table(len(program.steps), pe_count):
        code = code_bytes_with_table(tensors, kernels)
        orders = _orders_with_table(plan, pe, program)
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


def _with_pages(board: Board, plan: Plan, pe: PePlan, program: PeProgram, pe_count: int) -> PePlan:
    """The PE with its orders in DRAM, if it lacks memory and its program is a table of one accelerator's chains."""
    lacks, engines = shortfall(board.seen_by(pe.pe), pe.memory), {step.engine for step in pe.computes()} - {CORE}
    if not lacks or pe.memory.banks or len(engines) > 1 or not is_table(len(pe.steps), pe_count):
        return pe
    sizes = [_order_bytes(program, place) for place in range(len(pe.steps))]
    size = max(PAGE_BYTES, aligned(max(_indivisible(pe.steps, sizes)) + ROWS_OF_A_PAGE * STEP_BYTES))
    listed = table_bytes(ROWS_OF_A_PAGE, len(pe.tiles), len(set(layer_places(plan, pe))))
    pages = 2 * sum(sizes) // (size - ROWS_OF_A_PAGE * STEP_BYTES) + 1
    orders = Orders(table=listed, in_pages=pages * size)
    use, room = pe.memory, 2 * size
    last = max((aligned(each.offset + each.bytes) for each in pe.buffers), default=0)
    buffer = Buffer(PAGES, "", Box.whole((room,)), room, last, 0, len(pe.steps) - 1)
    constants = aligned(use.constants - pe.orders.bytes + orders.bytes)
    memory = in_banks(board.seen_by(pe.pe), replace(use, constants=constants), (use.activations + room,))
    return replace(pe, memory=memory, orders=orders, buffers=tuple(in_order([*pe.buffers, buffer])))


def _order_bytes(program: PeProgram, step: int) -> int:
    """The most bytes of a step's orders: rows, commands, descriptors."""
    command = program.commands.get(step, 0) + program.pieces.get(step, (0,))[0]
    return STEP_BYTES * rows_of_signal(program.signals.get(step, 1)) + command + program.descriptors.get(step, 0)


def _indivisible(steps: Sequence[Step], sizes: Sequence[int]) -> Iterator[int]:
    """The bytes of what must be in one page: a step, or all from the start of an accelerator's work to its end."""
    size, running = 0, set[str]()
    for step, own in zip(steps, sizes, strict=True):
        size += own
        if isinstance(step, Compute) and step.submitted:
            running.add(step.engine)
        if isinstance(step, Join):
            running.discard(step.engine)
        if not running:
            yield size
            size = 0


def _orders_with_table(plan: Plan, pe: PePlan, program: PeProgram) -> Orders:
    """The orders with the table, and commands and descriptors that are alike but once."""
    numbers: dict[Hashable, int] = {}
    likes = [numbers.setdefault(like, len(numbers)) for like in likes_of(plan, pe)]
    units = list(_units(pe.steps, program))
    alike = [tuple(likes[step] for step in unit) for unit in units]
    written = dict(zip(reversed(alike), reversed(units), strict=True)).values()
    alone = {unit.start for unit in units if len(unit) == 1} & program.pieces.keys()
    pieces: dict[tuple[int, str, tuple[int, ...]], list[int]] = {}
    for unit in written:
        if unit.start in alone:
            pieces.setdefault(program.pieces[unit.start], []).append(unit.start)
    offsets = {buffer.name: buffer.offset for buffer in pe.buffers}
    words = {piece: _patched_words(pe, offsets, steps) for piece, steps in pieces.items()}
    patches = {step: words[program.pieces[step]] for step in alone}
    signals = {step: rows_of_signal(pes) for step, pes in program.signals.items()}
    rows = [sum(signals.get(step, 1) + patches.get(step, 0) for step in unit) for unit in units]
    lines = rows_of(stretches(alike, rows), rows)
    written_once = program.commands | {step: piece[0] for step, piece in program.pieces.items() if step not in alone}
    steps = [step for unit in written for step in unit]
    commands = sum(written_once.get(step, 0) for step in steps)
    descriptors = sum(program.descriptors.get(step, 0) for step in steps)
    table = table_bytes(lines, len(pe.tiles), len(set(layer_places(plan, pe))))
    return Orders(commands + sum(command for command, *_ in pieces), descriptors, table)


def _patched_words(pe: PePlan, offsets: Mapping[str, int], steps: Sequence[int]) -> int:
    """The number of words that differ in the command of these pieces: addresses of its operands and constants.

    Constants are weights and parameters, and parameters of each input behind the first.
    """
    pieces = [step for step in (pe.steps[place] for place in steps) if isinstance(step, Compute)]
    views = [[(view.box, offsets[view.buffer]) for view in (piece.output, *piece.inputs)] for piece in pieces]
    constants = {piece.constants and offsets[piece.constants] for piece in pieces}
    operands = sum(len(set(same)) > 1 for same in zip(*views, strict=True))
    return operands + (len(views[0]) if len(constants) > 1 else 0)


def _units(steps: Sequence[Step], program: PeProgram) -> Iterator[range]:
    """Runs of steps that are started together: chains of commands, of messages, of signals."""
    kinds = [_kind_of_unit(step, place in program.signals) or place for place, step in enumerate(steps)]
    places = groupby(range(len(steps)), key=kinds.__getitem__)
    for _, same in places:
        first, *others = same
        yield range(first, first + 1 + len(others))


def _kind_of_unit(step: Step, is_signal: bool) -> str:
    """The kind of a step: neighbours of the same kind are one unit."""
    if isinstance(step, Send):
        return "signals" if is_signal else "messages"
    if not isinstance(step, Compute) or step.engine == CORE:
        return ""
    return f"{step.engine}, {step.submitted}"


def _code_of_program(pe: PePlan, table: bool) -> tuple[object, ...]:
    """The key that is equal for programs that are one: of a table the number of layers and what the core computes."""
    steps = [step for step in pe.steps if not table or (isinstance(step, Compute) and step.engine == CORE)]
    return len(pe.tiles), table, *(_code_of(step) for step in steps)


def _code_of(step: Step) -> Sequence[object]:
    """The code of a step: kinds and order. Boxes, addresses and flags are data, but for the core's own kernels."""
    if isinstance(step, Join):
        return ("Join", step.engine)
    if not isinstance(step, Compute):
        return (type(step).__name__,)
    boxes = (step.output.box.shape, *(view.box.shape for view in step.inputs)) if step.engine == CORE else ()
    return (step.op, step.submitted, *boxes)
