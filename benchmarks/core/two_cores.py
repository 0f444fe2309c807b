"""Cycles between frames of a network on one core of a chip and on both cores, on the built-in emulator.

python benchmarks/core/two_cores.py MODEL [BOARD ...]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal, get_args

from npukit import api

BOARDS = ("pico", "pico2", "pico2-rv")
Objective = Literal["latency", "throughput"]


def interval(model: str, board: str, objective: Objective) -> int:
    """Cycles between frames. Stops the program if an output differs."""
    with tempfile.TemporaryDirectory() as folder:
        built = api.build(model, board=board, output=Path(folder) / "build", options=api.Options(objective=objective))
        if not api.validate(built.folder, on="emulator", cases=1).passed:
            raise SystemExit(f"{board} computes something else")
        found = api.bench(built.folder, on="emulator", frames=2).interval_cycles
        assert found is not None
        return found


def main() -> None:
    model, *boards = sys.argv[1:]
    print("| board | one core | both | times |\n|---|---|---|---|")
    for board in boards or BOARDS:
        one = interval(model, board, "latency")
        both = min(interval(model, f"{board}-dual", objective) for objective in get_args(Objective))
        print(f"| `{board}` | {one:,} | {both:,} | {one / both:.2f} |", flush=True)


if __name__ == "__main__":
    main()
