"""The code of the core's kernels in assembly, which the reserve for a program's code does not include."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from npukit.accel.cpu import Cpu
from npukit.accel.interface import Accelerator, Address, Operand, Tile
from npukit.board.board import Board
from npukit.net.net import CORE, Net
from npukit.plan.ir.operands import operand_in
from npukit.plan.ir.plan import PePlan, Plan, View
from npukit.plan.predict.memory import FIRMWARE_BYTES, WORKER_BYTES, with_code


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
        return operand_in(buffer, net.tensor(buffer.tensor), view.box, buffer.name)

    for step in pe.computes():
        if step.engine == CORE:
            scratch = Address(step.scratch) if step.scratch else None
            yield Tile(step.op, net, ops[step.op], operand(step.output), tuple(map(operand, step.inputs)), scratch)
