"""Several accelerators on one PE: each op goes to the faster accelerator, and the whole network is exact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from accel.boards import with_accelerator
from end_to_end.builds import DIGITS, build
from npukit import api

SYSTOLIC = Path(__file__).resolve().parents[2] / "examples/accelerators/systolic8x8"


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A board whose PEs have a MAC array and a systolic array."""
    text = (SYSTOLIC / "systolic8x8.toml").read_text()
    slot = text[text.index("[[accelerator]]") :].splitlines()[1:]
    lines = [re.sub("^plugin.*", f'plugin = "{(SYSTOLIC / "systolic8x8").as_posix()}"', line) for line in slot]
    return Path(with_accelerator(tmp_path, "pe-mesh", *lines, own=True))


def engines(board: Path, folder: Path) -> dict[str, str]:
    built = build(DIGITS / "digits_int8.tflite", folder / "out", str(board), pes=1)
    return {op["name"]: op["engine"] for op in built.manifest.summary["ops"]}


@pytest.mark.exhaustive
def test_the_quicker_one_gets_the_op(both: Path, tmp_path: Path) -> None:
    placed = engines(both, tmp_path)
    assert placed["conv2d_0"] == placed["add_0"] == placed["dense_0"] == "mac_array"


@pytest.mark.exhaustive
def test_both_work_in_one_frame(both: Path, tmp_path: Path) -> None:
    """A MAC array with very narrow accumulators leaves the convolutions to other engines, and keeps the sums."""
    both.write_text(both.read_text().replace("accumulator_bits = 29", "accumulator_bits = 12"))
    placed = engines(both, tmp_path)
    assert placed["conv2d_2"] == "systolic8x8"
    assert placed["add_0"] == "mac_array"
    assert placed["softmax_0"] == "cpu"
    found = api.validate(tmp_path / "out")
    assert found.passed, found.mismatches
