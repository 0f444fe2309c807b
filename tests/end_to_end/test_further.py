"""TFLite ops without kernels of their own, mixed with ops that have kernels, on the emulator: each layer equals the
reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import build
from frontend.random_tflite import bundle_of
from frontend.random_tflite_further import MAKERS
from frontend.tflite_models import int8_lstm, lstm_model
from npukit import api


@pytest.mark.exhaustive
def test_moves_and_c_of_tvm(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(bundle_of(7, [*MAKERS, "strided_slice", "batch_matmul", "abs", "rsqrt"]).bytes())
    built = build(path, tmp_path / "out", pes=1)
    assert {"take", "resize_nearest", "transpose", "slice"} <= {op["op"] for op in built.manifest.summary["ops"]}
    assert api.validate(tmp_path / "out").passed


@pytest.mark.exhaustive
def test_an_lstm_in_float(tmp_path: Path) -> None:
    path = tmp_path / "lstm.tflite"
    path.write_bytes(lstm_model(clip=0.3)[0].bytes(["y"]))
    build(path, tmp_path / "out", in_float=True, pes=2)
    assert api.validate(tmp_path / "out").passed


@pytest.mark.exhaustive
def test_pes_share_the_units_of_an_lstm_in_integers(tmp_path: Path) -> None:
    path = tmp_path / "lstm.tflite"
    path.write_bytes(int8_lstm(3)[0].bytes(["y"]))
    built = build(path, tmp_path / "out", pes=4)
    gates = [op for op in built.manifest.summary["ops"] if op["op"] == "lstm"]
    assert len(gates) == 3
    assert all(len(op["pes"]) > 1 for op in gates)
    assert api.validate(tmp_path / "out").passed
