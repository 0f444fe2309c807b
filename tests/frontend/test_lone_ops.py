"""The networks of `benchmarks/lone_ops.py`: each kind of op has an integer form, except for the kinds named here."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.lone_ops import BOARDS, NAMES, PAGE, REASONS, known, measured, page, slow, worse, written

from helpers import first_of, needs
from npukit.frontend.models import load_net_from_model
from npukit.net.ops import TvmCode

IN_FLOAT = ("quantize floats",)


@pytest.mark.parametrize("name", NAMES)
def test_a_lone_op_is_computed_in_integers(name: str, tmp_path: Path) -> None:
    net = load_net_from_model(written(name, tmp_path))
    codes = [op.attributes.code for op in net.ops if isinstance(op.attributes, TvmCode)]
    assert any("float" in code for code in codes) == (name in IN_FLOAT)


def test_the_page_has_the_reason_for_each_slow_op() -> None:
    assert set(slow(known())) == set(REASONS)
    assert PAGE.read_text(encoding="utf-8") == page(known())


@needs("arm-none-eabi-gcc")
@pytest.mark.parametrize("name", first_of(["sub", "add", "maximum", "mean of pixels", "softmax", "transpose"]))
def test_an_op_in_assembly_takes_no_more_cycles_than_on_the_page(name: str) -> None:
    assert not worse(known()[name]["M4F"], measured(name, BOARDS["M4F"]))
