"""The core's kernels in assembly: a problem with kernels, the kernel of each op in a plan, and the code of the kernels,
which the reserve for a program's code does not include."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from npukit.accel.core_kernels import NO_KERNELS, USUAL, CostPreference, core_kernels_alone
from npukit.accel.cpu import Cpu
from npukit.accel.engines import core_of
from npukit.accel.interface import Accelerator, Address, Operand, Tile
from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import CORE, Net
from npukit.net.ops import Reshape, TvmCode
from npukit.plan.ir.plan import PePlan, Plan, View
from npukit.plan.predict.memory import FIRMWARE_BYTES, WORKER_BYTES, with_code
from npukit.plan.tensors.problem import Problem

BY_TVM, BY_HAND = "plain C: made by TVM", "plain C: as it is given"
DIVIDED = "plain C: its kernel in assembly wants the whole op on one PE, and {} PEs share it"
CROWDED = "plain C: PEs have no room for the code and constants of kernels in assembly"


def with_kernels(problem: Problem, preference: CostPreference = USUAL) -> Problem:
    """The problem with kernels in assembly for ops computed whole by a PE, and for moves of bytes."""
    return problem.with_core(core_of(problem.board).with_kernels(partial(core_kernels_alone, problem.net, preference)))


def has_kernels(problem: Problem) -> bool:
    core = problem.engines[CORE]
    return isinstance(core, Cpu) and core.kernels is not NO_KERNELS


def kernel_notes(problem: Problem, plan: Plan) -> dict[str, str]:
    """The kernel of each op on the core, or the reason for plain C."""
    return dict(
        _notes(problem if has_kernels(problem) else with_kernels(problem), plan, crowded=not has_kernels(problem))
    )


def _notes(problem: Problem, plan: Plan, *, crowded: bool) -> Iterator[tuple[str, str]]:
    """Notes on the core ops of a plan. The core of an op's first PE counts, if types differ."""
    net, whole, core = problem.net, _computed_whole(problem.net, plan), problem.engines[CORE]
    assert isinstance(core, Cpu)
    computing: dict[str, list[int]] = {}
    for pe in plan.pes:
        for name in dict.fromkeys(step.op for step in pe.computes()):
            computing.setdefault(name, []).append(pe.pe)
    for op in net.ops:
        if op.engine != CORE or isinstance(op.attributes, Reshape):
            continue
        pes = computing.get(op.name, [plan.pes[0].pe])
        own = core.of(problem.board.cpu_of(pes[0])).kernels
        runs = op.name in whole or op.name in own.moves
        if isinstance(op.attributes, TvmCode):
            yield op.name, BY_HAND if op.attributes.given else BY_TVM
        elif not own.has(op.name) or (runs and not crowded):
            yield op.name, own.notes[op.name]
        else:
            yield op.name, CROWDED if runs else DIVIDED.format(len(pes))


def _computed_whole(net: Net, plan: Plan) -> frozenset[str]:
    """Ops with the whole output as every tile."""
    shapes = {op.name: Box.whole(net.tensor(op.output).shape) for op in net.ops if len(op.outputs) == 1}
    tiles = [(step.op, step.output.box) for pe in plan.pes for step in pe.computes()]
    return frozenset(name for name, box in tiles if shapes.get(name) == box)


def with_kernel_code(net: Net, board: Board, plan: Plan, core: Accelerator) -> Plan:
    """The plan with the code of the core's kernels added to its PEs' memory."""
    root = plan.pes[0].pe
    return replace(plan, pes=tuple(with_code_of_kernels(net, board, pe, core, root) for pe in plan.pes))


def with_code_of_kernels(net: Net, board: Board, pe: PePlan, core: Accelerator, root: int) -> PePlan:
    """The PE with the code of its tiles' routines added.

    A PE other than the root whose core runs only assembly gets the smaller firmware reserve of a worker. The full
    reserve is for kernels in C and for the host link.
    """
    if not isinstance(core, Cpu):
        return pe
    own = core.of(board.cpu_of(pe.pe))
    found = [own.routines(tile) for tile in _core_tiles(net, pe)]
    code = sum({each.name: each.bytes for routines in found for each in routines}.values())
    spared = FIRMWARE_BYTES - WORKER_BYTES if found and all(found) and pe.pe != root else 0
    return replace(pe, memory=with_code(board.seen_by(pe.pe), pe.memory, code - spared))


def _core_tiles(net: Net, pe: PePlan) -> Iterator[Tile]:
    ops = {op.name: op for op in net.ops}

    def operand(view: View) -> Operand:
        buffer = pe.buffer(view.buffer)
        return buffer.operand(net.tensor(buffer.tensor), view.box, buffer.name)

    for step in pe.computes():
        if step.engine == CORE:
            scratch = Address(step.scratch) if step.scratch else None
            yield Tile(step.op, net, ops[step.op], operand(step.output), tuple(map(operand, step.inputs)), scratch)
