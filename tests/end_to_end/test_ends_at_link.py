"""Networks with float inputs and outputs, or planar images: converted on arrival and on departure, on a device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.tflite_models import Model
from helpers import first_of
from npukit import api

SIDE = 96


def network(folder: Path) -> Path:
    """A float image larger than a PE's memory; its quantised and rectified values as float."""
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", first_of([1, 4]))
def test_floats_of_144_kb_fit_a_pe_of_128_kb_and_stay_exact(pes: int, tmp_path: Path) -> None:
    built = api.build(network(tmp_path), output=tmp_path / "out", options=api.Options(pes=pes))
    net, rows = built.net(), built.manifest.summary["ops"]
    assert {net.tensor(name).dtype for name in (*net.inputs, *net.outputs)} == {"float32"}
    assert [row["engine"] for row in rows] == ["link", "mac_array", "link"]
    given = np.random.default_rng(1).normal(0, 20, (1, 1, SIDE, SIDE, 4)).astype(np.float32)
    steps = np.trunc(given * 4 + np.copysign(np.float32(0.5), given))
    wanted = np.clip(steps, 0, 124) / 4 + np.float32(0)  # turns -0 into 0
    np.savez(tmp_path / "in.npz", in0=given, out0=wanted)
    found = api.validate(tmp_path / "out", inputs=tmp_path / "in.npz")
    assert found.passed, found.mismatches


def network_of_planes(folder: Path) -> Path:
    """The maximum of each 2 x 2 pixels of a planar float image; the output is planar too."""
    model, shape, pooled = Model(), (1, 3, 8, 12), (1, 3, 4, 6)
    model.inputs.append(model.tensor("x", shape, dtype="float32"))
    model.tensor("q", shape, 0.25, 3)
    model.op("QUANTIZE", ["x"], ["q"])
    model.constant("inwards", np.array([0, 2, 3, 1], np.int32))
    model.tensor("t", (1, 8, 12, 3), 0.25, 3)
    model.op("TRANSPOSE", ["q", "inwards"], ["t"])
    model.tensor("m", (1, 4, 6, 3), 0.25, 3)
    window = {"Padding": 1, "StrideW": 2, "StrideH": 2, "FilterWidth": 2, "FilterHeight": 2}
    model.op("MAX_POOL_2D", ["t"], ["m"], "Pool2D", **window)
    model.constant("outwards", np.array([0, 3, 1, 2], np.int32))
    model.tensor("o", pooled, 0.25, 3)
    model.op("TRANSPOSE", ["m", "outwards"], ["o"])
    model.tensor("y", pooled, dtype="float32")
    model.op("DEQUANTIZE", ["o"], ["y"])
    (folder / "planes.tflite").write_bytes(model.bytes(["y"]))
    return folder / "planes.tflite"


@pytest.mark.exhaustive
@pytest.mark.parametrize(("pes", "objective"), [(2, "latency"), (2, "throughput")])
def test_planes_become_pixels_as_they_arrive_and_planes_again(pes: int, objective: str, tmp_path: Path) -> None:
    """For throughput the input lies in DRAM."""
    options = api.Options(pes=pes, objective=objective)
    built = api.build(network_of_planes(tmp_path), output=tmp_path / "out", options=options)
    rows = built.manifest.summary["ops"]
    assert [row["op"] for row in rows if row["engine"] != "link"] == ["max_pool"]
    assert api.validate(tmp_path / "out", cases=2).passed
    given = np.random.default_rng(1).integers(-100, 100, (2, 1, 3, 8, 12)).astype(np.float32) / 4
    np.savez(tmp_path / "in.npz", in0=given)
    (found,) = api.run(tmp_path / "out", inputs=tmp_path / "in.npz")
    want = given.reshape(2, 1, 3, 4, 2, 6, 2).max((4, 6))
    assert np.array_equal(found.reshape(want.shape), want)
