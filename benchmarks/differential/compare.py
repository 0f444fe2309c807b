"""Random small networks of each op, type, granularity and format beside LiteRT, TFLite Micro, ONNX Runtime, PyTorch.

    python benchmarks/differential/compare.py [--seed S] [--seeds N] [--only PATTERN] [--write]

A fault saves its network in out/differential and gives exit status 1. Refusals are counted by reason; a reason that
`results.json` lacks is new. `--write` writes `results.json` and the paragraph of `docs/models.md`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from benchmarks.state import CHECKOUT, commit

from differential.judge import FAULT
from differential.report import recorded, write
from differential.run import run, tell, totals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="*", help="names of networks, as onnx/qdq-int8/*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    begun, seeds = monotonic(), range(given.seed, given.seed + given.seeds)
    found = run(seeds, lambda name: fnmatch(name, given.only), CHECKOUT / "out/differential", tell)
    whole = totals(found)
    if given.write:
        write({"commit": commit(), "seeds": [seeds.start, seeds.stop - 1], **asdict(whole)})
    known = recorded()["refusals"]
    for reason, count in whole.refusals.items():
        print(f"refused {count}{'' if reason in known else ', new'}: {reason}")
    print(f"{whole}; {monotonic() - begun:.0f} s")
    return int(FAULT in whole.outcomes)


if __name__ == "__main__":
    sys.exit(main())
