"""The pages of operators are made of their evidence, and agree with `npukit ops`."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime, an oracle, is not installed")

from benchmarks import compatibility

from npukit import api
from npukit.net.ops.table import SPECS


def test_the_pages_are_made_of_their_evidence() -> None:
    made = compatibility.blocks()
    for path in compatibility.PAGES:
        text = path.read_text(encoding="utf-8")
        assert compatibility.page(path, made) == text, "python benchmarks/compatibility.py --write"
        for _, name, _ in compatibility.BLOCK.findall(text):
            assert made.pop(name)
    assert not made


@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_every_op_of_npukit_ops_has_a_row_and_an_engine(form: str) -> None:
    found = {name: text for name, text in compatibility.blocks().items() if name.endswith(form)}
    named = {name for kind in api.ops() for name in kind["formats"][form]}
    assert named
    assert named <= {*re.findall(r"^\| `(\w+)` ", found[f"evidence of {form}"], re.M)}
    assert named <= {*re.findall(r"`(\w+)`", found[f"operators of {form}"].partition("Not read")[0])}


@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_most_ops_alone_become_a_kind_that_names_them(form: str) -> None:
    """Random parameters make some simpler: a block of a pixel moves nothing, an average with a scale is a filter."""
    recorded, others = compatibility.recorded()["kinds"][form], list[str]()
    for op, kinds in recorded.items():
        named = {kind for kind, spec in SPECS.items() if op in getattr(spec.names, form)}
        if named and not named & {*kinds}:
            others.append(f"{op} becomes {kinds}, named by {named}")
    assert len(others) < len(recorded) / 4, others


def test_an_op_is_read_or_not() -> None:
    without = compatibility.unread()
    assert "EQUAL" not in without["tflite"]
    assert {"LSTM", "HASHTABLE"} <= {*without["tflite"]}
    assert "Conv" not in without["onnx"]
    assert "StringSplit" in without["onnx"]


def test_a_cell_tells_equal_from_within() -> None:
    cells = [{}, {"equal": 2}, {"equal": 1, "within": 2}, {"within": 1, "listed": 1}]
    assert [compatibility._cell(each) for each in cells] == ["", "= 2", "3", "2 †"]
