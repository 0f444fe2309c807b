"""A board of many chips: time and memory to plan, place and build all images, and a run on every PE.

    python benchmarks/large/whole_board.py MODEL... [--board pe-mesh-7296] [--pes N] [--preprocess layout=NHWC]
                                     [--emulate] [--inputs IN.npz]

Time and memory include child processes and begin after the model has been read. With `--emulate` the board runs batches
of frames on the built-in emulator with code on every PE. Every output is compared with the integer reference, and
cycles with the prediction. Inputs are noise, or the different inputs of the file. The exit status is 1 unless every
frame is exact, every PE worked and the prediction is less than a tenth off.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.state import processor_seconds

from npukit import api
from npukit.host.parallel import cores
from npukit.measure.cases import load_cases, rounds
from npukit.measure.golden import golden
from npukit.measure.target import open_target
from npukit.measure.validate import run_round
from npukit.net.reference import evaluate
from npukit.progress import Silent
from npukit.project.build_folder import Build


class Stages(Silent):
    """Start of each stage of a build: seconds, and processor seconds."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, float, float]] = []

    def stage(self, name: str) -> None:
        self.begun.append((name, time.monotonic(), processor_seconds()))


def _gigabytes() -> float:
    """Upper bound of memory: this process, and `cores()` children as large as the largest child."""
    own, other = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (own + cores() * other) / 1e6


def report_build(built: Build, stages: Stages) -> None:
    """Print the stages after the model was read, and the plan's size."""
    stages.stage("done")
    imported = stages.begun[1]
    print("| stage | seconds | of the processor |\n|---|--:|--:|")
    for (text, wall, processor), (_, wall_then, processor_then) in zip(stages.begun, stages.begun[1:], strict=False):
        print(f"| {text} | {wall_then - wall:.1f} | {processor_then - processor:.1f} |")
    last, plan = stages.begun[-1], built.plan()
    print(f"| all but the import | {last[1] - imported[1]:.1f} | {last[2] - imported[2]:.1f} |")
    print(
        f"{plan.pes_used} PEs on {len(plan.chips)} chips, {len(built.manifest.images)} images, "
        f"{plan.frames_of_all} frames a round, at most {_gigabytes():.2f} GB; "
        f"predicted {plan.predicted.latency_cycles:,} cycles a round"
    )


MOST_OFF = 0.1
"""Largest accepted error of the prediction, relative to the measured cycles."""


def emulate(built: Build, inputs: Path | None) -> bool:
    """Run two rounds on all PEs. Return whether the outputs of the first are exact, and whether in the second all PEs
    work and the cycles are near the prediction. The first round bears the costs of the first run."""
    net, plan = built.net(), built.plan()
    cases = load_cases(inputs, net, None) if inputs else golden(net).cases
    chosen = rounds(cases.count, plan.frames_of_all)[0]
    begun = time.monotonic()
    with open_target(built) as target:
        print(f"the emulated board answers after {time.monotonic() - begun:.0f} s", flush=True)
        outputs = run_round(target.session, net, cases, chosen, observe=False)
        before = {pe.pe: pe for pe in target.session.pes()}
        print(f"inputs, a round and outputs after {time.monotonic() - begun:.0f} s", flush=True)
        cycles = target.session.run().cycles
        after = target.session.pes()
    wanted = {case: evaluate(net, [array[case] for array in cases.inputs]) for case in dict.fromkeys(chosen)}
    equal = [
        all(np.array_equal(value, wanted[case][name]) for name, value in zip(net.outputs, got, strict=True))
        for case, got in zip(chosen, outputs, strict=True)
    ]
    worked = sum(pe.frames == before[pe.pe].frames + 1 and pe.instructions > before[pe.pe].instructions for pe in after)
    print(f"{sum(equal)} of {len(equal)} frames exact ({len(wanted)} different inputs)")
    print(f"{worked} of {plan.pes_used} PEs ran their code")
    off = plan.predicted.latency_cycles / cycles - 1
    print(f"{cycles:,} cycles a round, {100 * off:+.1f} % predicted")
    return all(equal) and worked == plan.pes_used and abs(off) < MOST_OFF


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="pe-mesh-7296")
    parser.add_argument("--pes", type=int)
    parser.add_argument("--preprocess", action="append", default=[])
    parser.add_argument("--emulate", action="store_true")
    parser.add_argument("--inputs", type=Path)
    given = parser.parse_args()
    options = api.Options(objective="throughput", pes=given.pes, preprocess=tuple(given.preprocess), io="int8")
    failed = False
    for model in given.models:
        print(f"\n{model.stem} on {given.board}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            stages = Stages()
            built = api.build(model, board=given.board, output=Path(folder) / "out", options=options, progress=stages)
            report_build(built, stages)
            if given.emulate:
                failed |= not emulate(built, given.inputs)
    sys.exit(failed)


if __name__ == "__main__":
    main()
