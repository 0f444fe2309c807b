"""States named by the user in a float model: carried over in calibration, quantised with one scale, kept in the net."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from frontend.onnx_models import TYPES, Graph, saved
from npukit.errors import NpukitError
from npukit.net.reference import evaluate
from npukit.quantize.models import load_model
from oracles.onnx_runtime import Session

WIDTH, HELD = 6, 8
RANDOM = np.random.default_rng(2)
FRAMES = RANDOM.normal(0, 1, (40, 1, WIDTH)).astype(np.float32)


def cell() -> onnx.ModelProto:
    """held = 0.5 held + relu(x w), y = held v."""
    graph = Graph()
    graph.constant("w", RANDOM.normal(0, 1, (WIDTH, HELD)).astype(np.float32))
    graph.constant("v", RANDOM.normal(0, 1, (HELD, 3)).astype(np.float32))
    graph.constant("half", np.array(0.5, np.float32))
    graph.node("MatMul", ["x", "w"], "seen")
    graph.node("Relu", ["seen"], "new")
    graph.node("Mul", ["held", "half"], "less")
    graph.node("Add", ["less", "new"], "held_next")
    graph.node("MatMul", ["held_next", "v"], "y")
    model = graph.model({"x": (1, WIDTH), "held": (1, HELD)}, "y", "float32")
    model.graph.output.append(helper.make_tensor_value_info("held_next", TYPES["float32"], (1, HELD)))
    return model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(cell(), tmp_path_factory.mktemp("cell"))


def floats(path: Path) -> np.ndarray:
    """ONNX Runtime's results for the frames, with the state carried over."""
    session, held, found = Session(path.read_bytes()), np.zeros((1, HELD), np.float32), []
    for frame in FRAMES:
        y, held = session.run({"x": frame, "held": held})
        found.append(y)
    return np.stack(found)


@pytest.mark.parametrize("names", [("held", "held_next"), ("in1", "out1")])
def test_a_named_state_is_kept_in_float(model: Path, names: tuple[str, str]) -> None:
    net, values, wanted = load_model(model, states=(names,), in_float=True).net, None, floats(model)
    assert (net.inputs, len(net.outputs)) == (("x",), 1)
    for frame, want in zip(FRAMES, wanted, strict=True):
        values = evaluate(net, [frame], values)
        np.testing.assert_allclose(values[net.outputs[0]], want, rtol=1e-5, atol=1e-5)


def test_a_named_state_has_one_scale(model: Path, tmp_path: Path) -> None:
    """The state's range is observed over the stream of calibration data. No frame rescales the state."""
    np.savez(tmp_path / "stream.npz", in0=FRAMES)
    loaded = load_model(model, states=(("held", "held_next"),), calibration=tmp_path / "stream.npz")
    net, wanted = loaded.net, floats(model)
    (state,) = net.states
    assert not any(op.kind == "requantize" and op.output == state.output for op in net.ops)
    given = net.tensor(state.input).quantization
    assert given is not None
    assert given == net.tensor(state.output).quantization
    assert state.begins == given.zero_point
    values, got = None, []
    scale = net.tensor("x").quantization
    assert scale is not None
    for frame in FRAMES:
        integers = np.clip(np.rint(frame / scale.scale) + scale.zero_point, -128, 127).astype(np.int8)
        values = evaluate(net, [integers], values)
        result = net.tensor(net.outputs[0]).quantization
        assert result is not None
        got.append((values[net.outputs[0]].astype(float) - result.zero_point) * result.scale)
    error = np.square(np.stack(got) - wanted).sum()
    assert 10 * np.log10(np.square(wanted).sum() / error) > 25


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (("hold", "held_next"), "--state hold=held_next: the model has no input 'hold'"),
        (("held", "next"), "--state held=next: the model has no output 'next'"),
        (("x", "held_next"), "state 'x' has the shape"),
    ],
)
def test_a_state_that_is_none_is_named(model: Path, names: tuple[str, str], fault: str) -> None:
    with pytest.raises(NpukitError, match=fault):
        load_model(model, states=(names,), in_float=True)
