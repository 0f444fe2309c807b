"""The example model: accuracy as in the README, the same network in three files, files reproducible by the script."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tflite
from onnx import numpy_helper

from helpers import CHECKOUT
from npukit.frontend.models import load_net_from_model
from npukit.net.reference import evaluate
from npukit.quantize.models import load_model
from oracles.onnx_runtime import Session

DIGITS = CHECKOUT / "examples" / "digits"


@pytest.fixture(scope="module")
def split() -> dict[str, np.ndarray]:
    with np.load(DIGITS / "digits.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def right_answers(answers: list[np.ndarray], split: dict[str, np.ndarray]) -> float:
    return float((np.argmax(answers, axis=-1).ravel() == split["labels"]).mean())


@pytest.mark.parametrize("name", ["digits_float.onnx", "digits_qdq.onnx"])
def test_onnx_runtime_gets_at_least_97_percent_right(name: str, split: dict[str, np.ndarray]) -> None:
    session = Session(DIGITS / name)
    answers = [session.run({"image": image})[0] for image in split["float0"]]
    assert right_answers(answers, split) >= 0.97


@pytest.fixture(scope="module")
def litert(split: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every activation of the test split by LiteRT's reference kernels, by name."""
    package = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = package.Interpreter(
        str(DIGITS / "digits_int8.tflite"),
        experimental_op_resolver_type=package.OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    places = {tensor["name"]: tensor["index"] for tensor in interpreter.get_tensor_details() if tensor["name"]}
    activations: dict[str, list[np.ndarray]] = {
        name: [] for name in ("joined_out", "pooled", "scores", "probabilities")
    }
    for image in split["in0"]:
        interpreter.set_tensor(places["image"], image)
        interpreter.invoke()
        for name, values in activations.items():
            values.append(interpreter.get_tensor(places[name]))
    return {name: np.array(values) for name, values in activations.items()}


def test_litert_gets_at_least_97_percent_right(litert: dict[str, np.ndarray], split: dict[str, np.ndarray]) -> None:
    assert right_answers(list(litert["probabilities"]), split) >= 0.97


def test_the_reference_computes_what_litert_does(litert: dict[str, np.ndarray], split: dict[str, np.ndarray]) -> None:
    net = load_net_from_model(DIGITS / "digits_int8.tflite")
    values = [evaluate(net, [image]) for image in split["in0"]]
    made_by = {op.kind: op.output for op in net.ops}
    for name, kind in {"joined_out": "add", "pooled": "average_pool"}.items():
        np.testing.assert_array_equal(np.array([v[made_by[kind]] for v in values]), litert[name])
    # LiteRT rounds a dense layer once; TFLite Micro, whose arithmetic the reference keeps, rounds twice.
    scores = np.array([v[made_by["dense"]] for v in values]).astype(int)
    np.testing.assert_allclose(scores.ravel(), litert["scores"].ravel(), rtol=0, atol=1)


def test_integers_and_floats_are_the_same_images(split: dict[str, np.ndarray]) -> None:
    pixels = (split["in0"].astype(int) + 128).reshape(-1) / 255
    np.testing.assert_allclose(pixels, split["float0"].reshape(-1), atol=0.5 / 255 + 1e-6)
    assert np.bincount(split["labels"]).min() >= 30


def test_the_tflite_file_holds_the_integers_of_the_onnx_file() -> None:
    quantised = {i.name: numpy_helper.to_array(i) for i in onnx.load(DIGITS / "digits_qdq.onnx").graph.initializer}
    constants = tflite_constants()
    assert len(constants) == 10
    for name, values in constants.items():
        want = quantised[f"{name}_quantized"]
        if want.ndim == 4:
            want = want.transpose(1, 2, 3, 0) if name == "depthwise" else want.transpose(0, 2, 3, 1)
        np.testing.assert_array_equal(values, want.ravel())


def tflite_model() -> Any:
    return tflite.Model.GetRootAsModel((DIGITS / "digits_int8.tflite").read_bytes(), 0)


def tflite_constants() -> dict[str, np.ndarray]:
    model = tflite_model()
    graph = model.Subgraphs(0)
    tensors = [graph.Tensors(i) for i in range(graph.TensorsLength())]
    data = {t.Name().decode(): (t, model.Buffers(t.Buffer()).DataAsNumpy()) for t in tensors}
    types = {tflite.TensorType.INT8: np.int8, tflite.TensorType.INT32: np.int32}
    return {
        name: np.frombuffer(bytes(raw), types[t.Type()])
        for name, (t, raw) in data.items()
        if isinstance(raw, np.ndarray) and name != "flat_shape"
    }


def test_the_softmax_is_quantised_as_tflite_demands() -> None:
    graph = tflite_model().Subgraphs(0)
    quantization = graph.Tensors(graph.Outputs(0)).Quantization()
    assert (quantization.Scale(0), quantization.ZeroPoint(0)) == (1 / 256, -128)


@pytest.mark.exhaustive
def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    """Start from the existing weights: training again takes longer, and its last digits differ between machines."""
    pytest.importorskip("sklearn", reason="pip install npukit[train]")
    script = tmp_path / "digits"
    shutil.copytree(DIGITS, script)
    command = [sys.executable, "train.py", "--keep", "-o", "written"]
    subprocess.run(command, cwd=script, check=True, capture_output=True, timeout=120)
    written, kept = script / "written", DIGITS
    assert (written / "digits_float.onnx").read_bytes() == (kept / "digits_float.onnx").read_bytes()
    assert_same_initializers(onnx.load(written / "digits_qdq.onnx"), onnx.load(kept / "digits_qdq.onnx"))
    assert (written / "digits_int8.tflite").stat().st_size == (kept / "digits_int8.tflite").stat().st_size
    with np.load(written / "digits.npz") as new, np.load(kept / "digits.npz") as old:
        assert all(np.array_equal(new[name], old[name]) for name in old.files)


def assert_same_initializers(new: onnx.ModelProto, old: onnx.ModelProto) -> None:
    """Compare initialisers: scales to the precision of calibration across machines, integers to a rounding step."""
    for a, b in zip(new.graph.initializer, old.graph.initializer, strict=True):
        assert a.name == b.name
        integer = a.data_type != onnx.TensorProto.FLOAT
        np.testing.assert_allclose(numpy_helper.to_array(a), numpy_helper.to_array(b), rtol=1e-5, atol=int(integer))


LAYERS = {
    "digits_int8.tflite": ["stem_out", "depthwise_out", "pointwise_sum", "joined_out", "down_out", "pooled", "scores"],
    "digits_qdq.onnx": ["stem_sum", "depthwise_sum", "pointwise_sum", "joined_sum", "down_sum", "pooled", "scores"],
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_know_their_names_in_the_file(name: str) -> None:
    net = load_net_from_model(DIGITS / name)
    named = [net.tensor(op.output).title for op in net.ops if op.kind not in ("reshape", "softmax")]
    assert named == LAYERS[name]


@pytest.mark.exhaustive
def test_layers_keep_their_names_when_the_model_is_quantised(split: dict[str, np.ndarray], tmp_path: Path) -> None:
    np.savez(tmp_path / "samples.npz", in0=split["float0"][:8])
    net = load_model(DIGITS / "digits_float.onnx", calibration=tmp_path / "samples.npz").net
    named = [net.tensor(op.output).title for op in net.ops if op.kind != "reshape"]
    assert named == [*LAYERS["digits_qdq.onnx"], "probabilities"]
    in_float = load_model(DIGITS / "digits_float.onnx", in_float=True).net
    assert in_float.tensor(in_float.ops[0].output).title == "stem_out"
