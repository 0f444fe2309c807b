"""The best plan: on the mesh, or on one PE, whose kernels in assembly take layouts chosen for the whole net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Protocol, TypeVar

from npukit.accel.core_kernels import USUAL, CoreKernels, CostPreference, choose_core_kernels, core_kernels_alone
from npukit.accel.core_waits import CoreWaits, core_waits
from npukit.accel.cpu import Cpu
from npukit.accel.engines import core_of
from npukit.accel.interface import Engines
from npukit.board.board import Board
from npukit.board.cores import CoreType
from npukit.dump import lost
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.ops import Reshape, TvmCode
from npukit.net.receptive import cuttable_axes
from npukit.plan.does_not_fit import most_between_ops, refuse_what_cannot_fit, room_for_tensors, weight_bytes
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import best_plan, closest_plan, plan_with_pins, sequential
from npukit.plan.predict.kernel_code import with_kernel_code
from npukit.plan.predict.memory import VARIABLE_BYTES, missing_bytes, shortfall, with_code, with_near
from npukit.plan.search.leanest import FarTooLarge
from npukit.plan.search.objectives import resident_plan
from npukit.plan.tensors.problem import Problem
from npukit.plan.user_mapping import read_pins

PlannedAs = TypeVar("PlannedAs", bound="HasPlan")


class HasPlan(Protocol):
    """A result that has a plan, by which it is compared."""

    @property
    def plan(self) -> Plan: ...


_MADE, _GIVEN = "plain C: made by TVM", "plain C: as it is given"
_DIVIDED = "plain C: its kernel in assembly wants the whole op on one PE, and {} PEs share it"
_CROWDED = "plain C: PE {} has no room for the code and constants of kernels in assembly"


@dataclass(frozen=True)
class Planned:
    """A plan, and the engines whose answers it counts on; of ops on the core, which kernel runs, or why none."""

    plan: Plan
    engines: Engines
    kernels: Mapping[str, str]


def plan_with_kernels(problem: Problem, objective: str, preference: CostPreference = USUAL) -> Planned:
    """The better plan for the objective of the one on one PE and the one on the mesh.

    `preference` counts for objectives of time.
    """
    refuse_what_cannot_fit(problem)
    objective = sequential(problem.net, objective)
    taken = USUAL if objective == "memory" else preference
    alone = _alone(problem, objective, taken)
    if alone and (objective == "memory" or problem.max_pes == 1 or not _can_be_shared(problem.net, problem.board)):
        return alone
    try:
        shared = _on_mesh(problem, lambda known: best_plan(known, objective), taken)
    except DoesNotFit:
        if alone is None:
            raise
        return alone
    return better(alone, shared, "one PE or several") if alone else shared


def better(one: PlannedAs, other: PlannedAs, what: str) -> PlannedAs:
    """The better of two by their plans' objective, the first if they are alike; the other one is dumped."""
    best, left = sorted((one, other), key=lambda each: _merit(each.plan))
    lost(lambda: f"{what}: {left.plan.headline()}", lambda: f"not better than {best.plan.headline()}")
    return best


def _merit(plan: Plan) -> tuple[int, ...]:
    """The figures by which plans are compared: the better one has less."""
    cycles = plan.predicted
    first = {"throughput": cycles.interval_cycles, "memory": plan.pes_used}.get(plan.objective, cycles.latency_cycles)
    return first, cycles.latency_cycles, plan.pes_used


def _can_be_shared(net: Net, board: Board) -> bool:
    """True if there are ops that several PEs can share, on their accelerators or cores."""
    return board.pe_count > 1 and any(cuttable_axes(net, op) for op in net.ops)


