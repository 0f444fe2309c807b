"""The MLPerf Tiny networks and the digits on 1 to 16 PEs, a frame alone and frames in batches: emulated, all compared.

    python benchmarks/scaling.py FOLDER_OF_MODELS [NETWORK ...] [--pes 1 2 4 8 16] [--objective latency throughput]

Each row is printed and kept in scaling.json as soon as it is measured; scaling.md is generated from scaling.json. So a
run may be done in parts, network by network. Every output is compared with TFLite Micro's where the models' folder has
it, and every tile of every layer with the integer reference. Cycles are the latency of one frame, or the interval
between frames of rounds in steady state; predicted cycles come from the plan.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import state
from benchmarks.state import DIGITS, commit, model_file, untuned

from npukit import api
from npukit.errors import DoesNotFit
from npukit.project.build_folder import Build
from npukit.project.toolchain import find_toolchain

ROWS = Path(__file__).with_name("scaling.json")
TABLES = Path(__file__).with_name("scaling.md")
NETWORKS = {DIGITS.stem: "digits", **state.NETWORKS}
OBJECTIVES = ("latency", "throughput")
PES = (1, 2, 4, 8, 16)
TOOLCHAIN = "zig"
CASES = 10
"""Least number of compared cases. A batch compares as many as it has frames."""

HEADINGS = (
    *("network", "PEs allowed", "used", "frames a batch", "cycles", "predicted"),
    *("error", "against 1 PE", "compared", "at"),
)

ABOUT = """# 1 to 16 PEs

The MLPerf Tiny networks and the digits on `pe-mesh`, on the built-in emulator, with nothing tuned:
`python benchmarks/scaling.py FOLDER_OF_MODELS`. Cycles are those of one frame (latency), or between
frames of batches (throughput). Outputs equal TensorFlow Lite Micro's, tiles the integer
reference's."""

Row = Mapping[str, Any]


def measured(models: Path, name: str, pes: int, objective: str) -> Row:
    """The figures of one network, built, compared and timed; or the reason why it does not fit."""
    model = model_file(models, name)
    with untuned() as scratch:
        options = api.Options(pes=pes, objective=objective, toolchain=TOOLCHAIN)
        try:
            built = api.build(model, output=scratch / "out", options=options)
        except DoesNotFit as error:
            return {"fault": error.message}
        return _row(built, DIGITS.with_name("digits.npz") if model == DIGITS else model.with_suffix(".npz"))


def _row(built: Build, inputs: Path) -> Row:
    plan = built.plan()
    with np.load(inputs) as arrays:
        expect = "out0_tflm" if "out0_tflm" in arrays else None
    found = api.validate(built.folder, inputs=inputs, expect=expect, cases=max(CASES, plan.frames))
    run, batch = api.bench(built), plan.objective == "throughput"
    return {
        "pes": len(plan.pes),
        "frames": plan.frames,
        "streams": plan.streams,
        "cycles": run.interval_cycles if batch else run.latency_cycles,
        "predicted": plan.predicted.interval_cycles if batch else plan.predicted.latency_cycles,
        "compared": found.cases,
        "tiles": found.tiles_checked,
        "equal": found.passed,
    }


def tables(rows: Mapping[str, Row]) -> Iterator[str]:
    """The lines of scaling.md."""
    yield ABOUT
    for objective in OBJECTIVES:
        yield ""
        yield f"## {objective.capitalize()}"
        yield ""
        yield f"| {' | '.join(HEADINGS)} |"
        yield "|---|--:|--:|--:|--:|--:|--:|--:|---|---|"
        for name in NETWORKS:
            found = {pes: rows[key(name, pes, objective)] for pes in PES if key(name, pes, objective) in rows}
            yield from (line(name, pes, row, found.get(1, {})) for pes, row in found.items())


def line(name: str, pes: int, row: Row, alone: Row) -> str:
    """One row of a table. `alone`: the row of 1 PE."""
    if "fault" in row:
        return f"| {NETWORKS[name]} | {pes} | | | | | | | {row['fault']} | {row['state']} |"
    error = f"{100 * (row['predicted'] / row['cycles'] - 1):+.1f} %"
    gain = f"{alone['cycles'] / row['cycles']:.2f}" if pes > 1 and "cycles" in alone else ""
    equal = "equal" if row["equal"] else "DIFFERENT"
    streamed = ", constants streamed" if row["streams"] else ""
    compared = f"{row['compared']} frames, {row['tiles']:,} tiles {equal}"
    return (
        f"| {NETWORKS[name]}{streamed} | {pes} | {row['pes']} | {row['frames']} | {row['cycles']:,} |"
        f" {row['predicted']:,} | {error} | {gain} | {compared} | {row['state']} |"
    )


def key(name: str, pes: int, objective: str) -> str:
    return f"{name}, {objective}, {pes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK")
    parser.add_argument("--pes", type=int, nargs="+", default=PES)
    parser.add_argument("--objective", nargs="+", default=OBJECTIVES, choices=OBJECTIVES)
    given = parser.parse_args()
    at = f"{commit()}, by {find_toolchain(TOOLCHAIN).title}"
    for name in given.networks:
        for objective in given.objective:
            for pes in given.pes:
                row = {**measured(given.models, name, pes, objective), "state": at}
                rows = json.loads(ROWS.read_text()) if ROWS.is_file() else {}
                rows[key(name, pes, objective)] = row
                ROWS.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
                TABLES.write_text("\n".join(tables(rows)) + "\n")
                print(objective, line(name, pes, row, rows.get(key(name, 1, objective), {})), flush=True)


if __name__ == "__main__":
    main()
