"""Bench: what a frame costs, measured where it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from npukit.emulator.builtin import Counters
from npukit.link.messages import RunResult
from npukit.measure.cases import Cases
from npukit.measure.target import Target
from npukit.measure.validate import run_case, write_inputs
from npukit.net.cost import total_macs
from npukit.net.net import Net
from npukit.plan.plan import Plan
from npukit.progress import Progress


@dataclass(frozen=True)
class LayerCost:
    """One layer, run by itself. `predicted_cycles` is the plan's."""

    name: str
    engine: str
    cycles: int | None
    npu_cycles: int
    instructions: int
    predicted_cycles: int


@dataclass(frozen=True)
class PeCost:
    """How one PE spends a frame, in cycles: its core awake, its accelerators at work, neither of both.

    `send` are the cycles in which its SRAM's port feeds or takes messages, whatever else goes on.
    """

    pe: int
    busy: int
    npu_busy: int
    wait: int
    send: int
    instructions: int


@dataclass(frozen=True)
class Bench:
    """One frame: `instructions` of all cores, boot and link excluded; latency; interval in steady state.

    Cycles are None where they cannot be known: QEMU counts instructions only.
    """

    engine: str
    instructions: int
    latency_cycles: int | None
    interval_cycles: int | None
    predicted_latency_cycles: int
    macs: int
    macs_per_cycle: float | None
    clock_hz: int
    layers: tuple[LayerCost, ...]
    pes: tuple[PeCost, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bench(target: Target, net: Net, plan: Plan, cases: Cases, clock_hz: int, frames: int, progress: Progress) -> Bench:
    """Run `frames` frames in chains and report the slowest, then one frame layer by layer."""
    run_case(target.session, net, cases, 0, observe=False)
    runs = [_measured_run(target, net, plan, cases) for _ in progress.track(range(frames), f"bench on {target.name}")]
    slowest, pes = max(runs, key=lambda run: run[0].cycles)
    run_case(target.session, net, cases, 0, observe=True)
    cycles = slowest.cycles if target.counts_cycles else None
    work = total_macs(net)
    return Bench(
        engine=target.name,
        instructions=slowest.instructions + sum(pe.instructions for pe in pes[1:]),
        latency_cycles=cycles,
        interval_cycles=cycles,
        predicted_latency_cycles=plan.predicted.latency_cycles,
        macs=work,
        macs_per_cycle=round(work / cycles, 3) if cycles else None,
        clock_hz=clock_hz,
        layers=_layers(target, net, plan),
        pes=pes,
    )


def _measured_run(target: Target, net: Net, plan: Plan, cases: Cases) -> tuple[RunResult, tuple[PeCost, ...]]:
    """One frame, and what each PE spent on it. The root's own figures come from its run, free of the link's work."""
    write_inputs(target.session, cases, 0)
    before = _counters(target, plan)
    run = target.session.run(observe=False)
    spent = [_Spent.between(*pair) for pair in zip(before, _counters(target, plan), strict=True)]
    if spent:
        spent[0] = replace(spent[0], busy=run.cycles - run.asleep, instructions=run.instructions)
    rows = zip(plan.pes, spent, strict=False)
    return run, tuple(_pe_cost(pe.pe, one, run.cycles, target) for pe, one in rows)


@dataclass(frozen=True)
class _Spent:
    """What a PE did between two readings of its counters."""

    busy: int
    npu_busy: int
    dma_bytes: int
    instructions: int

    @classmethod
    def between(cls, before: Counters, after: Counters) -> _Spent:
        awake = (after.cycles - after.asleep) - (before.cycles - before.asleep)
        return cls(
            awake,
            after.npu_busy - before.npu_busy,
            after.dma_bytes - before.dma_bytes,
            after.instructions - before.instructions,
        )


def _pe_cost(pe: int, spent: _Spent, cycles: int, target: Target) -> PeCost:
    wait = max(cycles - spent.busy - spent.npu_busy, 0)
    return PeCost(pe, spent.busy, spent.npu_busy, wait, spent.dma_bytes // target.port_bytes, spent.instructions)


def _counters(target: Target, plan: Plan) -> list[Counters]:
    """The counters of every PE that works; only the built-in emulator can tell."""
    return [target.emulator.counters(pe.pe) for pe in plan.pes] if target.emulator else []


def _layers(target: Target, net: Net, plan: Plan) -> tuple[LayerCost, ...]:
    made_by = {name: op for op in net.ops for name in op.outputs}
    predicted = {step.op: step.cycles for pe in plan.pes for step in pe.computes()}
    costs = []
    for name, cost in zip(target.session.device.layers, target.session.layer_counters(), strict=True):
        op = made_by[name]
        # The core sleeps while an accelerator runs a layer by itself.
        npu = 0 if op.engine == "cpu" else cost.asleep
        cycles = cost.cycles if target.counts_cycles else None
        costs.append(LayerCost(op.name, op.engine, cycles, npu, cost.instructions, predicted.get(op.name, 0)))
    return tuple(costs)
