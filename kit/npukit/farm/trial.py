"""A trial: a build, measured and checked for exactness, for a comparison of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from npukit.measure.bench import bench
from npukit.measure.cases import load_cases
from npukit.measure.target import open_target
from npukit.measure.validate import validate
from npukit.progress import Silent
from npukit.project.build_folder import GOLDEN, Build


@dataclass(frozen=True)
class Trial:
    """The cost of a frame and of each layer, in `unit`: cycles, or instructions where no cycles are counted. `exact`:
    every output and every tile of the golden cases is equal to the reference."""

    unit: str
    cost: int
    layers: Mapping[str, int]
    exact: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


NOT_EXACT = Trial("", 0, {}, exact=False)
"""The trial of a wrong build, or of none: its cost is meaningless."""


def run_trial(build: Build, on: str | None) -> Trial:
    net, plan = build.net(), build.plan()
    cases = load_cases(build.folder / GOLDEN, net, None)
    with open_target(build, on) as target:
        if not validate(target, net, plan, cases, Silent()).passed:
            return NOT_EXACT
        measured = bench(target, net, plan, cases, build.board.core.clock_hz, 1, Silent())
    throughput = build.manifest.planned_for.objective == "throughput"
    cycles = measured.interval_cycles if throughput else measured.latency_cycles
    unit = "instructions" if cycles is None else "cycles"
    layers = {each.name: (each.instructions if each.cycles is None else each.cycles) or 0 for each in measured.layers}
    return Trial(unit, (measured.instructions or 0) if cycles is None else cycles, layers, exact=True)
