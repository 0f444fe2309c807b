"""Recurrent layers: equal when unrolled in float, close in int8, with weights and tables shared by all steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from float_models import calibrated, node, saved
from onnx import helper

from helpers import first_of
from npukit import api
from npukit.accel.cpu import Cpu
from npukit.errors import NpukitError
from npukit.frontend.models import import_model
from npukit.net.box import Box
from npukit.quantize.function import outputs
from npukit.quantize.models import load_model
from npukit.quantize.observe import runner
from oracles.onnx_runtime import Session

STEPS, SIZE, HIDDEN, GATES = 4, 5, 6, {"LSTM": 4, "GRU": 3, "RNN": 1}
GOOD = 27
"""Least signal-to-error ratio in decibels."""


def arrays(kind: str, directions: int, seed: int = 3) -> dict[str, np.ndarray]:
    random, rows = np.random.default_rng(seed), GATES[kind] * HIDDEN
    shapes = {"W": (directions, rows, SIZE), "R": (directions, rows, HIDDEN), "B": (directions, 2 * rows)}
    return {name: (random.standard_normal(shape) / 2).astype(np.float32) for name, shape in shapes.items()}


def model(folder: Path, kind: str, inputs: str = "x W R B", **more: Any) -> Path:
    """A layer with the last state as its output, or the whole sequence with `last=False`."""
    batch, steps, last = more.pop("batch", 1), more.pop("steps", STEPS), more.pop("last", True)
    directions = 2 if more.get("direction") == "bidirectional" else 1
    state = np.full((directions, batch, HIDDEN), 0.3, np.float32)
    made = helper.make_node(kind, [name.strip("-") for name in inputs.split()], ["Y", "L"], hidden_size=HIDDEN, **more)
    nodes = [made, node("Identity", "L" if last else "Y", "y")]
    given = {**arrays(kind, directions), "h": state, "c": state}
    return saved(folder, (steps, batch, SIZE), nodes, **{name: given[name] for name in inputs.split() if name in given})


def noise(path: Path, cases: int) -> np.ndarray:
    shape = [size.dim_value for size in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(7).standard_normal((cases, *shape)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "inputs", "more"),
    [
        ("LSTM", "x W R", {}),
        ("LSTM", "x W R B - h c", {"batch": 2}),
        ("LSTM", "x W R B", {"direction": "bidirectional", "last": False}),
        ("LSTM", "x W R B", {"direction": "reverse", "last": False}),
        ("GRU", "x W R B", {}),
        ("GRU", "x W R B - h", {"linear_before_reset": 1, "batch": 2}),
        ("GRU", "x W R B - h", {"direction": "bidirectional"}),
        ("RNN", "x W R B - h", {"last": False}),
    ],
)
def test_unrolled_it_is_the_same_function(kind: str, inputs: str, more: dict[str, Any], tmp_path: Path) -> None:
    path = model(tmp_path, kind, inputs, **more)
    module = import_model(path)
    (data,) = noise(path, 1)
    (got,) = runner(module, outputs(module))([data])
    np.testing.assert_allclose(got, Session(path).run({"x": data})[0], atol=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        ("LSTM", {"dense", "slice", "lookup", "multiply", "add"}),
        ("GRU", {"dense", "slice", "lookup", "multiply", "add", "subtract"}),
    ],
)
def test_in_int8_nothing_is_rescaled_and_steps_share_what_they_need(kind: str, kinds: set[str], tmp_path: Path) -> None:
    short = calibrated(model(tmp_path, kind, steps=4), (4, 1, SIZE))
    assert short.sqnr_db > GOOD
    assert set(short.kinds) == kinds
    long = calibrated(model(tmp_path, kind, steps=6), (6, 1, SIZE)).loaded.net
    distinct = [{value.tobytes() for value in net.constants.values()} for net in (short.loaded.net, long)]
    assert len(distinct[0]) == len(distinct[1]), "as many weights, biases and tables for 6 steps as for 4"


@pytest.mark.parametrize(
    ("inputs", "more", "message"),
    [
        ("x W R B - h c P", {}, "peepholes"),
        ("x W R B", {"clip": 1.0}, "clip"),
        ("x W R B", {"activations": ["Relu", "Tanh", "Tanh"]}, "its activations are Relu, Tanh, Tanh"),
        ("x W R B lengths", {}, "sequences are of several lengths"),
    ],
)
def test_what_is_not_read(inputs: str, more: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = model(tmp_path, "LSTM", inputs, **more)
    proto = onnx.load(path)
    extra = {"P": np.ones((1, 3 * HIDDEN), np.float32), "lengths": np.array([STEPS - 1], np.int32)}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for n, v in extra.items() if n in inputs.split())
    onnx.save(proto, path)
    with pytest.raises(NpukitError, match=message):
        import_model(path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", first_of(["LSTM", "GRU"]))
def test_on_a_device_it_is_exact(kind: str, tmp_path: Path) -> None:
    path = model(tmp_path, kind)
    np.savez(tmp_path / "data.npz", in0=noise(path, 20))
    api.build(path, output=tmp_path / "out", options=api.Options(pes=1, calibration=tmp_path / "data.npz"))
    found = api.validate(tmp_path / "out")
    assert found.passed, found.mismatches


def test_pytorch_layers_one_above_the_other(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not here: pip install 'npukit[torch]'")
    torch.manual_seed(2)
    for kind, options in (("LSTM", {"num_layers": 2}), ("GRU", {"bidirectional": True, "bias": False})):
        layers = getattr(torch.nn, kind)(SIZE, HIDDEN, batch_first=True, **options).eval()
        sound = torch.randn(1, STEPS, SIZE)
        torch.export.save(torch.export.export(layers, (sound,)), tmp_path / "model.pt2")
        module = import_model(tmp_path / "model.pt2")
        got = runner(module, outputs(module))([sound.numpy()])
        whole, state = layers(sound)
        wanted = [whole, *(state if isinstance(state, tuple) else [state])]
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other.detach().numpy(), atol=1e-5)
        np.savez(tmp_path / "data.npz", in0=np.random.default_rng(1).standard_normal((10, 1, STEPS, SIZE)).astype("f"))
        loaded = load_model(tmp_path / "model.pt2", calibration=tmp_path / "data.npz")
        assert loaded.report is not None
        assert min(layer.sqnr_db for layer in loaded.report.layers) > GOOD - 3


def test_in_float_the_plan_holds_the_weights_of_all_steps_once(tmp_path: Path) -> None:
    held = []
    for steps in (4, 8):
        told = api.fit(model(tmp_path, "LSTM", steps=steps), options=api.Options(in_float=True, pes=1))
        held.append(told["memory"][0]["constants"])
    assert held[0] == held[1]


@pytest.mark.exhaustive
def test_parts_of_float_steps_that_take_the_same_weights_hold_them_once(tmp_path: Path) -> None:
    built = api.build(model(tmp_path, "LSTM"), output=tmp_path / "out", options=api.Options(in_float=True, pes=2))
    net = built.net()
    first, second = [op for op in net.ops if op.kind == "tvm_code" and op.name.startswith("matmul")][1:3]
    left, right = Box((0, 0), (1, 12)), Box((0, 12), (1, 24))
    keys = {(op.name, box): Cpu().cost(net, op, box).constants_key for op in (first, second) for box in (left, right)}
    assert keys[first.name, left] is not None
    assert keys[first.name, left] == keys[second.name, left]
