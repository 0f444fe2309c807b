"""Random int8 ops of TFLite against LiteRT's reference kernels, for long.

PYTHONPATH=kit:tests python -m fuzz.tflite_ops [--seconds 600] [--first SEED]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

from frontend.random_tflite import MAKERS, bundle_of, differing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    until, seed, wrong = monotonic() + given.seconds, given.first, 0
    with tempfile.TemporaryDirectory() as scratch:
        while monotonic() < until:
            wrong += sum(_told(maker, seed, Path(scratch)) for maker in MAKERS)
            seed += 1
    print(f"{seed - given.first} models of each of {len(MAKERS)} kinds, {wrong} wrong")
    return int(wrong > 0)


def _told(maker: str, seed: int, folder: Path) -> bool:
    """Print the differences of a seed. Returns True if there are any."""
    try:
        found = differing(bundle_of(seed, [maker]), folder)
    except Exception as error:
        found = [f"{maker}: {type(error).__name__}: {error}"]
    if found:
        print(f"seed {seed}: {'; '.join(found)}", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
