"""Sums computed in parts on several PEs, by C on the emulator: every tile equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS
from npukit import api
from npukit.plan.ir.plan import Compute

PLAN = """
[ops.conv2d_2]
sums = 3
pes = [0]
[ops.conv2d_2_sums_0]
pes = [1, 2]
[ops.conv2d_2_sums_1]
pes = [3]
[ops.conv2d_2_sums_2]
pes = [4]
[ops.dense_0]
sums = 2
[ops.dense_0_sums_0]
pes = [2]
"""


@pytest.mark.exhaustive
def test_the_digits_with_sums_in_parts(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    options = api.Options(plan=str(tmp_path / "plan.toml"))
    built = api.build(DIGITS / "digits_int8.tflite", output=tmp_path / "out", options=options)
    assert [op.name for op in built.net().ops if op.kind == "total"] == ["conv2d_2", "dense_0"]
    found = api.validate(tmp_path / "out", inputs=DIGITS / "digits.npz", cases=2)
    assert found.passed
    computed = {step.op for pe in built.plan().pes for step in pe.steps if isinstance(step, Compute)}
    assert found.layers_checked == 2 * len(computed)
