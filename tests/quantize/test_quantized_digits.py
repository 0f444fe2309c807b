"""The example's float network, calibrated with a hundred training images and tested on the whole test split."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised
from oracles.onnx_runtime import Session

DIGITS = CHECKOUT / "examples/digits"
MODEL = DIGITS / "digits_float.onnx"
POINT = 0.01


@pytest.fixture(scope="module")
def training() -> tuple[np.ndarray, np.ndarray]:
    """Images in the model's layout, and labels. None is in the test split."""
    pytest.importorskip("sklearn", reason="scikit-learn, whose digits these are, is not here")
    sys.path.insert(0, str(DIGITS))
    try:
        import train  # pyright: ignore[reportMissingImports]
    finally:
        sys.path.remove(str(DIGITS))
    images, _, labels, _ = train.images()
    return train.nchw(images), labels


@pytest.mark.exhaustive
def test_int8_is_half_a_point_under_float_at_most(training: Any, tmp_path: Path) -> None:
    images, labels = training
    np.savez(tmp_path / "data.npz", in0=images[:100], labels=labels[:100])
    loaded = load_model(MODEL, calibration=tmp_path / "data.npz")
    test = np.load(DIGITS / "digits.npz")
    assert int8_accuracy(loaded.net, test) >= float_accuracy(test) - 0.5 * POINT
    assert loaded.report is not None
    assert loaded.report.accuracy is not None
    assert loaded.report.accuracy.float_ > 0.97
    assert all(25 < layer.sqnr_db < 80 for layer in loaded.report.layers)
    assert {layer.name for layer in loaded.report.layers} <= {op.name for op in loaded.net.ops}


def int8_accuracy(net: Any, test: Any) -> float:
    quantization = net.tensor(net.inputs[0]).quantization
    (scores,) = run_reference(net, [quantised(test["float0"], quantization)])
    return float(np.mean(scores.reshape(-1, 10).argmax(axis=1) == test["labels"]))


def float_accuracy(test: Any) -> float:
    session = Session(MODEL)
    answers = [session.run({"image": image})[0].argmax() for image in test["float0"]]
    return float(np.mean(answers == test["labels"]))


def saved(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "data.npz", **arrays)
    return folder / "data.npz"


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"images": np.zeros((2, 64), np.float32)}, "has no array in0 for the input image"),
        ({"in0": np.zeros((2, 64), np.int8)}, "in0 in .* is int8, the model's input image is float32"),
        ({"in0": np.zeros((2, 63), np.float32)}, r"has cases of shape \[63\], the model's input has \[1, 1, 8, 8\]"),
        ({"in0": np.full((2, 64), np.nan, np.float32)}, "infinite or no numbers"),
        ({"in0": np.full((2, 64), 1e39)}, "infinite or no numbers as float32"),
        (
            {"in0": np.full((2, 64), 3e38, np.float32)},
            r"layer \w+ of the float model computes values that are no numbers",
        ),
        ({"in0": np.zeros((0, 64), np.float32)}, "no cases"),
        ({"in0": np.zeros((2, 64), np.float32), "labels": np.zeros(3, int)}, "labels .* are not 2 whole numbers"),
    ],
)
def test_data_that_does_not_fit_the_model(arrays: dict[str, np.ndarray], said: str, tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=said):
        load_model(MODEL, calibration=saved(tmp_path, **arrays))


def test_no_data_at_all(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="has no npz files to calibrate with"):
        load_model(MODEL, calibration=tmp_path)
    (tmp_path / "data.npz").write_bytes(b"nothing")
    with pytest.raises(NpukitError, match="is not an npz file"):
        load_model(MODEL, calibration=tmp_path / "data.npz")


@pytest.mark.exhaustive
def test_a_folder_is_all_of_its_files(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).random((4, 1, 8, 8)).astype(np.float32)
    (tmp_path / "parts").mkdir()
    for index, part in enumerate(np.split(noise, 2)):
        np.savez(tmp_path / "parts" / f"{index}.npz", in0=part)
    whole = load_model(MODEL, calibration=saved(tmp_path, in0=noise))
    parts = load_model(MODEL, calibration=tmp_path / "parts")
    assert str(whole.net) == str(parts.net)
    assert whole.report == parts.report


def test_data_of_nothing_but_zeros_is_survived(tmp_path: Path) -> None:
    net = load_model(MODEL, calibration=saved(tmp_path, in0=np.zeros((2, 64), np.float32))).net
    assert net.outputs == ("probabilities",)


def test_a_model_that_is_quantised_already_needs_no_data(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="quantised already"):
        load_model(DIGITS / "digits_int8.tflite", calibration=saved(tmp_path, in0=np.zeros((2, 64), np.int8)))


def test_a_float_model_without_data_is_told_how_to_give_some() -> None:
    with pytest.raises(NpukitError) as raised:
        load_model(MODEL)
    assert "--calibration" in raised.value.tries[0]
