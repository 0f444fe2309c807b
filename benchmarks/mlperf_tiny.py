"""The MLPerf Tiny networks on the mesh: cycles measured and predicted, every output compared with TFLite Micro's.

    python benchmarks/mlperf_tiny.py FOLDER_OF_MODELS [--pes 1 2 4 8 16] [--objective throughput]

Cycles are the latency of one frame, or for throughput the interval between frames.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from npukit import api
from npukit.errors import DoesNotFit

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")


def row(models: Path, name: str, pes: int, objective: str) -> str:
    """A line of the table: one network on at most `pes` PEs."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out"
        try:
            options = api.Options(pes=pes, objective=objective)
            built = api.build(models / f"{name}.tflite", output=folder, options=options)
        except DoesNotFit:
            return f"{name:24} {pes:>4} {'does not fit':>12}"
        found = api.validate(folder, inputs=models / f"{name}.npz", expect="out0_tflm")
        measured = api.bench(folder)
        used = built.manifest.summary["pes_used"]
    exact = "exact" if found.passed else "DIFFERS"
    predicted = built.manifest.summary["predicted"]
    which = "interval_cycles" if objective == "throughput" else "latency_cycles"
    figures = f"{getattr(measured, which):>12,} {predicted[which]:>12,} {measured.macs_per_cycle:>9}"
    return f"{name:24} {used:>4} {figures} {exact:>8} in {found.cases} cases"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path)
    parser.add_argument("--pes", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--objective", default="latency", choices=["latency", "memory", "throughput"])
    given = parser.parse_args()
    print(f"{'network':24} {'PEs':>4} {'cycles':>12} {'predicted':>12} {'MAC/cycle':>9}")
    for name in MODELS:
        for pes in given.pes:
            print(row(given.models, name, pes, given.objective), flush=True)


if __name__ == "__main__":
    main()
