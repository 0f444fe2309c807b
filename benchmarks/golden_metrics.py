"""Metrics that must not change by accident: cycles, instructions, memory of the MLPerf Tiny networks and the digits.

    python benchmarks/golden_metrics.py FOLDER_OF_MODELS            compares with golden_metrics.json
    python benchmarks/golden_metrics.py FOLDER_OF_MODELS --write    replaces golden_metrics.json

All metrics are exact: the emulator is deterministic, npukit pins the compiler, and nothing is tuned.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.state import DIGITS, NETWORKS, model_file, untuned

from npukit import api
from npukit.errors import DoesNotFit
from npukit.measure.bench import Bench
from npukit.project.build_folder import Build

FILE = Path(__file__).with_name("golden_metrics.json")
MODELS = tuple(NETWORKS)
PES = (1, 4, 16)
COMPILER = "zig"
"""The compiler that npukit pins."""
THROUGHPUT = ((DIGITS.stem, 4), *((model, 16) for model in MODELS))
"""Networks measured for throughput as well, and on how many PEs."""

Metrics = Mapping[str, int | float | str]


def cases() -> Iterator[tuple[str, int, str]]:
    """Every network, number of PEs and objective."""
    yield from ((name, pes, "latency") for name in (DIGITS.stem, *MODELS) for pes in PES)
    yield from ((name, pes, "throughput") for name, pes in THROUGHPUT)


def title(name: str, pes: int, objective: str) -> str:
    return f"{name}, at most {pes} PE{'s' if pes > 1 else ''}" + (", throughput" * (objective == "throughput"))


def measure(build: Callable[[], Build]) -> Metrics:
    """The metrics of one built network, or `{"fits": "no"}`."""
    try:
        built = build()
    except DoesNotFit:
        return {"fits": "no"}
    return _metrics(api.bench(built), built.manifest.summary)


def _measured(model: Path, options: api.Options) -> Metrics:
    """The metrics of a model, built in a temporary folder without tuning records."""
    with untuned() as scratch:
        return measure(partial(api.build, model, output=scratch / "out", options=options))


def _metrics(measured: Bench, summary: Mapping[str, Any]) -> Metrics:
    memory: list[dict[str, int]] = summary["memory"]
    cycles, predicted = measured.latency_cycles, measured.predicted_latency_cycles
    assert cycles is not None
    assert measured.interval_cycles is not None
    assert measured.instructions is not None
    parts = ("code", "constants", "activations", "stack")
    return {
        "pes": len(memory),
        "frames": summary["frames"],
        "latency_cycles": cycles,
        "interval_cycles": measured.interval_cycles,
        "instructions": measured.instructions,
        "predicted_cycles": predicted,
        "predicted_interval_cycles": summary["predicted"]["interval_cycles"],
        "prediction_error_percent": round(100 * (predicted / cycles - 1), 2),
        **{f"most_{part}_bytes": max(pe[part] for pe in memory) for part in parts},
    }


def golden() -> dict[str, Metrics]:
    return json.loads(FILE.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found, known = {}, golden() if FILE.is_file() else {}
    for name, pes, objective in cases():
        model = model_file(given.models, name)
        key = title(name, pes, objective)
        found[key] = _measured(model, api.Options(pes=pes, objective=objective, toolchain=COMPILER))
        print(f"{key}: {_difference(known.get(key, {}), found[key])}", flush=True)
    if given.write:
        FILE.write_text(json.dumps(found, indent=1) + "\n")


def _difference(old: Metrics, new: Metrics) -> str:
    changed = [f"{name} {old.get(name, 'unknown')} -> {value}" for name, value in new.items() if old.get(name) != value]
    return "; ".join(changed) or "as before"


if __name__ == "__main__":
    main()
