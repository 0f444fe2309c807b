"""Bench: what a frame costs, measured where it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from npukit.measure.cases import Cases
from npukit.measure.target import Target
from npukit.measure.validate import run_case
from npukit.net.cost import macs
from npukit.net.net import Net
from npukit.plan.plan import Plan
from npukit.progress import Progress


@dataclass(frozen=True)
class LayerCost:
    """One layer, run by itself. `predicted_cycles` is the plan's."""

    name: str
    engine: str
    cycles: int
    npu_cycles: int
    instructions: int
    predicted_cycles: int


@dataclass(frozen=True)
class PeCost:
    """How one PE spends a frame, in cycles."""

    pe: int
    busy: int
    npu_busy: int
    wait: int
    send: int


@dataclass(frozen=True)
class Bench:
    """One frame: `instructions` of all cores, boot and link excluded; latency; interval in steady state."""

    engine: str
    instructions: int
    latency_cycles: int
    interval_cycles: int
    predicted_latency_cycles: int
    macs: int
    macs_per_cycle: float
    clock_hz: int
    layers: tuple[LayerCost, ...]
    pes: tuple[PeCost, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def bench(target: Target, net: Net, plan: Plan, cases: Cases, clock_hz: int, frames: int, progress: Progress) -> Bench:
    """Run `frames` frames in chains and report the slowest, then one frame layer by layer."""
    session = target.session
    run_case(session, net, cases, 0, observe=False)
    before = _npu_busy(target)
    runs = [session.run(observe=False) for _ in progress.track(range(frames), f"bench on {target.name}")]
    npu_busy = (_npu_busy(target) - before) // frames
    slowest = max(runs, key=lambda run: run.cycles)
    run_case(session, net, cases, 0, observe=True)
    work = sum(macs(net, op) for op in net.ops)
    return Bench(
        engine=target.name,
        instructions=slowest.instructions,
        latency_cycles=slowest.cycles,
        interval_cycles=slowest.cycles,
        predicted_latency_cycles=plan.predicted.latency_cycles,
        macs=work,
        macs_per_cycle=round(work / slowest.cycles, 3) if slowest.cycles else 0.0,
        clock_hz=clock_hz,
        layers=_layers(target, net, plan),
        pes=(PeCost(0, slowest.cycles - slowest.asleep, npu_busy, max(slowest.asleep - npu_busy, 0), 0),),
    )


def _npu_busy(target: Target) -> int:
    """Cycles the accelerators of the root PE have worked; only the built-in emulator can tell."""
    return target.emulator.counters(0).npu_busy if target.emulator else 0


def _layers(target: Target, net: Net, plan: Plan) -> tuple[LayerCost, ...]:
    made_by = {name: op for op in net.ops for name in op.outputs}
    predicted = {step.op: step.cycles for pe in plan.pes for step in pe.computes()}
    costs = []
    for name, cost in zip(target.session.device.layers, target.session.layer_counters(), strict=True):
        op = made_by[name]
        # The core sleeps while an accelerator runs a layer by itself.
        npu = 0 if op.engine == "cpu" else cost.asleep
        costs.append(LayerCost(op.name, op.engine, cost.cycles, npu, cost.instructions, predicted.get(op.name, 0)))
    return tuple(costs)
