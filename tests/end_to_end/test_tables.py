"""Programs as tables of steps: the same frames, whatever a program's length."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build
from npukit import api
from npukit.measure.device_trace import record_on_device
from npukit.measure.golden import golden
from npukit.measure.target import open_target


@pytest.mark.exhaustive
@pytest.mark.parametrize("objective", ["throughput", "latency"])
def test_a_long_program_is_a_table_of_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str) -> None:
    """Every program counts as long in this test: waits, messages, signals, chains, and kernels of the core."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=4, objective=objective, trace=True)
    assert all((folder / "net_table.c").exists() for folder in (tmp_path / "out/project").glob("roles/*/net"))
    found = api.validate(tmp_path / "out", inputs=DIGITS / "digits.npz", cases=2 * built.plan().frames)
    assert found.passed, found.mismatches
    assert (api.bench(tmp_path / "out").latency_cycles or 0) > 0
    with open_target(built) as target:
        traced = record_on_device(built, target.session, golden(built.net()).cases, 2)
    assert len(traced.frames) == 2
    assert {piece.pe for piece in traced.slices if piece.step is not None} == {pe.pe for pe in built.plan().pes}
