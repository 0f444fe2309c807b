"""The step from programs to the plan: offsets, memory, roles."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from npukit.accel.interface import Cost
from npukit.board.board import Board
from npukit.net.arrangement import Arrangement
from npukit.net.net import CORE
from npukit.plan.emit.emitter import Emitter
from npukit.plan.emit.messages import Traffic
from npukit.plan.emit.pe_program import Block, Held, Program, use_of
from npukit.plan.emit.regions import Ends, Region, regions_of
from npukit.plan.emit.replay import layer_places, likes_of, rows_of, stretches
from npukit.plan.emit.replicas import with_uses_of_all
from npukit.plan.ir.assignment import Assignment, useful
from npukit.plan.ir.names import in_order
from npukit.plan.ir.plan import Buffer, Compute, Join, MemoryUse, Orders, PePlan, Plan, Send, Step
from npukit.plan.ir.replicas import with_replicas
from npukit.plan.predict.memory import (
    CODE_OF_STATES,
    STACK_BYTES,
    WORKER_STACK_BYTES,
    Lifetime,
    aligned,
    code_bytes,
    code_bytes_with_table,
    control_bytes,
    extent,
    handed_on,
    in_turn,
    is_table,
    is_worker,
    joined,
    memory_use,
    missing_bytes,
    pack,
    rows_of_signal,
    table_bytes,
)
from npukit.plan.tensors.graph import Graph, reshaped_box
from npukit.plan.tensors.problem import Problem


def emit_plan(problem: Problem, assignment: Assignment, objective: str) -> Plan:
    """The plan of an assignment, one frame at a time, without its predicted cycles.

    It may not fit: see the PEs' memory. Where PEs need their memory sooner, they wait until what they sent has left; so
    they do where they keep states, which are overwritten in their places.
    """
    plan = _emitted(problem, assignment, objective, patient=not problem.net.states)
    return _emitted(problem, assignment, objective, patient=False) if missing_bytes(problem.board, plan) else plan


def _emitted(problem: Problem, assignment: Assignment, objective: str, *, patient: bool) -> Plan:
    root = problem.board.root_pe
    used, ends = useful(problem.graph, assignment), Ends(root, root)
    emitter = Emitter(problem, {0: used}, {0: regions_of(problem.graph, used, ends, 0)}, ends, patient=patient)
    emitter.emit_frame(0)
    emitter.end()
    problem.work.done += emitter.traffic.size
    return finished(problem.graph, problem.board, emitter.traffic, objective)


def finished(graph: Graph, board: Board, traffic: Traffic, objective: str, frames: int = 1) -> Plan:
    """The plan of emitted programs, the root's first: it knows the inputs and outputs of every frame."""
    alike, known = traffic.alike, frames * (len(graph.net.inputs) + len(graph.net.outputs))
    programs = [with_uses_of_all(program, alike) for program in traffic.programs.values()]
    pe_count = len(programs) + alike.more_pes
    roles: dict[tuple[object, ...], int] = {}
    pes, extents = [], []
    for program in programs:
        table = is_table(len(program.steps), pe_count)
        buffers, activations = _place(graph, program, traffic.frames if table else None)
        planned = PePlan(program.pe, 0, tuple(program.steps), tuple(buffers), MemoryUse(0, 0, 0, 0, 0))
        role = roles.setdefault(_code_of_program(planned, table), len(roles))
        pes.append(replace(planned, role=role))
        extents.append(activations)
    plan = Plan(graph.net.name, board.name, objective, tuple(pes), tuple(traffic.messages))
    every = zip(programs, pes, extents, [known, *[0] * (len(pes) - 1)], strict=True)
    fitted = tuple(_fitted(board, plan, pe, program, pe_count, *sizes) for program, pe, *sizes in every)
    return with_replicas(replace(plan, pes=fitted), alike.places)


def _fitted(
    board: Board, plan: Plan, pe: PePlan, program: Program, pe_count: int, activations: int, tensors: int
) -> PePlan:
    """The PE's plan with the memory of its program, one of `pe_count`, of which the host knows `tensors`."""
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
    memory = memory_use(board, constants, control_bytes(layers) + activations, code, stack)
    return replace(pe, memory=memory, orders=orders)


