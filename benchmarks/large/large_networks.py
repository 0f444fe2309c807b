"""MobileNetV1, MobileNetV2 and ResNet-50 on one full chip: every frame and tile compared, then timed.

    python benchmarks/large/large_networks.py FOLDER [mobilenet_v1 | mobilenet_v2 | resnet50 ...] [--board pe-mesh-152]
        [--objective throughput | latency]

FOLDER is the output of `imagenet_models.py`. A round's frames lie in the chip's DRAM, pixel by pixel (NHWC) as a camera
writes them. A round is timed from the root's start message to the last output on the root. The chip's utilisation is
the MACs of one frame over the cycles between frames, as a share of the peak of the board's MAC arrays.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import process_time

from npukit import api
from npukit.board.board import load_board
from npukit.errors import DoesNotFit
from npukit.measure.bench import Bench
from npukit.plan.predict.floors import with_measured
from npukit.project.build_folder import Build

NETWORKS = ("mobilenet_v1", "mobilenet_v2", "resnet50")
MACS_OF_A_PE = 64
COLUMNS = (
    f"{'network':14}{'PEs':>5}{'frames':>8}{'interval':>11}{'predicted':>11}",
    f"{'MAC/cycle':>11}{'of peak':>9}",
)


def row(folder: Path, name: str, board: str, objective: str) -> str:
    """A line of the table: one network."""
    with tempfile.TemporaryDirectory() as scratch:
        pes = load_board(board).pe_count
        options = api.Options(objective=objective, pes=pes, preprocess=("layout=NHWC",), io="int8")
        began = process_time()
        try:
            built = api.build(folder / f"{name}.onnx", board=board, output=Path(scratch) / "out", options=options)
        except DoesNotFit as error:
            return f"{name:14} {error.message}"
        building = process_time() - began
        checked = api.validate(Path(scratch) / "out")
        measured = api.bench(Path(scratch) / "out")
        plan = built.plan()
    used = len(plan.pes)
    interval = measured.latency_cycles if objective == "latency" else measured.interval_cycles
    assert interval, "the built-in emulator counts cycles"
    share = measured.macs / interval / (MACS_OF_A_PE * pes)
    exact = f"{checked.cases} frames" if checked.passed else "DIFFERS"
    figures = (
        f"{used:5}{plan.frames:8}{interval:11,}{plan.predicted.interval_cycles:11,}{measured.macs / interval:11,.0f}"
    )
    return f"{name:14}{figures}{share:9.1%}{exact:>14}  built in {building:.0f} s of CPU\n{_account(built, measured)}"


def _account(built: Build, measured: Bench) -> str:
    """The floors of latency and interval, and what the PEs do with their cycles."""
    floors = with_measured(
        built.manifest.summary["floors"], measured.latency_cycles or 0, measured.interval_cycles or 0
    )
    told = ", ".join(f"{label} {latency:,} / {interval:,}" for label, latency, interval in floors)
    whole = (measured.latency_cycles or 1) * len(measured.pes)
    arrays, idle = (
        sum(part) / whole for part in ([pe.npu_busy for pe in measured.pes], [pe.wait for pe in measured.pes])
    )
    return f"  latency / interval: {told}; arrays at work {arrays:.0%}, cores idle {idle:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--board", default="pe-mesh-152")
    parser.add_argument("--objective", choices=("throughput", "latency"), default="throughput")
    given = parser.parse_args()
    print(*COLUMNS, f"{'exact':>14}", sep="")
    for name in given.networks:
        print(row(given.folder, name, given.board, given.objective), flush=True)


if __name__ == "__main__":
    main()
