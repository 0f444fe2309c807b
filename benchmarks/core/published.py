"""ST's MLPerf Tiny results on a NUCLEO-L4R5ZI beside npukit's cycles on that board: a built-in emulator, no silicon.

    python benchmarks/core/published.py FOLDER_OF_MODELS [--networks kws ad]

ST's are 120 MHz over the throughput that ST submitted, of ST's own kernels (`benchmarks/core/cortex_m4.py`). npukit's:
what its kernels take where no memory makes the core wait (the AN386, which has the same core); what they take on the
board with its flash's waits, with constants copied to SRAM as far as that gains; and what the planner predicted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from npukit import api

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.core.cortex_m4 import NETWORKS

BOARD, WITHOUT_WAITS = "nucleo-l4r5zi", "mps2-an386"
HEAD = (
    "network",
    "ST's, on silicon",
    "npukit, without waits",
    "npukit",
    "predicted",
    "difference",
    "ST's over npukit's",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    given = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|---{'|--:' * (len(HEAD) - 1)}|")
    for network in given.networks:
        name, peer = NETWORKS[network]
        without, _ = _cycles(given.models / f"{name}.tflite", WITHOUT_WAITS)
        taken, predicted = _cycles(given.models / f"{name}.tflite", BOARD)
        counts = (f"{each:,}" for each in (peer.st_cycles, without, taken, predicted))
        difference, ratio = f"{taken / predicted - 1:+.1%}", f"{peer.st_cycles / taken:.2f}"
        print(f"| {' | '.join((network, *counts, difference, ratio))} |", flush=True)


def _cycles(model: Path, board: str) -> tuple[int, int]:
    """Cycles of a frame that was exact, and those predicted."""
    with tempfile.TemporaryDirectory() as folder:
        built = api.build(model, board=board, output=Path(folder) / "build", options=api.Options(engine="cpu"))
        if not api.validate(built.folder, on="emulator", cases=1).passed:
            raise SystemExit(f"{model.stem} computes something else on {board}")
        found = api.bench(built.folder, on="emulator", frames=1).latency_cycles
        assert found is not None
        return found, built.plan().predicted.latency_cycles


if __name__ == "__main__":
    main()
