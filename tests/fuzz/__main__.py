"""Fuzz the device's parsers for long: PYTHONPATH=kit:tests python -m fuzz [--seconds 600]"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fuzz.fuzzers import FUZZERS, build, clang_with_fuzzer, fuzz, seeds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for each fuzzer")
    seconds = parser.parse_args().seconds
    clang = clang_with_fuzzer()
    if clang is None:
        print("clang with libFuzzer is not here: apt install clang")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        return max(_fuzz(name, clang, Path(scratch) / name, seconds) for name in FUZZERS)


def _fuzz(name: str, clang: str, folder: Path, seconds: int) -> int:
    folder.mkdir()
    program = build(name, clang, folder)
    done = fuzz(program, seeds(name, folder / "corpus"), f"-max_total_time={seconds}", "-print_final_stats=1")
    lines = done.stderr.splitlines()
    print(f"{name}: status {done.returncode}", *lines[-60 if done.returncode else -8 :], sep="\n  ")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
