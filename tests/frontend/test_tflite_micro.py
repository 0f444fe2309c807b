"""What TFLite Micro has and LiteRT has not, or rounds otherwise: equal to it to the last bit, frame after frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite

from frontend.tflite_models import Model, run_micro
from npukit.errors import NpukitError
from npukit.net.reference import evaluate, run_reference
from npukit.quantize.models import load_model

RELU = tflite.ActivationFunctionType.RELU


def svdf(state: str, rank: int, *, activation: int = RELU) -> Model:
    """Two filters a unit if the rank is 2, over five frames."""
    model, random, units, length, given = Model(), np.random.default_rng(rank), 3, 5, 7
    wide, filters = state == "int16", units * rank
    model.input("x", (1, given), 0.03, 5)
    model.constant("features", random.integers(-127, 128, (filters, given), np.int8), 0.003)
    frames = random.integers(-20000, 20000, (filters, length)).astype("int16" if wide else "int8")
    frames_scale, held, zero = (0.0001, 0.0007, 0) if wide else (0.02, 0.06, -9)
    model.constant("frames", frames, frames_scale)
    model.constant("bias", random.integers(-3000, 3000, units, np.int32), frames_scale * held)
    model.variable("kept", (1, filters * length), state, held, zero)
    model.tensor("y", (1, units), 0.05, -128)
    inputs = ["x", "features", "frames", "bias", "kept"]
    model.op("SVDF", inputs, ["y"], "SVDF", Rank=rank, FusedActivationFunction=activation)
    return model


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("state", ["int8", "int16"])
def test_svdf_remembers_as_many_frames_as_it_filters(state: str, rank: int, tmp_path: Path) -> None:
    data = svdf(state, rank).bytes(["y"])
    random = np.random.default_rng(3)
    frames = [[random.integers(-128, 128, (1, 7), np.int8)] for _ in range(8)]
    (tmp_path / "model.tflite").write_bytes(data)
    net, before = load_model(tmp_path / "model.tflite").net, None
    for frame, (want,) in zip(frames, run_micro(data, frames), strict=True):
        before = evaluate(net, frame, before)
        assert np.array_equal(before[net.outputs[0]], want)


def test_svdf_of_integers_has_no_activation_but_relu(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(
        svdf("int8", 1, activation=tflite.ActivationFunctionType.RELU6).bytes(["y"])
    )
    with pytest.raises(NpukitError, match="its activation is not ReLU"):
        load_model(tmp_path / "model.tflite")


@pytest.mark.parametrize(
    ("before", "after"),
    [("int8", "int16"), ("int8", "int32"), ("int16", "int8"), ("int16", "int16"), ("int16", "int32")],
)
def test_integers_of_another_width(before: str, after: str, tmp_path: Path) -> None:
    model, random = Model(), np.random.default_rng(4)
    zeros = {"int8": 5, "int16": 0, "int32": 0}
    model.inputs.append(model.tensor("x", (3, 50), 0.003, zeros[before], dtype=before))
    model.tensor("y", (3, 50), 0.0017, zeros[after], dtype=after)
    model.op("QUANTIZE", ["x"], ["y"], "Quantize")
    data, limits = model.bytes(["y"]), np.iinfo(before)
    (tmp_path / "model.tflite").write_bytes(data)
    given = random.integers(limits.min, limits.max + 1, (3, 50)).astype(before)
    (got,) = run_reference(load_model(tmp_path / "model.tflite").net, [given])
    assert np.array_equal(got, run_micro(data, [[given]])[0][0])
