"""Thousands of damaged files: PYTHONPATH=kit:tests python -m fuzz.models onnx --minutes 10 --files 10000

Prints each fault at once, with the number that makes the file again; exits with 1 after any fault.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz.models.driver import NOT_JUDGED, Fault, run

FAULTS = {"wrong": "otherwise than the oracle", "slow": "slow", "large": "large", "other": ""}
"""Kinds of fault, by the first words of their message."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parser", choices=("tflite", "onnx", "onnx_example", "pt2"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--files", type=int, default=1 << 30, help="how many, if there is time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--keep", type=Path, help="a folder for the files that do harm")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    end = time.monotonic() + 60 * given.minutes
    for found in run(given.parser, given.first, lambda: time.monotonic() < end and sum(counts.values()) < given.files):
        counts[_kind(found)] += 1
        if isinstance(found, Fault):
            print(f"{given.parser} {found.number}: {found.what[:300]}", flush=True)
            found.keep(given.parser, given.keep)
    print(_told(given.parser, counts))
    return 1 if any(counts[kind] for kind in FAULTS) else 0


def _kind(found: str | Fault) -> str:
    if isinstance(found, str):
        return found
    return next((kind for kind, said in FAULTS.items() if found.what.startswith(said)), "other")


def _told(parser: str, counts: Counter[str]) -> str:
    """A line of counts, and a line for each reason of files not judged."""
    reasons = {kind: count for kind, count in counts.most_common() if kind.startswith(NOT_JUDGED)}
    faults = ", ".join(f"{kind} {counts[kind]:,}" for kind in FAULTS)
    compared = counts["equal"] + counts["wrong"]
    accepted = counts["net"] + compared + sum(reasons.values())
    total = f"{parser}: {sum(counts.values()):,} files, accepted {accepted:,}, compared {compared:,}; {faults}"
    return "\n  ".join((total, *(f"{kind}: {count:,}" for kind, count in reasons.items())))


if __name__ == "__main__":
    sys.exit(main())
