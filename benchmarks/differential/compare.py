"""Random small networks of each op, type, granularity and format beside LiteRT, TFLite Micro, ONNX Runtime, PyTorch.

    python benchmarks/differential/compare.py [--seed S] [--seeds N] [--only PATTERN] [--write]

A fault saves its network in out/differential and gives exit status 1. Refusals are counted by reason; a reason that
`results.json` lacks is new. `--write` writes `results.json` and the paragraph of `docs/compatibility.md`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from fnmatch import fnmatch
from itertools import count
from pathlib import Path
from time import monotonic

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from benchmarks.state import CHECKOUT, commit

from differential.judge import FAULT, Verdict
from differential.report import recorded, write
from differential.run import run, tell, totals

EVERY = 100
"""Networks from one line of progress to the next."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="*", help="names of networks, as onnx/qdq-int8/*")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    begun, seeds, numbers = monotonic(), range(given.seed, given.seed + given.seeds), count(1)

    def told(verdict: Verdict) -> None:
        tell(verdict)
        if (number := next(numbers)) % EVERY == 0:
            print(f"{number} networks, {monotonic() - begun:.0f} s", file=sys.stderr, flush=True)

    found = run(seeds, lambda name: fnmatch(name, given.only), CHECKOUT / "out/differential", told)
    whole = totals(found)
    if given.write:
        write({"commit": commit(), "seeds": [seeds.start, seeds.stop - 1], **asdict(whole)})
    known = recorded()["refusals"]
    for reason, times in whole.refusals.items():
        print(f"refused {times}{'' if reason in known else ', new'}: {reason}")
    print(f"{whole}; {monotonic() - begun:.0f} s")
    return int(FAULT in whole.outcomes)


if __name__ == "__main__":
    sys.exit(main())
