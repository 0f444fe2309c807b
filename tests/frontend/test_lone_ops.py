"""The networks of `benchmarks/lone_ops.py`: each kind of op has an integer form, except for the kinds named here."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.lone_ops import NAMES, written

from npukit.frontend.models import load_net_from_model
from npukit.net.ops import TvmCode

IN_FLOAT = ("squared difference", "div", "greater and select", "quantize floats", "embedding", "InstanceNormalization")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "running sum"])
def test_a_lone_op_is_computed_in_integers(name: str, tmp_path: Path) -> None:
    net = load_net_from_model(written(name, tmp_path))
    assert any(isinstance(op.attributes, TvmCode) for op in net.ops) == (name in IN_FLOAT)