def _orders_with_table(plan: Plan, pe: PePlan, program: Program) -> Orders:
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
    words = {piece: _patched_words(pe, steps) for piece, steps in pieces.items()}
    patches = {step: words[program.pieces[step]] for step in alone}
    signals = {step: rows_of_signal(pes) for step, pes in program.signals.items()}
    rows = [sum(signals.get(step, 1) + patches.get(step, 0) for step in unit) for unit in units]
    lines = rows_of(stretches(alike, rows), rows)
    chained = {step: piece[0] for step, piece in program.pieces.items() if step not in alone}
    steps = [step for unit in written for step in unit]
    commands = sum({**program.commands, **chained}.get(step, 0) for step in steps)
    descriptors = sum(program.descriptors.get(step, 0) for step in steps)
    table = table_bytes(lines, len(pe.tiles), len(set(layer_places(plan, pe))))
    return Orders(commands + sum(command for command, *_ in pieces), descriptors, table)


def _patched_words(pe: PePlan, steps: Sequence[int]) -> int:
    """The number of words that differ in the command of these pieces: addresses of its operands and constants.

    Constants are weights and parameters, and parameters of each input behind the first.
    """
    pieces = [step for step in (pe.steps[place] for place in steps) if isinstance(step, Compute)]
    offsets = {buffer.name: buffer.offset for buffer in pe.buffers}
    views = [[(view.box, offsets[view.buffer]) for view in (piece.output, *piece.inputs)] for piece in pieces]
    constants = {piece.constants and offsets[piece.constants] for piece in pieces}
    operands = sum(len(set(same)) > 1 for same in zip(*views, strict=True))
    return operands + (len(views[0]) if len(constants) > 1 else 0)


def _units(steps: Sequence[Step], program: Program) -> Iterator[range]:
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


def _place(graph: Graph, program: Program, frames: int | None) -> tuple[list[Buffer], int]:
    """Every buffer of a PE, and the bytes of all of them; with the frames of a micro-batch, every micro-batch's in the
    same place."""
    needs = _BufferNeeds()
    scratch: list[tuple[Held, Lifetime]] = []
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        needs.note(compute, cost)
        if compute.scratch:
            scratch.append((Block(compute.scratch, cost.scratch_bytes), _while_it_runs(program, step, cost)))
    used = ((held, Lifetime(needs.bytes(graph, held), use.first, use.last)) for held, use in program.uses.items())
    wanted = [*used, *scratch]
    lifetimes = [life for _, life in wanted]
    kept = _kept(program, wanted)
    offsets = _packed_in_waves(wanted, kept, frames)
    shares = {i: o for i, o in _shares(graph, program, wanted).items() if i not in kept and o not in kept.values()}
    if shares:
        shared = _packed_in_waves(wanted, {**shares, **kept}, frames)
        offsets = min(offsets, shared, key=lambda each: extent(lifetimes, each))
    buffers: list[Buffer] = []
    for (held, life), offset in zip(wanted, offsets, strict=True):
        shown = [_raw(held, life, offset)] if isinstance(held, Block) else _shown(graph, held, life, offset)
        buffers += [replace(buffer, arrangement=needs.arrangements.get(buffer.name)) for buffer in shown]
    return in_order(buffers), extent(lifetimes, offsets)


def _packed_in_waves(
    wanted: Sequence[tuple[Held, Lifetime]], shares: Mapping[int, int], frames: int | None
) -> tuple[int, ...]:
    """Offsets: those that share are in one place; with the frames of a micro-batch, things of the same use in the same
    place in every micro-batch, if no two are there at once."""
    units = handed_on(len(wanted), shares)
    lives = [joined([wanted[index][1] for index in unit]) for unit in units]
    used: dict[object, list[int]] = {}
    for number, unit in enumerate(units):
        use = tuple(use_of(wanted[index][0], frames) for index in unit) if frames else number
        used.setdefault(use, []).append(number)
    homes: list[tuple[Lifetime, list[int]]] = []
    for same in used.values():
        together = in_turn([lives[number] for number in same])
        homes += [(together, same)] if together else [(lives[number], [number]) for number in same]
    offsets = [0] * len(wanted)
    for offset, (_, same) in zip(_packed(tuple(life for life, _ in homes)), homes, strict=True):
        for index in (index for number in same for index in units[number]):
            offsets[index] = offset
    return tuple(offsets)


