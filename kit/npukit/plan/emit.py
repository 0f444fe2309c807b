"""From programs to the plan: offsets, memory, roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from npukit.accel.interface import Cost
from npukit.board.board import Board
from npukit.net.arrangement import Arrangement
from npukit.plan.assignment import Assignment, useful
from npukit.plan.graph import Graph, reshaped_box
from npukit.plan.memory import (
    STACK_BYTES,
    WORKER_STACK_BYTES,
    Lifetime,
    aligned,
    code_bytes,
    code_bytes_with_table,
    command_bytes_of_pieces,
    control_bytes,
    extent,
    is_table,
    memory_use,
    pack_sharing,
    table_bytes,
)
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import Buffer, Compute, Join, MemoryUse, PePlan, Plan, Step
from npukit.plan.program import Block, Held, Program
from npukit.plan.programs import Emitter, Engines
from npukit.plan.regions import Ends, Region
from npukit.plan.splits import CORE
from npukit.plan.traffic import Traffic


def emit_plan(graph: Graph, board: Board, engines: Engines, assignment: Assignment, objective: str) -> Plan:
    """The plan of an assignment, one frame at a time, without its predicted cycles.

    It may not fit: see the PEs' memory.
    """
    root = pes_in_order(board)[0]
    emitter = Emitter(graph, board, engines, [useful(graph, assignment)], Ends(root, root))
    emitter.emit_frame(0)
    emitter.end()
    return finished(graph, board, emitter.traffic, objective)


def finished(graph: Graph, board: Board, traffic: Traffic, objective: str, frames: int = 1) -> Plan:
    """The plan of emitted programs, the root's first: it knows the inputs and outputs of every frame."""
    roles: dict[tuple[object, ...], int] = {}
    pes = []
    for program in traffic.programs.values():
        buffers, activations = _place(graph, program)
        table = is_table(len(program.steps), len(traffic.programs))
        role = roles.setdefault(_code_of_program(program, table), len(roles))
        tensors = frames * (len(graph.net.inputs) + len(graph.net.outputs)) if not pes else 0
        memory = _memory(board, program, activations, tensors, table)
        pes.append(PePlan(program.pe, role, tuple(program.steps), tuple(buffers), memory))
    return Plan(graph.net.name, board.name, objective, tuple(pes), tuple(traffic.messages))


def _memory(board: Board, program: Program, activations: int, tensors: int, table: bool) -> MemoryUse:
    """Of a program of which the host knows so many tensors."""
    layers, rest = len(program.costs), len(program.steps) - len(program.costs)
    constants = sum(program.constants.values()) + program.command_bytes + program.descriptor_bytes
    if table:
        kernels = sum(isinstance(step, Compute) and step.engine == CORE for step in program.steps)
        code = code_bytes_with_table(tensors, kernels)
        stack = STACK_BYTES if tensors or kernels else WORKER_STACK_BYTES
        constants += table_bytes(len(program.steps) + program.signals, layers)
        constants += sum(command_bytes_of_pieces(key[0], len(steps)) for key, steps in program.pieces.items())
    else:
        code, stack = code_bytes(layers, rest, tensors), STACK_BYTES
        constants += program.signal_bytes + sum(key[0] * len(steps) for key, steps in program.pieces.items())
    return memory_use(board, aligned(constants), control_bytes(layers) + activations, code, stack)


def _place(graph: Graph, program: Program) -> tuple[list[Buffer], int]:
    """Every buffer of a PE, and the bytes of all of them."""
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
    offsets = _packed(tuple(lifetimes), tuple(_shares(graph, program, wanted)))
    buffers: list[Buffer] = []
    for (held, life), offset in zip(wanted, offsets, strict=True):
        shown = [_raw(held, life, offset)] if isinstance(held, Block) else _shown(graph, held, life, offset)
        buffers += [replace(buffer, arrangement=needs.arrangements.get(buffer.name)) for buffer in shown]
    return buffers, extent(lifetimes, offsets)


@lru_cache(maxsize=1024)
def _packed(lifetimes: tuple[Lifetime, ...], shares: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """PEs that do the same on other frames have the same lifetimes."""
    return pack_sharing(lifetimes, shares)


def _shares(graph: Graph, program: Program, wanted: Sequence[tuple[Held, Lifetime]]) -> list[tuple[int, int]]:
    """Of the buffers those an op reads last, each with the one it may write in the same place."""
    named: dict[str, int] = {}
    for index, (held, _) in enumerate(wanted):
        if isinstance(held, Region):
            named |= {held.named(name): index for name in (held.tensor, *graph.views(held.tensor))}
    found = []
    for step, cost in program.costs:
        compute = program.steps[step]
        assert isinstance(compute, Compute)
        output = named[compute.output.buffer]
        inputs = [named[compute.inputs[i].buffer] for i in cost.in_place]
        found += [(i, output) for i in inputs if wanted[i][1].last == step == wanted[output][1].first]
    return found


def _while_it_runs(program: Program, step: int, cost: Cost) -> Lifetime:
    return Lifetime(cost.scratch_bytes, step, program.scratch_until.get(step, step))


class _BufferNeeds:
    """What engines want of buffers, by name: an arrangement of what they write, room behind what they read."""

    def __init__(self) -> None:
        self.arrangements: dict[str, Arrangement] = {}
        self._room: dict[str, int] = {}

    def note(self, step: Compute, cost: Cost) -> None:
        if cost.arrangement:
            self.arrangements[step.output.buffer] = cost.arrangement
        for view in step.inputs:
            self._room[view.buffer] = max(self._room.get(view.buffer, 0), cost.over_read)

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


def _code_of_program(program: Program, table: bool) -> tuple[object, ...]:
    """What must be equal for programs to be one: of a table the number of layers and what the core computes."""
    steps = [step for step in program.steps if not table or (isinstance(step, Compute) and step.engine == "cpu")]
    return len(program.costs), table, *(_code_of(step) for step in steps)


def _code_of(step: Step) -> Sequence[object]:
    """What of a step is code: kinds and order. Boxes, addresses and flags are data, but for the core's own kernels."""
    if isinstance(step, Join):
        return ("Join", step.engine)
    if not isinstance(step, Compute):
        return (type(step).__name__,)
    boxes = (step.output.box.shape, *(view.box.shape for view in step.inputs)) if step.engine == "cpu" else ()
    return (step.op, step.submitted, *boxes)
