"""Hostile files: time and memory until npukit answers each with a plan or a named error.

    python benchmarks/hostile.py FOLDER_OR_FILE... [--seconds 5] [--megabytes 500]

Each model file is given to `npukit fit` in a process of its own. Printed are the processor seconds, and the peak memory
of the process or of its largest child. Files that exceed a limit, or end without an answer, are listed at the end, with
exit status 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MODELS = (".tflite", ".onnx")
ANSWERS = (0, 1, 3)
"""Exit statuses of an answer: a plan, a refused model, a model that does not fit."""


def files(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        yield from sorted(each for each in place.iterdir() if each.suffix in MODELS) if place.is_dir() else [place]


def answered(model: Path) -> tuple[int, float, float]:
    """Exit status, processor seconds, peak megabytes."""
    command = [sys.executable, "-c", "from npukit.cli.main import run; run()", "fit", str(model)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--megabytes", type=float, default=500)
    given = parser.parse_args()
    over = []
    for model in files(given.places):
        status, seconds, megabytes = answered(model)
        print(f"{model.name:45} status {status:>3} {seconds:6.1f} s {megabytes:7.0f} MB", flush=True)
        if status not in ANSWERS or seconds > given.seconds or megabytes > given.megabytes:
            over.append(model.name)
    if over:
        sys.exit(f"more than {given.seconds:g} s or {given.megabytes:g} MB, or no answer: {', '.join(over)}")


if __name__ == "__main__":
    main()
