"""The device's fuzzers for a few seconds; `python -m fuzz` runs longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.fuzzers import FUZZERS, build, clang_with_fuzzer, fuzz, seeds


@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_that_arrives_upsets_the_device(name: str, tmp_path: Path) -> None:
    clang = clang_with_fuzzer()
    if clang is None:
        pytest.skip("clang with libFuzzer is not here")
    corpus = seeds(name, tmp_path / "corpus")
    done = fuzz(build(name, clang, tmp_path), corpus, "-runs=4000", "-seed=1")
    assert done.returncode == 0, done.stderr[-4000:]
    assert "DONE" in done.stderr
