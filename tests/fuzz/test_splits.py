"""A few random splits of random networks, built and run; `python -m fuzz.splits` does so for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.splits import example, outcome
from helpers import first_of


@pytest.mark.parametrize("seed", first_of([2, 4, 6, 8], 2))
def test_every_tile_of_a_random_split_is_the_references(seed: int, tmp_path: Path) -> None:
    found = outcome(example(seed), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked > 0
