"""Damaged files by the thousand: PYTHONPATH=kit:tests python -m fuzz.models onnx --minutes 10

Prints what it finds as it finds it, with the number that makes the file again; exits with 1 if it found anything.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz.models.driver import Fault, run


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parser", choices=("tflite", "onnx", "onnx_example", "pt2"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--keep", type=Path, help="a folder for the files that do harm")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    end = time.monotonic() + 60 * given.minutes
    for found in run(given.parser, given.first, lambda: time.monotonic() < end):
        counts["fault" if isinstance(found, Fault) else found] += 1
        if isinstance(found, Fault):
            print(f"{given.parser} {found.number}: {found.what[:300]}", flush=True)
            found.keep(given.parser, given.keep)
    print(f"{given.parser}: {sum(counts.values())} files: {dict(counts)}")
    return 1 if counts["fault"] else 0


if __name__ == "__main__":
    sys.exit(main())
