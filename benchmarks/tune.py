"""Gains of `npukit tune`: the table of docs/measure.md, a line a network.

    python benchmarks/tune.py FOLDER_OF_MODELS [--lines digits-float kws-16] [--budget 300]

Each network is built untuned, tuned with records of its own, and built again. The second build must equal the tuned one
byte for byte, without a trial. Trials are measured on the built-in emulator or on QEMU, and count only if exact. The
number of trials within a budget of seconds depends on the machine; the line shows it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from npukit import api
from npukit.tuner.session import Chosen, Tuned
from npukit.tuning import VARIABLE

EXAMPLES = Path(__file__).resolve().parents[1] / "examples/digits"
MESH, CORE = "pe-mesh", "mps2-an386"
IN_FLOAT = api.Options(in_float=True)
SIXTEEN = api.Options(pes=16)
ROUNDS = api.Options(pes=16, objective="throughput")


@dataclass(frozen=True)
class Line:
    """A network's common name, file, board and build options."""

    network: str
    model: str
    board: str
    options: api.Options


LINES: Mapping[str, Line] = {
    "kws-core": Line("keyword spotting", "kws_ref_model.tflite", CORE, api.Options()),
    "digits-float": Line("digits in float", str(EXAMPLES / "digits_float.onnx"), CORE, IN_FLOAT),
    "kws-float": Line("keyword spotting in float", "kws_ref_model_float32.tflite", CORE, IN_FLOAT),
    "kws-16": Line("keyword spotting, 16 PEs", "kws_ref_model.tflite", MESH, SIXTEEN),
    "ad-16": Line("anomaly detection, 16 PEs", "ad01_int8.tflite", MESH, SIXTEEN),
    "vww-16": Line("visual wake words, 16 PEs", "vww_96_int8.tflite", MESH, SIXTEEN),
    "digits-rounds": Line("digits, rounds on 16 PEs", str(EXAMPLES / "digits_int8.tflite"), MESH, ROUNDS),
    "kws-rounds": Line("keyword spotting, rounds on 16 PEs", "kws_ref_model.tflite", MESH, ROUNDS),
    "ad-rounds": Line("anomaly detection, rounds on 16 PEs", "ad01_int8.tflite", MESH, ROUNDS),
    "vww-rounds": Line("visual wake words, rounds on 16 PEs", "vww_96_int8.tflite", MESH, ROUNDS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--lines", nargs="+", choices=LINES, default=list(LINES))
    parser.add_argument("--budget", type=int, default=300)
    given = parser.parse_args()
    print("| network | board | before | after | trials | | what |\n|---|---|--:|--:|--:|--:|---|")
    for name in given.lines:
        with tempfile.TemporaryDirectory(prefix="npukit-tune-bench-") as scratch:
            print(row(LINES[name], given.models, given.budget, Path(scratch)), flush=True)


def row(line: Line, models: Path, budget: int, scratch: Path) -> str:
    os.environ[VARIABLE] = str(scratch / "tuned.json")
    model = models / line.model
    built = api.build(model, board=line.board, output=scratch / "out", options=line.options)
    tuned = api.tune(built.folder, budget_seconds=budget)
    following = api.build(model, board=line.board, output=scratch / "next", options=line.options)
    if following.build_id != api.load(built.folder).build_id:
        raise SystemExit(f"{line.network}: the second build is not what tuning left")
    gain = f"{100 * (1 - tuned.after / tuned.before):.1f} %"
    before, after = f"{tuned.before:,} {tuned.unit}", f"{tuned.after:,}"
    trials = f"{tuned.trials} in {tuned.seconds:.0f} s"
    return f"| {line.network} | `{line.board}` | {before} | {after} | {trials} | {gain} | {gains(tuned)} |"


def gains(tuned: Tuned) -> str:
    """The three kernels or mappings with the largest gains."""
    faster = sorted((each for each in tuned.kernels if each.after < each.before), key=gain_of, reverse=True)
    return "; ".join(f"{each.name} {each.before:,} to {each.after:,}: {each.choice[:60]}" for each in faster[:3])


def gain_of(each: Chosen) -> int:
    return each.before - each.after


if __name__ == "__main__":
    main()
