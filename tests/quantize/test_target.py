"""Quantisation until the outputs are close enough to the float model's on calibration data held back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from float_models import node, saved, weights
from onnx import helper, numpy_helper
from typer.testing import CliRunner

from npukit.cli.main import app
from npukit.errors import NpukitError
from npukit.frontend.models import import_model
from npukit.net.reference import run_reference
from npukit.net.text import print_net
from npukit.quantize.attempt import FloatModel
from npukit.quantize.calibration import Calibration
from npukit.quantize.models import Loaded, load_model
from npukit.quantize.scales import quantised, unchanged
from npukit.quantize.target.treatment import Treatment
from oracles.onnx_runtime import Session

CASES, CHANNELS, WIDTH = 16, 16, 32
TARGET = 30.0


def noise(*shape: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((CASES, *shape)).astype(np.float32)


def data(folder: Path, cases: np.ndarray) -> Path:
    np.savez(folder / "data.npz", in0=cases)
    return folder / "data.npz"


@pytest.fixture
def spread_channels(tmp_path: Path) -> Path:
    """Two convolutions with channels between them that differ ten-thousandfold and matter alike."""
    sizes = np.logspace(0, -4, CHANNELS, dtype=np.float32)
    first = weights(CHANNELS, 3, 3, 3) * sizes.reshape(-1, 1, 1, 1)
    last = weights(4, CHANNELS, 1, 1, seed=12) / sizes.reshape(1, -1, 1, 1)
    nodes = [node("Conv", "x first bias", "h", pads=[1] * 4), node("Relu", "h", "r"), node("Conv", "r last", "y")]
    return saved(tmp_path, (1, 3, 6, 6), nodes, first=first, bias=0.1 * sizes, last=last)


@pytest.fixture
def small_chances(tmp_path: Path) -> Path:
    """A detector: its chances are below a step of int8."""
    nodes = [
        node("MatMul", "x first", "h"),
        node("Relu", "h", "r"),
        node("MatMul", "r last", "m"),
        node("Add", "m bias", "s"),
        node("Sigmoid", "s", "y"),
    ]
    constants = {"first": weights(WIDTH, 8 * WIDTH, seed=3) / 4, "last": weights(8 * WIDTH, 3, seed=4) / 8}
    return saved(tmp_path, (1, WIDTH), nodes, bias=np.full(3, -9, np.float32), **constants)


def measured(path: Path, loaded: Loaded, cases: np.ndarray) -> float:
    """The closeness of the network to ONNX Runtime on the cases held back."""
    assert loaded.report is not None
    assert loaded.report.reached is not None
    net, held_back = loaded.net, list(loaded.report.reached.cases)
    taken, given = (net.tensor(ends[0]).quantization for ends in (net.inputs, net.outputs))
    session = Session(path)
    expected = np.stack([session.run({"x": case})[0] for case in cases[held_back]])
    (found,) = run_reference(net, [quantised(cases[held_back], taken) if taken else cases[held_back]])
    real = found if given is None else (found.astype(np.float64) - given.zero_point) * given.scale
    return float(10 * np.log10(np.sum(np.square(expected)) / np.sum(np.square(expected - real))))


@pytest.mark.parametrize(("name", "shape"), [("spread_channels", (1, 3, 6, 6)), ("small_chances", (1, WIDTH))])
def test_a_hard_layer_reaches_the_target(
    name: str, shape: tuple[int, ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path, cases = request.getfixturevalue(name), noise(*shape)
    loaded = load_model(path, calibration=data(tmp_path, cases), target_db=TARGET)
    assert loaded.report is not None
    assert loaded.report.reached is not None
    assert loaded.report.reached.db >= TARGET
    assert loaded.report.reached.steps
    assert loaded.report.reached.db == pytest.approx(measured(path, loaded, cases), abs=0.5)
    with pytest.raises(NpukitError, match="plain int8"):
        _plain(path, tmp_path)


def _plain(path: Path, folder: Path) -> None:
    """Raises an error if plain int8 misses the target on all cases."""
    cases = Calibration((np.load(folder / "data.npz")["in0"],))
    model = FloatModel(import_model(path), "model", cases, 0.0, unchanged, ())
    if model.reached(model.attempt(Treatment()).net) < TARGET:
        raise NpukitError("plain int8 misses the target")


def test_plain_int8_that_reaches_the_target_stays_the_same(tmp_path: Path) -> None:
    path = saved(tmp_path, (1, WIDTH), [node("MatMul", "x w", "y")], w=weights(WIDTH, WIDTH))
    cases = noise(1, WIDTH)
    plain, aimed = (load_model(path, calibration=data(tmp_path, cases), target_db=each) for each in (0, TARGET))
    assert print_net(plain.net) == print_net(aimed.net)
    assert plain.report is not None
    assert plain.report.reached is None
    assert aimed.report is not None
    assert aimed.report.reached is not None
    assert aimed.report.reached.cases == (3, 7, 11, 15)
    assert not aimed.report.reached.steps
    assert aimed.report.reached.db == pytest.approx(measured(path, aimed, cases), abs=0.1)


def test_no_target_keeps_a_network_that_misses_it(spread_channels: Path, tmp_path: Path) -> None:
    loaded = load_model(spread_channels, calibration=data(tmp_path, noise(1, 3, 6, 6)))
    assert loaded.report is not None
    assert min(layer.sqnr_db for layer in loaded.report.layers) < TARGET


def test_a_target_out_of_reach_names_the_worst_layers(spread_channels: Path, tmp_path: Path) -> None:
    samples = data(tmp_path, noise(1, 3, 6, 6))
    done = CliRunner().invoke(
        app, ["fit", str(spread_channels), "--pes", "1", "--calibration", str(samples), "--target-db", "90"]
    )
    said = " ".join(done.stderr.split())
    assert done.exit_code == 1
    assert "dB from the float model, not 90 dB" in said
    assert re.search(r"conv2d_0: [\d.]+ dB alone, [\d.]+ dB with earlier layers", said)
    assert "--target-db 0" in said
    assert "16 cases are given" in said


def test_the_error_alone_excludes_earlier_layers(tmp_path: Path) -> None:
    names = ["x", *(f"h{layer}" for layer in range(7)), "y"]
    nodes = [node("MatMul", f"{before} w", after) for before, after in pairwise(names)]
    path = saved(tmp_path, (1, WIDTH), nodes, w=weights(WIDTH, WIDTH))
    report = load_model(path, calibration=data(tmp_path, noise(1, WIDTH))).report
    assert report is not None
    first, *_, last = report.layers
    assert first.alone_db == pytest.approx(first.sqnr_db, abs=0.1)
    assert last.alone_db > last.sqnr_db + 3
    assert report.worst(1) == [min(report.layers, key=lambda layer: layer.sqnr_db)]


def test_the_worst_of_several_outputs_counts(tmp_path: Path) -> None:
    path = saved(tmp_path, (1, WIDTH), [node("MatMul", "x w", "y")], w=weights(WIDTH, WIDTH))
    model = onnx.load(path)
    model.graph.node.append(node("Mul", "x tiny", "t"))
    model.graph.node.append(node("Tanh", "t", "z"))
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.02, np.float32), "tiny"))
    model.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, (1, WIDTH)))
    onnx.save(model, path)
    of_two = FloatModel(import_model(path), "model", Calibration((noise(1, WIDTH),)), 0.0, unchanged, ())
    assert of_two.reached(of_two.attempt(Treatment()).net) < 25


@pytest.mark.parametrize(("kind", "gain_db"), [("Relu", 3.0), ("Elu", 2.0)])
def test_twice_the_steps_are_closer(tmp_path: Path, kind: str, gain_db: float) -> None:
    nodes = [
        node("MatMul", "x w", "h"),
        node("Add", "h b", "s"),
        node(kind, "s", "r"),
        node("MatMul", "r v", "y"),
    ]
    random = np.random.default_rng(1).standard_normal(4 * WIDTH)
    rare = np.where(np.arange(4 * WIDTH) % 16, 1, 12) * random  # few large channels take most of the range
    constants = {"w": weights(WIDTH, 4 * WIDTH), "b": rare.astype(np.float32), "v": weights(4 * WIDTH, WIDTH, seed=2)}
    model = model_of(saved(tmp_path, (1, WIDTH), nodes, **constants), noise(1, WIDTH))
    (chain,) = model.chains
    place = model.points.in_order().index(chain.first)
    gain = gained(model, lambda treatment: replace(treatment, twice=frozenset({place})))
    assert gain > gain_db


def test_twice_the_steps_pass_through_a_depthwise_convolution(tmp_path: Path) -> None:
    """Its channels keep a single result each, as the MAC array computes them."""
    nodes = [
        node("Conv", "x first firsts", "h"),
        node("Relu", "h", "r"),
        node("Conv", "r each eachs", "d", group=4 * CHANNELS, pads=[1, 1, 1, 1]),
        node("Relu", "d", "s"),
        node("Conv", "s last lasts", "y"),
    ]
    count, random = 4 * CHANNELS, np.random.default_rng(1).standard_normal((2, 4 * CHANNELS)).astype(np.float32)
    random[:, ::16] *= 12  # few large channels take most of the range
    shapes = {"first": (count, 3, 1, 1), "each": (count, 1, 3, 3), "last": (CHANNELS, count, 1, 1)}
    constants = {name: weights(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items(), 1)}
    biases = {"firsts": random[0], "eachs": random[1], "lasts": np.zeros(CHANNELS, np.float32)}
    model = model_of(saved(tmp_path, (1, 3, 8, 8), nodes, **constants, **biases), noise(1, 3, 8, 8))
    (chain,) = model.chains
    treatment = Treatment(twice=frozenset({model.points.in_order().index(chain.first)}))
    found = model.attempt(treatment).net
    (depthwise,) = [op for op in found.ops if op.attributes.kind == "depthwise_conv2d"]
    assert [found.tensor(name).shape[-1] for name in (depthwise.inputs[0], depthwise.output)] == [2 * count, 2 * count]
    assert model.reached(found) > model.reached(model.attempt(Treatment()).net) + 1.5


def model_of(path: Path, cases: np.ndarray) -> FloatModel:
    return FloatModel(import_model(path), "model", Calibration((cases,)), 0.0, unchanged, ())


def gained(model: FloatModel, step: Callable[[Treatment], Treatment]) -> float:
    plain, further = (model.reached(model.attempt(each).net) for each in (Treatment(), step(Treatment())))
    return further - plain


@pytest.mark.parametrize("groups", [1, CHANNELS])
def test_equalised_channels_leave_the_float_function_as_it_is(tmp_path: Path, groups: int) -> None:
    """Also through a pool and a depthwise convolution."""
    nodes: list[Any] = [
        node("Conv", "x first", "h"),
        node("Relu", "h", "r"),
        node("MaxPool", "r", "p", kernel_shape=[2, 2]),
        node("Conv", "p last", "y", group=groups),
    ]
    sizes = np.logspace(0, -2, CHANNELS, dtype=np.float32).reshape(-1, 1, 1, 1)
    last = weights(CHANNELS, CHANNELS // groups, 2, 2, seed=2) / (sizes.reshape(1, -1, 1, 1) if groups == 1 else 1)
    path = saved(tmp_path, (1, 3, 6, 6), nodes, first=weights(CHANNELS, 3, 1, 1) * sizes, last=last)
    model = model_of(path, noise(1, 3, 6, 6))
    attempt = model.attempt(Treatment(equalised=1))
    outputs = [values[-1] for values in attempt.seen.values]
    before = [values[-1] for values in model.seen.values]
    assert model.constants(Treatment(equalised=1))
    np.testing.assert_allclose(outputs, before, rtol=1e-4, atol=1e-5 * np.abs(before).max())
    assert gained(model, lambda treatment: replace(treatment, equalised=1)) > 0


def test_the_last_quarter_of_a_stream_is_held_back(tmp_path: Path) -> None:
    nodes = [node("Add", "x s", "a"), node("MatMul", "a w", "m"), node("Tanh", "m", "y")]
    path = saved(tmp_path, (1, WIDTH), nodes, w=weights(WIDTH, WIDTH), s=np.zeros((1, WIDTH), np.float32))
    model = onnx.load(path)
    del model.graph.initializer[1]
    model.graph.input.append(helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, (1, WIDTH)))
    onnx.save(model, path)
    loaded = load_model(path, states=(("s", "y"),), calibration=data(tmp_path, noise(1, WIDTH)), target_db=20)
    assert loaded.report is not None
    assert loaded.report.reached is not None
    assert loaded.report.reached.cases == (12, 13, 14, 15)


def test_a_single_case_is_held_back_and_calibrated_with(tmp_path: Path) -> None:
    path = saved(tmp_path, (1, WIDTH), [node("MatMul", "x w", "y")], w=weights(WIDTH, WIDTH))
    loaded = load_model(path, calibration=data(tmp_path, noise(1, WIDTH)[:1]), target_db=TARGET)
    assert loaded.report is not None
    assert loaded.report.reached is not None
    assert loaded.report.reached.alone


def test_scores_of_a_softmax_in_float_have_no_floor(tmp_path: Path) -> None:
    """An int8 softmax cannot tell the lowest scores apart, a float softmax reads all."""
    nodes = [node("MatMul", "x w", "scores"), node("Softmax", "scores", "y")]
    path = saved(tmp_path, (1, WIDTH), nodes, w=4 * weights(WIDTH, 10))
    loaded = load_model(path, calibration=data(tmp_path, noise(1, WIDTH)), keep_float=["softmax_0"])
    assert loaded.report is not None
    assert min(layer.sqnr_db for layer in loaded.report.layers) > TARGET


def test_channels_are_equalised_through_sums_and_padding(tmp_path: Path) -> None:
    """A residual stream that gains channels, as of face detectors: all layers scale it together."""
    nodes = [
        node("Conv", "x first", "a"),
        node("Conv", "a second bias", "b"),
        node("Pad", "a amounts", "p"),
        node("Add", "p b", "s"),
        node("Clip", "s zero", "r"),
        node("Conv", "r last", "y"),
    ]
    sizes = np.logspace(0, -3, CHANNELS + 4, dtype=np.float32).reshape(-1, 1, 1, 1)
    first = weights(CHANNELS, 3, 1, 1) * sizes[:CHANNELS]
    second = weights(CHANNELS + 4, CHANNELS, 1, 1) * sizes / sizes[:CHANNELS].reshape(1, -1, 1, 1)
    last = weights(4, CHANNELS + 4, 1, 1, seed=2) / sizes.reshape(1, -1, 1, 1)
    bias = 0.1 * sizes.ravel()
    path = saved(
        tmp_path, (1, 3, 6, 6), nodes, first=first, second=second, bias=bias, last=last, zero=np.zeros((), np.float32)
    )
    given = onnx.load(path)
    given.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 4, 0, 0]), "amounts"))
    onnx.save(given, path)
    model = model_of(path, noise(1, 3, 6, 6))
    assert sorted(len(group.products) for group in model.groups) == [2]
    attempt = model.attempt(Treatment(equalised=1))
    before, outputs = ([values[-1] for values in seen.values] for seen in (model.seen, attempt.seen))
    np.testing.assert_allclose(outputs, before, rtol=1e-4, atol=1e-5 * np.abs(before).max())
    assert gained(model, lambda treatment: replace(treatment, equalised=1)) > 6


def test_values_that_a_table_maps_to_one_number_saturate(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "h"), node("HardSwish", "h", "y")]
    path = saved(tmp_path, (1, WIDTH), nodes, w=8 * weights(WIDTH, 64))
    model = model_of(path, noise(1, WIDTH))
    attempt = model.attempt(Treatment())
    (product,) = (op for op in attempt.net.ops if op.kind == "dense")
    given = attempt.net.tensor(product.output).quantization
    assert given is not None
    assert (-128 - given.zero_point) * given.scale == pytest.approx(-3, abs=0.3)
    assert model.reached(attempt.net) > TARGET