def _alone(problem: Problem, objective: str, preference: CostPreference) -> Planned | None:
    """The best plan on one PE with kernels in assembly, of several choices of them, if one fits; no batches.

    Kernels that tuning prefers are taken where they fit: they have been measured.
    """
    if (objective == "throughput" and problem.board.noc) or problem.fewest > 1 or _is_too_large(problem):
        return None
    board = problem.board.seen_by(problem.order[0])
    core, waits = board.core.type, core_waits(board)
    if preference != USUAL:
        tuned = choose_core_kernels(problem.net, objective, preference, core, waits)
        if best := _with_choice(problem, objective, tuned):
            return best
    best = None
    for kernels in _choices(problem.net, objective, core, waits):
        slower = best and kernels.cycles >= best.plan.predicted.latency_cycles
        if not slower and (found := _with_choice(problem, objective, kernels)):
            best = better(best, found, "kernels on one PE") if best else found
    return best


def _with_choice(problem: Problem, objective: str, kernels: CoreKernels) -> Planned | None:
    """The plan on one PE with these kernels, if it fits."""
    board = problem.board.seen_by(problem.order[0])
    known = _with_core(problem, Cpu(kernels, board.core.type, core_waits(board)))

    def planned(known: Problem) -> Plan | None:
        return _with_code(problem.board, _on_one_pe(known, objective), kernels.code_bytes)

    plan = planned(known)
    return plan and _with_constants_near(known, Planned(plan, known.engines, kernels.notes), planned)


def _is_too_large(problem: Problem) -> bool:
    """True if one PE cannot hold the tensors between two ops, or, one of several, the bytes of all weights: it would
    not stream them, either."""
    net, board = problem.net, problem.board
    weights = weight_bytes(net, net.ops) if len(problem.order) > 1 else 0
    return weights > board.memory_for("constants").size or most_between_ops(problem)[1] > room_for_tensors(board, 1)


def _with_constants_near(problem: Problem, planned: Planned, again: Callable[[Problem], Plan | None]) -> Planned:
    """The plan made again with constants that make cores wait copied at start-up into memory that does not.

    Only where no PEs share a program: such have their data where the plan has them send it.
    """
    board, core = problem.board, problem.engines[Cpu.name]
    if not isinstance(core, Cpu) or core.waits.constants is None or board.memory_for("activations").waits is not None:
        return planned
    room = min(pe.memory.free for pe in planned.plan.pes) - VARIABLE_BYTES
    fast = core.with_constants_near(problem.net, room)
    known, near = _with_core(problem, fast), fast.constants_near(problem.net)
    plan = again(known) if near and planned.plan.objective != "memory" else None
    if plan is None:
        return planned
    pes = tuple(replace(pe, memory=with_near(board.seen_by(pe.pe), pe.memory, near)) for pe in plan.pes)
    found = replace(plan, pes=pes)
    return planned if missing_bytes(board, found) else replace(planned, plan=found, engines=known.engines)


def _with_core(problem: Problem, core: Cpu) -> Problem:
    return problem.with_engines({**problem.engines, Cpu.name: core})


def plan_as_pinned(problem: Problem, source: str, objective: str) -> Planned:
    """The plan as a file or a mapper has it (`plan/user_mapping.py`), which speaks of single frames."""
    if objective != "latency":
        raise NpukitError(
            f"plan {source} says where a frame's ops run, which --objective {objective} would change",
            tries=["--objective latency"],
        )
    pins = read_pins(source, problem.graph, problem.board)
    taken = {problem.board.root_pe, *(tile.pe for tiles in pins.values() for tile in tiles)}
    if problem.max_pes and len(taken) > problem.max_pes:
        raise NpukitError(
            f"plan {source} takes {len(taken)} PEs, the root's included, and --pes allows {problem.max_pes}",
            tries=[f"--pes {len(taken)}", "build without --pes"],
        )
    return plan_around(problem, pins)


def plan_around(problem: Problem, pins: Assignment) -> Planned:
    """The plan with some ops where they are pinned."""
    return _on_mesh(problem, lambda known: plan_with_pins(known, pins))


