"""The core's kernels in assembly: a problem with kernels, and the kernel of each op in a plan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from npukit.accel.core_kernels import NO_KERNELS, USUAL, CostPreference, core_kernels_alone
from npukit.accel.cpu import Cpu
from npukit.accel.engines import core_of
from npukit.net.box import Box
from npukit.net.net import CORE, Net
from npukit.net.ops import Reshape, TvmCode
from npukit.plan.ir.plan import Plan
from npukit.plan.tensors.problem import Problem

BY_TVM, BY_HAND = "plain C: made by TVM", "plain C: as it is given"
DIVIDED = "plain C: its kernel in assembly wants the whole op on one PE, and {} PEs share it"
CROWDED = "plain C: PEs have no room for the code and constants of kernels in assembly"


def with_kernels(problem: Problem, preference: CostPreference = USUAL) -> Problem:
    """The problem with kernels in assembly for ops computed whole by a PE, and for moves of bytes."""
    core = core_of(problem.board).with_kernels(partial(core_kernels_alone, problem.net, preference))
    return problem.with_engines({**problem.engines, CORE: core})


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
