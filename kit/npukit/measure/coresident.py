"""Networks side by side on one board: each compared and measured while the others run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from npukit.link.companions import CompanionSession, run_together
from npukit.measure.bench import Bench, bench
from npukit.measure.cases import Cases, first_cases, load_cases
from npukit.measure.schedules import compare
from npukit.measure.target import Emulation, Target, open_targets
from npukit.measure.trace import timeline_of
from npukit.measure.validate import Validation
from npukit.progress import Progress
from npukit.project.build_folder import GOLDEN, Build

REQUEST_BITS = 10 * 64
"""Upper bound on the UART bits of another network's request for a run."""

OVERLAP = 10
"""Minimal length of simultaneous runs, relative to the time to start them all."""

MOST_FRAMES = 0xFFFF


@dataclass(frozen=True)
class CoresidentBench:
    """A network's figures alone, and the interval of its frames while all other networks run."""

    alone: Bench
    coresident_interval_cycles: int | None

    def to_json(self) -> dict[str, Any]:
        return {**self.alone.to_json(), "coresident_interval_cycles": self.coresident_interval_cycles}


def validate_coresident(
    builds: Mapping[str, Build], on: str | None, cases: int | None, seed: int | None, progress: Progress
) -> dict[str, Validation]:
    """Run every case of each network while all others run frames without pause; some also under schedules."""
    found = {}
    with open_targets(builds, on, Emulation(strict=True), progress) as targets:
        for name, target in targets.items():
            others = [other for other in targets if other != name]
            coresident = tuple((_session(targets[other]), _frames(builds[other], len(builds))) for other in others)
            _session(targets[name]).coresident = coresident  # all others run alongside each run of this network
            for other in others:
                _session(targets[other]).coresident = ()
            build = builds[name]
            progress.stage(f"network {name}")
            chosen = first_cases(_golden(build), cases)
            before = target.in_rtl
            compared = compare(target, build.net(), build.plan(), chosen, seed, progress)
            done = target.in_rtl
            found[name] = compared.with_rtl(done.since(before) if done and before else None)
    return found


def bench_coresident(
    builds: Mapping[str, Build], on: str | None, frames: int, progress: Progress
) -> dict[str, CoresidentBench]:
    """Measure each network alone, then all at once."""
    alone = {}
    with open_targets(builds, on, progress=progress) as targets:
        for name, target in targets.items():
            build = builds[name]
            progress.stage(f"network {name}")
            net, plan, cases = build.net(), build.plan(), _golden(build)
            seen = timeline_of(build, cases, 1, target.name) if target.emulator and plan.frames == 1 else None
            alone[name] = bench(target, net, plan, cases, build.board.core.clock_hz, frames, progress, seen)
        progress.stage("all networks at once")
        counts = {name: _frames(builds[name], len(builds)) for name in builds}
        results = run_together([(_session(targets[name]), False, counts[name]) for name in builds])
        found = {}
        for (name, count), result in zip(counts.items(), results, strict=True):
            interval = round(result.cycles / (count * builds[name].plan().frames))
            found[name] = CoresidentBench(alone[name], interval if targets[name].counts_cycles else None)
    return found


def _frames(build: Build, networks: int) -> int:
    """A number of frames that takes much longer than starting a run of each network."""
    start_cycles = REQUEST_BITS * build.board.core.clock_hz // build.board.uart.baud
    span = OVERLAP * networks * start_cycles
    return min(max(1, -(-span // max(build.plan().predicted.latency_cycles, 1))), MOST_FRAMES)


def _session(target: Target) -> CompanionSession:
    assert isinstance(target.session, CompanionSession)
    return target.session


def _golden(build: Build) -> Cases:
    return load_cases(build.folder / GOLDEN, build.net(), None)
