"""Damaged files from a user, each kind once."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from fuzz.givens import GIVENS, outcome
from helpers import first_of


@pytest.mark.parametrize("number", first_of(range(40), len(GIVENS)))
def test_a_verb_works_or_says_why_not(number: int, tmp_path: Path) -> None:
    build = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=2).folder
    assert outcome(build, number)[1] == ""
