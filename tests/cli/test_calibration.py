"""Float models and open shapes, as users pass them to `npukit fit`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.cli.main import app
from npukit.cli.options import parsed_shapes
from npukit.errors import NpukitError

DIGITS = CHECKOUT / "examples/digits"


@pytest.fixture
def samples(tmp_path: Path) -> str:
    """A file of few samples. These tests check the messages about calibration, not the network's accuracy."""
    digits = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "samples.npz", in0=digits["float0"][:20], labels=digits["labels"][:20])
    return str(tmp_path / "samples.npz")


def fit(*arguments: str):
    return CliRunner().invoke(app, ["fit", str(DIGITS / "digits_float.onnx"), "--pes", "1", *arguments])


@pytest.mark.exhaustive
def test_json_has_every_layers_error_and_the_accuracy(samples: str) -> None:
    done = fit("--calibration", samples, "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    names = [op["name"] for op in told["ops"]]
    computed = {name for name in names if "reshape" not in name and "quantize" not in name}
    assert computed <= {layer["name"] for layer in told["quantization"]}, "two layers may have become one op"
    assert all(layer["sqnr_db"] > 20 for layer in told["quantization"])
    assert told["accuracy"]["cases"] == 20
    assert min(told["accuracy"]["float"], told["accuracy"]["int8"]) > 0.9


@pytest.mark.exhaustive
def test_the_worst_layers_are_named(samples: str) -> None:
    done = fit("--calibration", samples, "--ranges", "percentile")
    assert "lowest signal-to-noise ratio: dense_0 " in " ".join(done.stdout.split())
    assert "accuracy on the 20 calibration cases: float " in done.stdout


def test_a_shape_for_an_input_that_is_not_there() -> None:
    done = fit("--input", "photo:1x1x8x8")
    assert done.exit_code == 1
    assert "\nerror: digits_float.onnx has no input 'photo'" in done.stderr


def test_shapes_as_they_are_written() -> None:
    assert parsed_shapes(["a:1x3", "serving:0:4"]) == (("a", (1, 3)), ("serving:0", (4,)))
    assert parsed_shapes(["rate=16000", "a:0=-0.5"]) == (("rate", 16000.0), ("a:0", -0.5))
    assert parsed_shapes(None) == ()


@pytest.mark.parametrize("text", ["1x3", "a:", ":1x3", "a:1x0", "a:1x-3", "a:1xx3", "a:?x3"])
def test_shapes_that_are_none(text: str) -> None:
    with pytest.raises(NpukitError, match="is not a name and a shape"):
        parsed_shapes([text])