@lru_cache(maxsize=1024)
def _packed(lifetimes: tuple[Lifetime, ...]) -> tuple[int, ...]:
    """PEs that do the same on other frames have the same lifetimes."""
    return pack(lifetimes)


def _kept(program: Program, wanted: Sequence[tuple[Held, Lifetime]]) -> dict[int, int]:
    """The buffers of states, each with that of what becomes of it, which has the same place."""
    indices = {held: index for index, (held, _) in enumerate(wanted)}
    found = {indices[state]: indices[made] for state, made in program.kept.items()}
    assert all(wanted[i][1].last < wanted[o][1].first for i, o in found.items()), "a state is written while it is read"
    return found


def _shares(graph: Graph, program: Program, wanted: Sequence[tuple[Held, Lifetime]]) -> dict[int, int]:
    """The buffers that an op reads last, each with the one that it may write in the same place."""
    indices = {held: index for index, (held, _) in enumerate(wanted)}
    pairs = [(indices[source], indices[target]) for source, target in program.upon.items()]
    found = {i: o for i, o in pairs if wanted[i][1].bytes == wanted[o][1].bytes and _ends_first(wanted, i, o)}
    named: dict[str, int] = {}
    for held in indices:
        if isinstance(held, Region):
            named |= {held.named(name): indices[held] for name in (held.tensor, *graph.views(held.tensor))}
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        output = named[compute.output.buffer]
        for i in (named[compute.inputs[i].buffer] for i in cost.may_overwrite):
            if wanted[i][1].last == step == wanted[output][1].first and output not in found.values():
                found.setdefault(i, output)
    return found


def _ends_first(wanted: Sequence[tuple[Held, Lifetime]], one: int, other: int) -> bool:
    return wanted[one][1].first < wanted[other][1].first and wanted[one][1].last <= wanted[other][1].last


def _while_it_runs(program: Program, step: int, cost: Cost) -> Lifetime:
    return Lifetime(cost.scratch_bytes, step, program.scratch_until.get(step, step))


class _BufferNeeds:
    """Needs of engines in buffers, by name: an arrangement of what they write, room behind what they read."""

    def __init__(self) -> None:
        self.arrangements: dict[str, Arrangement] = {}
        self._room: dict[str, int] = {}

    def note(self, step: Compute, cost: Cost) -> None:
        if cost.arrangement:
            self.arrangements[step.output.buffer] = cost.arrangement
        for view in step.inputs:
            self._room[view.buffer] = max(self._room.get(view.buffer, 0), cost.reads_beyond)

    def bytes(self, graph: Graph, held: Held) -> int:
        if isinstance(held, Block):
            return held.bytes
        arrangement = self.arrangements.get(held.name)
        size = arrangement.bytes if arrangement else held.box.elements * graph.element_bytes(held.tensor)
        names = (held.tensor, *graph.views(held.tensor))
        return size + max(self._room.get(held.named(name), 0) for name in names)


def _raw(block: Block, life: Lifetime, offset: int) -> Buffer:
    """Memory that is no tensor."""
    return Buffer(block.name, "", block.box, life.bytes, offset, life.first, life.last)


def _shown(graph: Graph, region: Region, life: Lifetime, offset: int) -> Iterator[Buffer]:
    """A region as a buffer, and its reshapes on the same bytes."""
    shape = graph.shape(region.tensor)
    for name in (region.tensor, *graph.views(region.tensor)):
        box = reshaped_box(region.box, shape, graph.shape(name))
        if box.elements == region.box.elements:
            yield Buffer(region.named(name), name, box, life.bytes, offset, life.first, life.last)


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
