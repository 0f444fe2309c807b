"""Whether a plan fits; if not, by how much, because of what, and what would help how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.plan.graph import Graph
from npukit.plan.memory import missing_bytes, shortfall
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import Compute, PePlan, Plan
from npukit.plan.search import smallest_plan

Engines = Mapping[str, Accelerator]


@dataclass(frozen=True)
class Remedy:
    """Something to try, and what came of it when the planner tried it."""

    what: str
    effect: str


@dataclass(frozen=True)
class FitReport:
    """The plan that fits, or the one that comes closest."""

    plan: Plan
    missing_bytes: int
    fault: str
    remedies: tuple[Remedy, ...]

    @property
    def fits(self) -> bool:
        return self.missing_bytes == 0


def fit_report(net: Net, board: Board, engines: Engines, plan: Plan) -> FitReport:
    """What `npukit fit` says of a plan."""
    missing = missing_bytes(board, plan)
    if not missing:
        return FitReport(plan, 0, "", ())
    return FitReport(plan, missing, _fault(net, board, engines, plan), _remedies(net, board, engines, plan))


def refuse_what_does_not_fit(net: Net, board: Board, engines: Engines, plan: Plan) -> None:
    """DoesNotFit if the memory of any PE is too small."""
    report = fit_report(net, board, engines, plan)
    if not report.fits:
        raise DoesNotFit(report.fault, tries=[f"{remedy.what}: {remedy.effect}" for remedy in report.remedies])


def _fault(net: Net, board: Board, engines: Engines, plan: Plan) -> str:
    pe = max(plan.pes, key=lambda pe: shortfall(board, pe.memory))
    use = pe.memory
    number = len(plan.pes)
    return (
        f"{net.name} on {number} PE{'s' if number > 1 else ''} needs {shortfall(board, use):,} bytes more than "
        f"PE {pe.pe} of {board.name} has: "
        f"constants {use.constants:,} (most: {_largest_constants(net, engines, pe)}), "
        f"activations {use.activations:,} (most: {_largest_buffer(net, pe)}), "
        f"code and stack {use.code + use.stack:,}"
    )


def _largest_constants(net: Net, engines: Engines, pe: PePlan) -> str:
    ops = {op.name: op for op in net.ops}

    def size(step: Compute) -> int:
        return engines[step.engine].cost(net, ops[step.op], step.output.box).constant_bytes

    largest = max(pe.computes(), key=size, default=None)
    return f"{largest.op}, {size(largest):,}" if largest else "none"


def _largest_buffer(net: Net, pe: PePlan) -> str:
    largest = max(pe.buffers, key=lambda b: b.bytes, default=None)
    if largest is None:
        return "none"
    consumers = [op.name for op in net.ops if largest.tensor in op.inputs]
    return f"{largest.name}, {largest.bytes:,}, for {', '.join(consumers) or 'the output'}"


def _remedies(net: Net, board: Board, engines: Engines, plan: Plan) -> tuple[Remedy, ...]:
    graph, order = Graph(net), pes_in_order(board)
    found = []
    if len(order) > len(plan.pes):
        smallest = smallest_plan(graph, board, engines, order)
        found.append(Remedy(f"more PEs: --pes {len(smallest.pes)}", _effect(board, smallest)))
    found.append(Remedy("a smaller network, or a board with more memory", f"{missing_bytes(board, plan):,} bytes"))
    return tuple(found)


def _effect(board: Board, plan: Plan) -> str:
    missing = missing_bytes(board, plan)
    if missing:
        return f"{missing:,} bytes are still missing"
    return f"fits, {plan.predicted.latency_cycles:,} cycles a frame"