def _on_mesh(problem: Problem, planned: Callable[[Problem], Plan], preference: CostPreference = USUAL) -> Planned:
    """Ops that one PE computes whole, or that only move bytes, have kernels in assembly, if PEs have room for those."""
    net, board = problem.net, problem.board
    core = core_of(board).with_kernels(partial(core_kernels_alone, net, preference))
    with_kernels = _with_core(problem, core)

    def with_code_of_kernels(known: Problem) -> Plan:
        return with_kernel_code(net, board, planned(known), core)

    fuller = with_code_of_kernels(with_kernels)
    crowded = next((pe.pe for pe in fuller.pes if shortfall(board.seen_by(pe.pe), pe.memory)), None)
    if crowded is not None:
        plain = planned(problem)
        return Planned(plain, problem.engines, dict(_notes(with_kernels, plain, core, crowded)))
    found = Planned(fuller, with_kernels.engines, dict(_notes(with_kernels, fuller, core)))
    return _with_constants_near(with_kernels, found, with_code_of_kernels) if board.shares_memory else found


def _computed_whole(net: Net, plan: Plan) -> frozenset[str]:
    """Ops of which every tile is the whole output."""
    shapes = {op.name: Box.whole(net.tensor(op.output).shape) for op in net.ops if len(op.outputs) == 1}
    tiles = [(step.op, step.output.box) for pe in plan.pes for step in pe.computes()]
    return frozenset(name for name, box in tiles if shapes.get(name) == box)


def _notes(problem: Problem, plan: Plan, core: Cpu, crowded: int | None = None) -> Iterator[tuple[str, str]]:
    """The kernel of each op on the core, or why it has none; `crowded` is the PE that has no room for kernels.

    Of PEs with several cores the first that computes an op counts.
    """
    net, whole = problem.net, _computed_whole(problem.net, plan)
    first = {step.op: pe.pe for pe in reversed(plan.pes) for step in pe.computes()}
    for op in net.ops:
        if op.engine != Cpu.name or isinstance(op.attributes, Reshape):
            continue
        alone = core.of(problem.board.cpu_of(first.get(op.name, plan.pes[0].pe))).kernels
        if isinstance(op.attributes, TvmCode):
            yield op.name, _GIVEN if op.attributes.given else _MADE
        elif not alone.has(op.name) or (crowded is None and (op.name in whole or op.name in alone.moves)):
            yield op.name, alone.notes[op.name]
        elif op.name in whole or op.name in alone.moves:
            yield op.name, _CROWDED.format(crowded)
        else:
            yield op.name, _DIVIDED.format(len(_pes_of(plan, op.name)))


def _pes_of(plan: Plan, op: str) -> set[int]:
    return {pe.pe for pe in plan.pes for step in pe.computes() if step.op == op}


def _choices(net: Net, objective: str, core: CoreType, waits: CoreWaits) -> Iterator[CoreKernels]:
    """Different choices of kernels: unless memory is the objective fast ones at each price, and the smallest."""
    prices = () if objective == "memory" else waits.prices
    goals = [*(("latency", price) for price in prices), ("memory", inf)]
    known = list[Mapping[str, object]]()
    for goal, price in goals:
        kernels = choose_core_kernels(net, goal, core=core, waits=waits, price=price)
        if kernels.costs not in known:
            known.append(kernels.costs)
            yield kernels


def _on_one_pe(problem: Problem, objective: str) -> Plan | None:
    """The plan on one PE, or what comes closest; with constants streamed only if there are no other PEs to use."""
    if len(problem.order) > 1:
        return replace(resident_plan(problem.on(problem.order[:1])), objective=objective)
    try:
        return closest_plan(problem, objective)
    except FarTooLarge:
        return None


def _with_code(board: Board, plan: Plan | None, code_bytes: int) -> Plan | None:
    """The plan of one PE with the code of the kernels, or None if it does not fit so."""
    if plan is None:
        return None
    (pe,) = plan.pes
    board = board.seen_by(pe.pe)
    pe = replace(pe, memory=with_code(board, pe.memory, code_bytes))
    missing = shortfall(board, pe.memory)
    if missing:
        lost(
            lambda: f"kernels in assembly of {code_bytes:,} bytes on {plan.headline()}",
            lambda: f"{missing:,} bytes too many",
        )
    return None if missing else replace(plan, pes=(pe,))
