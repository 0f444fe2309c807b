"""TFLite files as converters of different ages and settings write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite
from tflite_models import Model

from npukit.frontend.models import load_net_from_model
from npukit.net.reference import run_reference

VALID = tflite.Padding.VALID


def convolution(bias_axis: int) -> bytes:
    """A convolution with a scale for each channel, its bias's along the axis that its converter says."""
    model, random = Model(), np.random.default_rng(5)
    scales = random.uniform(0.001, 0.01, 4).astype(np.float32)
    model.input("x", (1, 5, 5, 3), 0.05, -3)
    model.constant("w", random.integers(-128, 128, (4, 3, 3, 3), np.int8), scales)
    biases = random.integers(-2000, 2000, 4, np.int32)
    model.constant("b", biases, scales * np.float32(0.05), axis=bias_axis)
    model.tensor("y", (1, 3, 3, 4), 0.06, 7)
    model.op("CONV_2D", ["x", "w", "b"], ["y"], "Conv2D", Padding=VALID, StrideH=1, StrideW=1)
    return model.bytes(["y"])


@pytest.mark.parametrize("axis", [1, 3])
def test_scales_of_a_bias_lie_along_its_one_axis_whatever_the_file_says(axis: int, tmp_path: Path) -> None:
    data, results = np.random.default_rng(6).integers(-128, 128, (1, 5, 5, 3), np.int8), []
    for stated in (0, axis):
        (tmp_path / "model.tflite").write_bytes(convolution(stated))
        results += run_reference(load_net_from_model(tmp_path / "model.tflite"), [data])
    assert np.array_equal(*results)
