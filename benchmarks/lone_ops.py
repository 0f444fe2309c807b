"""Ops that delay a frame: a single PE computes them for more than a third of the frame, while others sleep.

    python benchmarks/lone_ops.py MODEL_OR_FOLDER... [--pes 16] [--calibration FILE.npz] [--io int8]

Each model is planned, not built. Cycles are predicted, and an op's cycles are its share of the critical path. A float
model without calibration data is computed in float. The models collected or made by `zoo.py` lie in FOLDER/models. The
last lines count the ops by kind, the most frequent first.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from npukit import api
from npukit.errors import NpukitError

SHARE = 1 / 3
"""Largest accepted share of a frame for an op on one PE."""
SUFFIXES = (".tflite", ".onnx", ".pt2")


def models(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        yield from sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES) if path.is_dir() else [path]


def lone_ops(told: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
    """The ops that one PE computes for more than `SHARE` of the frame, with cycles on the critical path."""
    frame = {row["name"]: row["cycles"] for row in told["frame"]}
    whole = sum(frame.values())
    for op in told["ops"]:
        cycles = frame.get(op["name"], 0)
        if len(op["pes"]) == 1 and cycles > SHARE * whole:
            yield op, cycles


def fitted(model: Path, given: argparse.Namespace) -> dict[str, Any]:
    """The result of `npukit fit`, in float if it refuses otherwise and proposes `--float`."""
    wanted = {"pes": given.pes, "calibration": given.calibration, "io": given.io}
    try:
        return api.fit(model, options=api.Options(**wanted))
    except NpukitError as error:
        if not any("--float" in each for each in error.tries):
            raise
        return api.fit(model, options=api.Options(**{**wanted, "calibration": None}, in_float=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--pes", type=int, default=16)
    parser.add_argument("--calibration", type=Path)
    parser.add_argument("--io", default="file")
    given = parser.parse_args()
    kinds: Counter[str] = Counter()
    for model in models(given.models):
        try:
            told = fitted(model, given)
        except NpukitError as error:
            print(f"{model.name}: {str(error).splitlines()[0]}", flush=True)
            continue
        found = list(lone_ops(told))
        kinds.update(op["op"] for op, _ in found)
        named = "; ".join(f"{op['name']} ({op['op']}, {op['engine']}) {cycles:,}" for op, cycles in found)
        latency, inputs = told["predicted"]["latency_cycles"], told["inputs"]
        types = ", ".join(f"{each['type']} {each['shape']}" for each in inputs)
        print(f"{model.name}: {latency:,} cycles on {told['pes_used']} PEs of {types}: {named or 'none'}", flush=True)
    print(*(f"{count} x {kind}" for kind, count in kinds.most_common()), sep="\n")


if __name__ == "__main__":
    main()
