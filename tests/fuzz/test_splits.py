"""A few random splits of random networks, built and run; `python -m fuzz.splits` runs many."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.splits import example, first_difference, outcome
from helpers import first_of


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", first_of([2, 4, 6, 8], 2))
def test_every_tile_of_a_random_split_is_the_references(seed: int, tmp_path: Path) -> None:
    found = outcome(example(seed), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked > 0


@pytest.mark.parametrize("seed", first_of([0, 1, 10, 13, 17, 27, *range(28, 60)], 6))
def test_a_network_that_remembers_is_right_in_any_order_of_turns(seed: int) -> None:
    """Random splits (0, 17, 27), and list schedules with early ops of a state (1, 10, 13)."""
    given = example(seed, states=True)
    for turns in range(2):
        assert first_difference(given, turns) is None


@pytest.mark.exhaustive
def test_a_network_that_remembers_is_right_on_the_emulator(tmp_path: Path) -> None:
    found = outcome(example(13, states=True), tmp_path)
    assert found.passed, found.mismatches
