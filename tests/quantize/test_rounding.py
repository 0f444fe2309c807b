"""Weights rounded in turn: later weights compensate errors of earlier weights. 4 bits only where accuracy allows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from float_models import node, saved, weights
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.frontend.models import import_model
from npukit.quantize.attempt import FloatModel
from npukit.quantize.calibration import Calibration
from npukit.quantize.grid import grid_of
from npukit.quantize.models import Loaded, load_model
from npukit.quantize.rounding import compensated, energy, ratio
from npukit.quantize.scales import of_weights, quantised, unchanged
from npukit.quantize.target.treatment import FOUR_BITS, Treatment
from oracles.onnx_runtime import run_onnx

DIGITS = CHECKOUT / "examples/digits"


def decibels(rows: np.ndarray, made: np.ndarray, moments: np.ndarray) -> float:
    """The ratio of a layer's results to the errors of its results."""
    return ratio(*(energy(each, moments) for each in (rows, rows - made)))


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


@pytest.mark.parametrize(("options", "groups"), [*((each, 1) for each in CONVOLUTIONS), (CONVOLUTIONS[0], 2)])
def test_the_moments_of_a_convolution_are_those_of_its_patches(
    options: dict[str, list[int]], groups: int, tmp_path: Path
) -> None:
    """Rows of weights times patches are the convolution's results: their energy follows from either."""
    shape, kernel = (1, 6, 9, 8), weights(10, 6 // groups, 3, 2)
    path = saved(tmp_path, shape, [node("Conv", "x w", "y", group=groups, **options)], w=kernel)
    noise = np.random.default_rng(2).standard_normal((5, *shape)).astype(np.float32)
    model = FloatModel(import_model(path), "model", Calibration((noise,)), 0.0, unchanged, ())
    (layer,) = model.roundings.values()
    rows = layer.rows.reshape(layer.groups, -1, layer.rows.shape[1])
    found = sum(
        energy(each, by) for both in (layer._moments, layer._held_back) for each, by in zip(rows, both, strict=True)
    )
    assert found == pytest.approx(
        sum(float(np.square(run_onnx(path, {"x": case})[0]).sum()) for case in noise), rel=1e-4
    )


def test_compensated_weights_bring_results_closer(tmp_path: Path) -> None:
    """Inputs with few causes. Judged on cases held back."""
    random = np.random.default_rng(1)
    causes = random.normal(0, 1, (6, 48))
    inputs = (random.normal(0, 1, (60, 1, 6)) @ causes).astype(np.float32)
    path = saved(tmp_path, (1, 48), [node("MatMul", "x w", "y")], w=weights(48, 12) / 10)
    model = FloatModel(import_model(path), "model", Calibration((inputs,)), 0.0, unchanged, ())
    plain, made = (model.weights(Treatment(compensated=each), {}) for each in (False, True))
    assert not plain
    (layer,), (rounded,) = model.roundings.values(), made.values()
    (judge,) = layer._held_back
    usual = of_weights(layer.rows, 0, np.zeros(12))
    rows = quantised(layer.rows, usual) * np.array(usual.scales)[:, np.newaxis]
    assert decibels(layer.rows, rounded.T, judge) > decibels(layer.rows, rows, judge) + 3


def test_a_target_decides_which_layers_have_4_bits(tmp_path: Path) -> None:
    """The report names them."""
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "r"), node("MatMul", "r v", "y")]
    path = saved(tmp_path, (1, 48), nodes, w=weights(48, 64), v=weights(64, 12, seed=2))
    noise = np.random.default_rng(2).standard_normal((200, 1, 48)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", in0=noise @ noise[:48, 0] / 8)
    counts = list[int]()
    for target in (0, 10, 28, 34):
        made = load_model(path, calibration=tmp_path / "samples.npz", weights="int4", target_db=target)
        assert made.report is not None
        named = [layer.name for layer in made.report.layers if FOUR_BITS in layer.done]
        assert named == [name for name, narrow in widths(made).items() if narrow]
        assert made.report.reached is None or made.report.reached.db >= target
        counts.append(len(named))
    assert counts[:2] == [2, 2]
    assert counts[-1] == 0


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
