"""Layers that stay in float in a network that is quantised here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.net.ops import TvmCode
from npukit.quantize.models import Loaded, load_model

DIGITS = CHECKOUT / "examples/digits"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    digits = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "samples.npz", in0=digits["float0"][:20], labels=digits["labels"][:20])
    return tmp_path / "samples.npz"


def loaded(samples: Path, *keep_float: str) -> Loaded:
    return load_model(DIGITS / "digits_float.onnx", calibration=samples, keep_float=keep_float)


def errors(of: Loaded) -> dict[str, float]:
    assert of.report is not None
    return {layer.name: layer.sqnr_db for layer in of.report.layers}


def codes(of: Loaded) -> list[Any]:
    return [op for op in of.net.ops if isinstance(op.attributes, TvmCode)]


def test_a_layer_between_integer_ones(samples: Path) -> None:
    kept = loaded(samples, "conv2d_1")
    (op,) = codes(kept)
    assert op.attributes.why == "as asked"
    assert {kept.net.tensor(name).dtype for name in (op.inputs[0], op.output)} == {"int8"}
    assert np.mean(list(errors(kept).values())) >= np.mean(list(errors(loaded(samples)).values())) - 0.5


def test_neighbours_pass_floats_to_each_other(samples: Path) -> None:
    names = ["dense_0", "softmax_0"]
    kept = loaded(samples, *names)
    first, second = codes(kept)
    assert "float32" in {kept.net.tensor(name).dtype for name in (first.output, second.inputs[0])}
    assert kept.net.tensor(kept.net.outputs[0]).dtype == "int8"


def test_a_layer_that_is_not_there(samples: Path) -> None:
    with pytest.raises(NpukitError, match="has no layer 'conv2d_77'") as raised:
        loaded(samples, "conv2d_77")
    assert "dense_0" in raised.value.tries[0]


def test_a_model_that_is_not_quantised_here() -> None:
    with pytest.raises(NpukitError, match="--keep-float is for a model that is quantised here"):
        load_model(DIGITS / "digits_int8.tflite", keep_float=["conv2d_0"])
