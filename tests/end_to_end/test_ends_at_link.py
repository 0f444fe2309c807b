"""Networks between floats: quantised as they arrive, so that they take a quarter of the memory, on a device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.tflite_models import Model
from npukit import api

SIDE = 96


def network(folder: Path) -> Path:
    """A float image that takes more than a PE has, and its rectified integers as float."""
    model, shape = Model(), (1, SIDE, SIDE, 4)
    model.inputs.append(model.tensor("x", shape, dtype="float32"))
    model.tensor("q", shape, 0.25, 3)
    model.op("QUANTIZE", ["x"], ["q"])
    model.tensor("r", shape, 0.25, 3)
    model.op("RELU", ["q"], ["r"])
    model.tensor("y", shape, dtype="float32")
    model.op("DEQUANTIZE", ["r"], ["y"])
    (folder / "model.tflite").write_bytes(model.bytes(["y"]))
    return folder / "model.tflite"


@pytest.mark.parametrize("pes", [1, 4])
def test_floats_of_144_kb_fit_a_pe_of_128_kb_and_stay_exact(pes: int, tmp_path: Path) -> None:
    built = api.build(network(tmp_path), output=tmp_path / "out", options=api.Options(pes=pes))
    net, rows = built.net(), built.manifest.summary["ops"]
    assert {net.tensor(name).dtype for name in (*net.inputs, *net.outputs)} == {"float32"}
    assert [row["engine"] for row in rows] == ["link", "cpu", "link"]
    assert api.validate(tmp_path / "out", cases=2).passed
    given = np.random.default_rng(1).normal(0, 20, (1, 1, SIDE, SIDE, 4)).astype(np.float32)
    np.savez(tmp_path / "in.npz", in0=given)
    (found,) = api.run(tmp_path / "out", inputs=tmp_path / "in.npz")
    assert found.dtype == np.float32
    assert np.array_equal(
        found.reshape(given.shape), np.clip(np.trunc(given * 4 + np.copysign(0.5, given)), 0, 124) / 4
    )
