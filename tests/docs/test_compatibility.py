"""The page of operators is made of its evidence, and agrees with `npukit ops`."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime, an oracle, is not installed")

from benchmarks import compatibility

from npukit import api
from npukit.net.ops.table import SPECS

PAGE = compatibility.PAGE.read_text(encoding="utf-8")


def _section(form: str) -> str:
    return PAGE.partition(f"## {compatibility.TITLES[form]}\n")[2].partition("\n## ")[0]


def test_the_page_is_made_of_its_evidence() -> None:
    assert compatibility.page() == PAGE, "python benchmarks/compatibility.py --write"


@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_every_op_of_npukit_ops_has_a_row(form: str) -> None:
    rows = set(re.findall(r"^\| `(\w+)` ", _section(form), re.M))
    named = {name for kind in api.ops() for name in kind["formats"][form]}
    assert named
    assert named <= rows


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
