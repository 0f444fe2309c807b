"""Plans on one PE with the core's kernels in assembly: they want whole tensors, in layouts chosen for the whole net."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from npukit.accel.core_kernels import CoreKernels, choose_core_kernels
from npukit.accel.cpu import Cpu
from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.net.ops import Reshape
from npukit.plan.memory import shortfall, with_code
from npukit.plan.plan import Plan
from npukit.plan.planner import plan_network

Engines = Mapping[str, Accelerator]
_PLAIN_C = "plain C: kernels in assembly want whole tensors on one PE, and room for their constants"


@dataclass(frozen=True)
class Planned:
    """A plan, and the engines whose answers it counts on; of ops on the core, which kernel runs, or why none."""

    plan: Plan
    engines: Engines
    kernels: Mapping[str, str]


def plan_with_kernels(net: Net, board: Board, engines: Engines, objective: str, max_pes: int | None) -> Planned:
    """On one PE with kernels in assembly if that fits, small ones if need be; else as the planner does without."""
    if (max_pes in (None, 1) or board.pe_count == 1) and (objective != "throughput" or board.noc is None):
        for kernels in _choices(net, objective):
            plan = _on_one_pe(net, board, {**engines, Cpu.name: Cpu(kernels)}, objective, kernels.code_bytes)
            if plan:
                return Planned(plan, {**engines, Cpu.name: Cpu(kernels)}, kernels.notes)
    return Planned(plan_network(net, board, engines, objective=objective, max_pes=max_pes), engines, _plain(net))


def _plain(net: Net) -> dict[str, str]:
    return {op.name: _PLAIN_C for op in net.ops if op.engine == Cpu.name and not isinstance(op.attributes, Reshape)}


def _choices(net: Net, objective: str) -> Iterator[CoreKernels]:
    for each in dict.fromkeys((objective, "memory")):
        yield choose_core_kernels(net, each)


def _on_one_pe(net: Net, board: Board, engines: Engines, objective: str, code_bytes: int) -> Plan | None:
    """The plan, or None if it does not fit with the code of the kernels."""
    try:
        plan = plan_network(net, board, engines, objective=objective, max_pes=1)
    except DoesNotFit:
        return None
    (pe,) = plan.pes
    pe = replace(pe, memory=with_code(board, pe.memory, code_bytes))
    return None if shortfall(board, pe.memory) else replace(plan, pes=(pe,))
