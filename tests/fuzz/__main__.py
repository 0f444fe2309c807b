"""Fuzz parsers and the emulator for long: PYTHONPATH=kit:tests python -m fuzz [--seconds 600] [--only host]"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from fuzz import emulator, test_host
from fuzz.fuzzers import FUZZERS, build, clang_with_fuzzer, fuzz, seeds

HOST, EMULATOR = "host", "emulator"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=600, help="for each fuzzer")
    parser.add_argument("--only", choices=[HOST, EMULATOR, *FUZZERS], nargs="+", default=[HOST, EMULATOR, *FUZZERS])
    arguments = parser.parse_args()
    seconds, devices = arguments.seconds, [name for name in FUZZERS if name in arguments.only]
    if HOST in arguments.only:
        print(f"{HOST}: {test_host.fuzz(seconds):,} examples in {seconds} seconds, no fault", flush=True)
    if EMULATOR in arguments.only:
        seed = random.getrandbits(32)
        print(f"{EMULATOR}: seed {seed}", flush=True)
        outcomes = emulator.fuzz(seconds, seed)
        print(f"{EMULATOR}: {outcomes.total():,} cases in {seconds} seconds, no crash:", dict(outcomes.most_common()))
    return _fuzz_devices(devices, seconds) if devices else 0


def _fuzz_devices(names: list[str], seconds: int) -> int:
    clang = clang_with_fuzzer()
    if clang is None:
        print("clang with libFuzzer is not here: apt install clang")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        return max(_fuzz(name, clang, Path(scratch) / name, seconds) for name in names)


def _fuzz(name: str, clang: str, folder: Path, seconds: int) -> int:
    folder.mkdir()
    program = build(name, clang, folder)
    done = fuzz(program, seeds(name, folder / "corpus"), f"-max_total_time={seconds}", "-print_final_stats=1")
    lines = done.stderr.splitlines()
    print(f"{name}: status {done.returncode}", *lines[-60 if done.returncode else -8 :], sep="\n  ")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
