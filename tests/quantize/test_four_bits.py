"""Weights of 4 bits: later weights compensate errors of earlier weights. Layers that lose too much keep 8 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from float_models import node, saved, weights
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.quantize import four_bits
from npukit.quantize.four_bits import compensated, decibels
from npukit.quantize.grid import grid_of
from npukit.quantize.models import Loaded, load_model
from oracles.onnx_runtime import run_onnx

DIGITS = CHECKOUT / "examples/digits"


def moments(inputs: np.ndarray) -> np.ndarray:
    return (inputs.T @ inputs).astype(np.float32)


@settings(max_examples=20, derandomize=True)
@given(st.integers(0, 2**32), st.integers(16, 40), st.integers(40, 80))
def test_compensation_is_closer_than_rounding(seed: int, channels: int, depth: int) -> None:
    """Inputs with few causes: their errors can be compensated. Judged on other inputs of the same kind."""
    random = np.random.default_rng(seed)
    causes = random.normal(0, 1, (depth // 8, depth))
    seen, other = (random.normal(0, 1, (400, len(causes))) @ causes for _ in range(2))
    rows = random.normal(0, 1, (channels, depth))
    made = compensated(rows, moments(seen))
    plain = compensated(rows, np.square(seen).sum(0))
    assert decibels(rows, made, moments(other)) > decibels(rows, plain, moments(other)) + 3
    assert grid_of(made) is not None


def loaded(path: Path, samples: Path, kind: str = "int4") -> Loaded:
    return load_model(path, calibration=samples, weights=kind)


def widths(net: Loaded) -> dict[str, bool]:
    """Whether the weights of each linear op have 4 bits."""
    linear = [op for op in net.net.ops if op.kind in ("conv2d", "dense", "depthwise_conv2d")]
    return {op.name: bool(np.abs(net.net.constants[op.inputs[1]] + 0.5).max() < 8) for op in linear}


def test_digits(tmp_path: Path) -> None:
    digits = np.load(DIGITS / "digits.npz")
    samples = tmp_path / "samples.npz"
    np.savez(samples, in0=digits["float0"][:100], labels=digits["labels"][:100])
    usual, narrow = (loaded(DIGITS / "digits_float.onnx", samples, kind) for kind in ("int8", "int4"))
    assert not any(widths(usual).values())
    assert sum(widths(narrow).values()) >= 2
    for each in (usual, narrow):
        assert each.report is not None
        assert each.report.accuracy is not None
        assert each.report.accuracy.int8 > 0.95


CONVOLUTIONS = [
    {"pads": [1, 2, 0, 1], "strides": [2, 1]},
    {"dilations": [2, 1], "pads": [2, 2, 2, 2], "strides": [1, 2]},
]


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_the_moments_of_a_convolution_are_those_of_its_patches(
    options: dict[str, list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of weights times patches are the convolution's results: their energy follows from either."""
    shape, kernel = (1, 6, 9, 8), weights(10, 6, 3, 2)
    path = saved(tmp_path, shape, [node("Conv", "x w", "y", **options)], w=kernel)
    noise = np.random.default_rng(2).standard_normal((5, *shape)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", in0=noise)
    found = []

    def kept(layer: four_bits.NarrowLayer) -> None:
        found.append(sum(four_bits.energy(layer.rows, each) for each in (layer._moments, layer._held_back)))

    monkeypatch.setattr(four_bits.NarrowLayer, "narrow", kept)
    loaded(path, tmp_path / "samples.npz")
    expected = sum(float(np.square(run_onnx(path, {"x": case})[0]).sum()) for case in noise)
    assert found == [pytest.approx(expected, rel=1e-4)]


def test_a_layer_that_loses_too_much_keeps_8_bits(tmp_path: Path) -> None:
    """One large weight of a channel leaves no step for the others. Inputs without relation compensate nothing."""
    depth, kernel = 64, weights(64, 12).astype(np.float32)
    spoilt = kernel.copy()
    spoilt[0] = 40 * np.abs(spoilt).max()
    noise = np.random.default_rng(2).standard_normal((200, 1, depth)).astype(np.float32)
    noise[:, :, 0] *= 0.001
    np.savez(tmp_path / "samples.npz", in0=noise)
    made = [
        widths(loaded(saved(tmp_path, (1, depth), [node("MatMul", "x w", "y")], w=each), tmp_path / "samples.npz"))
        for each in (np.rint(kernel / np.abs(kernel).max(0) * 7), spoilt)
    ]
    assert [list(each.values()) for each in made] == [[True], [False]]


def test_calibration_is_necessary() -> None:
    with pytest.raises(NpukitError, match="--weights int4 is for a model that is quantised here"):
        load_model(DIGITS / "digits_int8.tflite", weights="int4")
