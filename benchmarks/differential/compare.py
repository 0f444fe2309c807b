"""Random small networks of each op, type, granularity and format: npukit's integer reference beside LiteRT, TFLite
Micro, ONNX Runtime and PyTorch.

    python benchmarks/differential/compare.py [--seed S] [--seeds N] [--only PATTERN] [--write]

Prints refusals by reason. A fault saves its network in out/differential and gives exit status 1. `--write` keeps the
totals for `docs/models.md` in `results.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from benchmarks.state import CHECKOUT, commit

from differential.judge import FAULT, Verdict
from differential.run import COMMAND, run, totals

RESULTS = Path(__file__).with_name("results.json")
FOLDER = CHECKOUT / "out/differential"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="*", help="names of networks, as onnx/qdq-int8/*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    begun, seeds = monotonic(), range(given.seed, given.seed + given.seeds)
    found = run(seeds, lambda name: fnmatch(name, given.only), FOLDER, _tell)
    _tell_refusals(found)
    print(f"{totals(found)}; {monotonic() - begun:.0f} s")
    if given.write:
        figures = {"commit": commit(), "seeds": [seeds.start, seeds.stop - 1], **asdict(totals(found))}
        RESULTS.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(any(each.outcome == FAULT for each in found))


def _tell(verdict: Verdict) -> None:
    if verdict.outcome == FAULT:
        again = COMMAND.format(seed=verdict.seed, name=verdict.name)
        print(f"FAULT {verdict.name}: {verdict.said}\n    {again}", flush=True)


def _tell_refusals(found: Sequence[Verdict]) -> None:
    for reason, count in totals(found).refusals.items():
        print(f"refused {count}: {reason}")


if __name__ == "__main__":
    sys.exit(main())
