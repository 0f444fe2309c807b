"""Some damaged files; `python -m fuzz.models` takes any number."""

from __future__ import annotations

from itertools import count

import pytest

from fuzz.models.driver import Fault, run

FILES = {"tflite": 200, "onnx_example": 60}


@pytest.mark.parametrize("parser", FILES)
def test_damaged_files_are_read_or_refused(parser: str) -> None:
    taken = count(1)
    found = list(run(parser, 10_000_000, lambda: next(taken) <= FILES[parser]))
    assert not [each for each in found if isinstance(each, Fault)]
    assert len(found) == FILES[parser]
    assert found.count("refused") > FILES[parser] // 4
    assert found.count("equal") > (FILES[parser] // 20 if parser == "tflite" else -1)
