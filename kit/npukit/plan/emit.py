"""From programs to the plan: offsets, memory, roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.plan.assignment import Assignment, useful
from npukit.plan.graph import Graph, reshaped_box
from npukit.plan.memory import Lifetime, extent, memory_use, pack
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import Buffer, Compute, PePlan, Plan, Step
from npukit.plan.programs import Engines, Program, Programs
from npukit.plan.regions import Region
from npukit.plan.transfers import Transfer, copies_to

DESCRIPTOR_BYTES = 48
DESTINATION_BYTES = 8
"""Of the DMA's descriptors, and of each entry of a multicast's list."""


def emit_plan(graph: Graph, board: Board, engines: Engines, assignment: Assignment, objective: str) -> Plan:
    """The plan of an assignment, without its predicted cycles. It may not fit: see the PEs' memory."""
    flags = board.noc.flags if board.noc else 0
    programs = Programs(graph, engines, useful(graph, assignment), pes_in_order(board)[0], flags)
    programs.emit()
    messages = tuple(programs.messages)
    roles: dict[tuple[object, ...], int] = {}
    pes = []
    for program in programs.by_pe.values():
        buffers, activations = _place(graph, program)
        constants = sum(cost.constant_bytes for _, cost in program.costs) + _descriptors(graph, programs, program.pe)
        role = roles.setdefault(tuple(_code_of(step) for step in program.steps), len(roles))
        memory = memory_use(board, constants, activations)
        pes.append(PePlan(program.pe, role, tuple(program.steps), tuple(buffers), memory))
    return Plan(graph.net.name, board.name, objective, tuple(pes), messages)


def _place(graph: Graph, program: Program) -> tuple[list[Buffer], int]:
    """Every buffer of a PE, and the bytes of all of them."""
    wanted: list[tuple[Region | str, Lifetime]] = [
        (region, Lifetime(region.box.elements * graph.element_bytes(region.tensor), use.first, use.last))
        for region, use in program.uses.items()
    ]
    for step, cost in program.costs:
        compute = program.steps[step]
        if isinstance(compute, Compute) and compute.scratch:
            wanted.append((compute.scratch, Lifetime(cost.scratch_bytes, step, step)))
    lifetimes = [life for _, life in wanted]
    offsets = pack(lifetimes)
    buffers: list[Buffer] = []
    for (what, life), offset in zip(wanted, offsets, strict=True):
        buffers += [_scratch(what, life, offset)] if isinstance(what, str) else _shown(graph, what, life, offset)
    return buffers, extent(lifetimes, offsets)


def _scratch(name: str, life: Lifetime, offset: int) -> Buffer:
    """Scratch memory."""
    return Buffer(name, "", Box.whole((life.bytes,)), life.bytes, offset, life.first, life.last)


def _shown(graph: Graph, region: Region, life: Lifetime, offset: int) -> Iterator[Buffer]:
    """A region as a buffer, and its reshapes on the same bytes."""
    shape = graph.shape(region.tensor)
    for name in (region.tensor, *graph.views(region.tensor)):
        box = reshaped_box(region.box, shape, graph.shape(name))
        if box.elements == region.box.elements:
            yield Buffer(region.named(name), name, box, life.bytes, offset, life.first, life.last)


def _descriptors(graph: Graph, programs: Programs, pe: int) -> int:
    """Bytes of a PE's DMA descriptors."""
    return sum(_descriptor_bytes(graph, transfer) for transfer in programs.transfers if transfer.source.pe == pe)


def _descriptor_bytes(graph: Graph, transfer: Transfer) -> int:
    parts = copies_to(graph, transfer.box, transfer.source, transfer.destinations[0])
    landings = len(transfer.destinations)
    return len(parts) * (DESCRIPTOR_BYTES + (DESTINATION_BYTES * landings if landings > 1 else 0))


def _code_of(step: Step) -> Sequence[object]:
    """What of a step is code: kinds and order. Boxes, addresses and flags are data, but for the core's own kernels."""
    if not isinstance(step, Compute):
        return (type(step).__name__,)
    boxes = (step.output.box.shape, *(view.box.shape for view in step.inputs)) if step.engine == "cpu" else ()
    return (step.op, *boxes)
