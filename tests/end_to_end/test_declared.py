"""A float network with a sensor's bytes as input and the likeliest classes as output, on a device."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS
from helpers import first_of
from npukit import api
from npukit.cli.main import app

BYTES, CASES = "uint8 scale=0.00392156862745098 layout=NHWC", 40


@pytest.fixture(scope="module")
def sensed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits as a camera would deliver them."""
    digits, path = np.load(DIGITS / "digits.npz"), tmp_path_factory.mktemp("digits") / "bytes.npz"
    images = np.round(digits["float0"].reshape(-1, 1, 8, 8, 1) * 255).astype(np.uint8)
    np.savez(path, in0=images, labels=digits["labels"])
    return path


@pytest.mark.exhaustive
def test_bytes_in_and_the_best_three_out(sensed: Path, tmp_path: Path) -> None:
    (tmp_path / "digits.toml").write_text("[[output]]\nsoftmax = false\ntop = 3\n")
    (tmp_path / "digits.onnx").write_bytes((DIGITS / "digits_float.onnx").read_bytes())
    built = api.build(
        tmp_path / "digits.onnx",
        output=tmp_path / "out",
        options=api.Options(pes=1, calibration=sensed, preprocess=(BYTES,)),
    )
    net = built.net()
    assert [net.tensor(name).dtype for name in (*net.inputs, *net.outputs)] == ["uint8", "int32", "int8"]
    (source,) = (tmp_path / "out/project").rglob("net.c")
    assert "image: uint8[1,8,8,1] scale 0.00392156862745098 zero 0" in source.read_text()
    done = CliRunner().invoke(
        app, ["validate", str(tmp_path / "out"), "--inputs", str(sensed), "--cases", str(CASES), "--json"]
    )
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outputs_equal"]
    assert told["accuracy"] > 0.95


@pytest.mark.exhaustive
def test_floats_in_and_the_class_out(tmp_path: Path) -> None:
    """Float code on the core, on two engines, equal to the reference's bits."""
    digits = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "floats.npz", in0=digits["float0"], labels=digits["labels"])
    options = api.Options(pes=1, preprocess=("float32",), postprocess=("argmax",))
    api.build(DIGITS / "digits_int8.tflite", output=tmp_path / "out", options=options)
    found = api.validate(tmp_path / "out", inputs=tmp_path / "floats.npz", cases=CASES)
    assert found.passed, found.mismatches
    assert found.accuracy is not None
    assert found.accuracy > 0.95


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "sensor",
    first_of(
        [
            "uint8 colour=YUYV size=18x20 crop=16x16 resize=area scale=0.0039",
            "int16 features=log_mel mels=8 window=64 hop=40 new=1",
            "int16 features=mfcc mels=12 window=64 hop=40",
        ],
        2,
    ),
)
def test_a_camera_and_a_microphone(sensor: str, tmp_path: Path) -> None:
    """Preprocessing of sensor data, on several PEs and with state between frames, equal to the reference's bits."""
    options = api.Options(pes=2, preprocess=(sensor,))
    api.build(DIGITS / "digits_int8.tflite", output=tmp_path / "out", options=options)
    found = api.validate(tmp_path / "out", cases=4)
    assert found.passed, found.mismatches
