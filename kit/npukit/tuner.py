"""The search behind `npukit tune`: blockings of the loops that TVM schedules, measured where the build runs.

Each trial builds the whole network with one blocking everywhere and measures every layer, so that a trial says
something of every kernel. The best of each come together in the end, and stay only if the whole is faster, and equal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.errors import NpukitError
from npukit.measure.bench import Bench
from npukit.net.ops import TvmCode
from npukit.pipeline import build_folder
from npukit.progress import Progress, Silent
from npukit.project.build_folder import GOLDEN, Build, file_digest
from npukit.tuning import AS_WRITTEN, Blocking, Database, Finding, load_database, trial

if TYPE_CHECKING:
    from npukit.api import Options

CANDIDATES = (
    *(Blocking(axis, factor) for factor in (4, 8, 2, 16) for axis in (0, 1)),
    *(Blocking(0, factor, unroll) for factor in (8, 4, 2) for unroll in (2, 4)),
    *(Blocking(0, 1, unroll) for unroll in (4, 2)),
)
"""The most promising first."""


@dataclass(frozen=True)
class Kernel:
    """One kernel's best."""

    name: str
    layers: tuple[str, ...]
    blocking: str
    before: int
    after: int


@dataclass(frozen=True)
class Tuned:
    """What tuning came to. `unit`: cycles, or instructions where the target counts no cycles."""

    unit: str
    before: int
    after: int
    trials: int
    seconds: float
    kernels: tuple[Kernel, ...]
    database: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Measured:
    """A trial: what the frame and each kernel cost; the outputs of the golden cases."""

    whole: int
    costs: Mapping[str, int]
    layers: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str]
    outputs: tuple[np.ndarray, ...]


class Tuner:
    """One network on one board."""

    def __init__(self, model: Path, build: Build, options: Options, database: Path, progress: Progress) -> None:
        if file_digest(model) != build.manifest.model_sha256:
            raise NpukitError(f"{build.folder} was not built from {model}", tries=["the model it was built from"])
        if not any(isinstance(op.attributes, TvmCode) for op in build.net().ops):
            raise NpukitError(
                f"nothing to tune in {build.folder}: every layer has a kernel of npukit's own",
                tries=["npukit build MODEL --float, whose loops TVM schedules"],
            )
        self._model, self._build, self._options = model, build, options
        self._path, self._database, self._progress = database, load_database(database), progress
        self._unit = ""

    def run(self, budget_seconds: float) -> Tuned:
        """Try what has not been tried, until the time is over; leave the build as fast as is known."""
        started = monotonic()
        baseline = self._measure({}, AS_WRITTEN)
        trials = 0
        for candidate in CANDIDATES:
            if monotonic() - started > budget_seconds:
                break
            if self._known(baseline, candidate):
                continue
            best = sum(self._finding(key, baseline).cost for key in baseline.costs)
            self._progress.stage(f"trial {trials + 1}: {candidate}; so far {best:,} {self._unit}")
            self._learn(baseline, candidate, self._measure({}, candidate))
            trials += 1
        after = self._finish(baseline)
        kernels = tuple(self._kernel(key, baseline) for key in baseline.costs)
        return Tuned(
            self._unit, baseline.whole, after, trials, round(monotonic() - started, 1), kernels, str(self._path)
        )

    def _known(self, baseline: _Measured, candidate: Blocking) -> bool:
        return all(candidate in self._finding(key, baseline).tried for key in baseline.costs)

    def _finding(self, key: str, baseline: _Measured) -> Finding:
        cost = baseline.costs[key]
        found = self._database.findings.get(key)
        return found or Finding(baseline.names[key], AS_WRITTEN, cost, cost)

    def _learn(self, baseline: _Measured, candidate: Blocking, got: _Measured) -> None:
        """What a trial says of each kernel; kept at once, so that nothing is lost when the search is broken off."""
        same = all(np.array_equal(a, b) for a, b in zip(got.outputs, baseline.outputs, strict=True))
        learnt = {}
        for key in baseline.costs:
            known = self._finding(key, baseline)
            cost = got.costs.get(key, known.cost)
            better = same and cost < known.cost
            best = replace(known, blocking=candidate, cost=cost) if better else known
            learnt[key] = replace(best, tried=(*known.tried, candidate))
        self._database = self._database.merged(Database(learnt))
        self._database.save(self._path)

    def _finish(self, baseline: _Measured) -> int:
        """All the best together. If that is no gain after all, nothing stays."""
        chosen = {key: self._finding(key, baseline).blocking for key in baseline.costs}
        self._progress.stage("the best of each kernel together")
        got = self._measure(chosen, AS_WRITTEN)
        same = all(np.array_equal(a, b) for a, b in zip(got.outputs, baseline.outputs, strict=True))
        if not same or got.whole > baseline.whole:
            self._forget(baseline)
            return baseline.whole
        with trial(chosen):
            self._built(self._build.folder)
        return got.whole

    def _forget(self, baseline: _Measured) -> None:
        kept = {
            key: replace(each, blocking=AS_WRITTEN, cost=each.before) if key in baseline.costs else each
            for key, each in self._database.findings.items()
        }
        self._database = Database(kept)
        self._database.save(self._path)

    def _kernel(self, key: str, baseline: _Measured) -> Kernel:
        found = self._finding(key, baseline)
        return Kernel(found.kernel, baseline.layers[key], str(found.blocking), baseline.costs[key], found.cost)

    def _measure(self, choices: Mapping[str, Blocking], default: Blocking) -> _Measured:
        from npukit import api

        with tempfile.TemporaryDirectory(prefix="npukit-tune-") as scratch, trial(choices, default) as opened:
            built = self._built(Path(scratch) / "build")
            bench = api.bench(built.folder, frames=1)
            outputs = api.run(built.folder, inputs=built.folder / GOLDEN)
            layers = _layers(built, opened.code)
        self._unit = "instructions" if bench.latency_cycles is None else "cycles"
        costs = {key: sum(_cost(bench, name) for name in names) for key, names in layers.items()}
        return _Measured(bench.latency_cycles or bench.instructions, costs, layers, opened.names, outputs)

    def _built(self, folder: Path) -> Build:
        board = self._build.board
        return build_folder(self._model, board, folder, self._options, Silent())


def _layers(built: Build, code: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The layers that each kernel computes, known by their code."""
    found: dict[str, tuple[str, ...]] = {}
    for op in built.net().ops:
        for key, body in code.items():
            if isinstance(op.attributes, TvmCode) and op.attributes.code == body:
                found[key] = (*found.get(key, ()), op.name)
    return found


def _cost(bench: Bench, name: str) -> int:
    layer = next((layer for layer in bench.layers if layer.name == name), None)
    return (layer.cycles or layer.instructions) if layer else 0
