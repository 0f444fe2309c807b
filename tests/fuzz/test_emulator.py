"""The built-in emulator with random programs, descriptors, commands and fault plans, for a few seconds."""

from __future__ import annotations

from fuzz.emulator import Fuzzer

CASES = 25


def test_nothing_that_runs_on_it_crashes_the_emulator() -> None:
    fuzzer = Fuzzer(seed=1)
    try:
        for _ in range(CASES):
            fuzzer.one()
    finally:
        fuzzer.close()
    assert sum(fuzzer.outcomes.values()) == CASES
    assert len(fuzzer.outcomes) > 3
