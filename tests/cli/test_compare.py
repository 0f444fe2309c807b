"""Two benches side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npukit.cli.compare import ComparedFigure, compared, load_bench
from npukit.errors import NpukitError
from npukit.measure.bench import Bench, LayerCost

LAYERS = (LayerCost("conv", "mac_array", 150, 100, 20, 140), LayerCost("new", "cpu", 7, 0, 5, 7))
NEW = Bench("emulator", 30, 200, 210, 190, 1000, 5.0, 300_000_000, LAYERS, ())


def test_layers_of_both_then_totals() -> None:
    old = {
        **NEW.to_json(),
        "latency_cycles": 400,
        "layers": [{"name": "conv", "cycles": 300}, {"name": "gone", "cycles": 9}],
    }
    rows = compared(old, NEW)
    assert rows[:3] == [
        ComparedFigure("conv", 300, 150),
        ComparedFigure("new", None, 7),
        ComparedFigure("gone", 9, None),
    ]
    assert rows[0].change == -0.5
    assert rows[1].change is rows[2].change is None
    assert rows[3] == ComparedFigure("latency cycles", 400, 200)


def test_what_bench_printed_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps(NEW.to_json()))
    assert load_bench(tmp_path / "old.json")["latency_cycles"] == 200


@pytest.mark.parametrize("text", ["", "[]", "{}", "nonsense", "3"])
def test_anything_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(text)
    with pytest.raises(NpukitError, match="is not what npukit bench --json printed"):
        load_bench(tmp_path / "old.json")
