"""Ops that ONNX defines by other ops: close to ONNX's reference evaluator, and free of nodes that change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from frontend.test_onnx_fold import tensor
from helpers import first_of
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

OPSET = 25
Arrays = Mapping[str, np.ndarray]


def saved(folder: Path, nodes: list[onnx.NodeProto], inputs: Arrays, constants: Arrays, domain: str = "") -> Path:
    """A model to `y`, whose shape ONNX's reference evaluator tells."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    given = [tensor(name, value.shape, kinds[name]) for name, value in inputs.items()]
    values = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "graph", given, [tensor("y", ["a"])], values)
    imports = [helper.make_opsetid("", OPSET), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=imports, ir_version=11)
    if not domain:
        shape = expected(model, inputs).shape
        graph.output[0].CopyFrom(tensor("y", shape))
    model.graph.CopyFrom(graph)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def expected(model: Any, inputs: Arrays) -> np.ndarray:
    results: Any = ReferenceEvaluator(model).run(None, dict(inputs))
    return np.asarray(results[0])


def compared(folder: Path, node: onnx.NodeProto, inputs: Arrays, constants: Arrays | None = None) -> Net:
    path = saved(folder, [node], inputs, constants or {})
    net = load_model(path, in_float=True).net
    (got,) = run_reference(net, list(inputs.values()))
    np.testing.assert_allclose(got, expected(onnx.load(path), inputs), rtol=1e-4, atol=1e-5)
    return net


@pytest.mark.parametrize("seed", first_of(range(20), 3))
def test_attention_of_random_sizes(seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    groups, repeats, queries, keys, size, batch = (int(random.integers(1, 4)) for _ in range(6))
    heads = groups * repeats
    flat = bool(random.integers(2))
    shapes = [(heads, queries), (groups, keys), (groups, keys)]
    names = ["q", "k", "v"]
    told: dict[str, Any] = {"is_causal": int(random.integers(2)), "softcap": float(random.choice([0, 2]))}
    if flat:
        told |= {"q_num_heads": heads, "kv_num_heads": groups}
        inputs = {name: (batch, length, count * size) for name, (count, length) in zip(names, shapes, strict=True)}
    else:
        inputs = {name: (batch, *shape, size) for name, shape in zip(names, shapes, strict=True)}
    given = {name: random.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
    if random.integers(2):
        names, given = [*names, "m"], {**given, "m": random.random((queries, keys)) > 0.4}
    compared(tmp_path, helper.make_node("Attention", names, ["y"], **told), given)


def test_an_attention_without_a_mask_adds_nothing(tmp_path: Path) -> None:
    given = {name: np.ones((1, 2, 5, 4), np.float32) for name in "qkv"}
    net = compared(tmp_path, helper.make_node("Attention", ["q", "k", "v"], ["y"]), given)
    whats = [getattr(op.attributes, "what", op.kind) for op in net.ops]
    assert not {"add", "where"} & set(whats)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotated_positions(interleaved: int, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    angles = random.standard_normal((1, 5, 4)).astype(np.float32)
    given = {"x": random.standard_normal((1, 3, 5, 8)).astype(np.float32)}
    node = helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"], interleaved=interleaved)
    compared(tmp_path, node, given, {"c": np.cos(angles), "s": np.sin(angles)})


@pytest.mark.parametrize("told", [{}, {"alpha": 1.5}])
def test_swish_with_its_default(told: dict[str, Any], tmp_path: Path) -> None:
    given = {"x": np.linspace(-3, 3, 8, dtype=np.float32)}
    compared(tmp_path, helper.make_node("Swish", ["x"], ["y"], **told), given)


def test_a_crop_or_pad_around_the_centre(tmp_path: Path) -> None:
    given = {"x": np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)}
    compared(tmp_path, helper.make_node("CenterCropPad", ["x", "size"], ["y"]), given, {"size": np.array([2, 9])})


def test_an_attention_is_quantised(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    weights = {name: random.standard_normal((16, 16)).astype(np.float32) / 4 for name in ("wq", "wk", "wv")}
    nodes = [helper.make_node("MatMul", ["x", f"w{name}"], [name]) for name in "qkv"]
    told: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1}
    nodes.append(helper.make_node("Attention", ["q", "k", "v"], ["y"], **told))
    frames = random.standard_normal((8, 1, 6, 16)).astype(np.float32)
    path = saved(tmp_path, nodes, {"x": frames[0]}, weights)
    np.savez(tmp_path / "cal.npz", in0=frames)
    net = load_model(path, calibration=tmp_path / "cal.npz", in_file_types=True).net
    assert {"dense", "matmul", "softmax"} & {op.kind for op in net.ops}
    (got,) = run_reference(net, [frames[0]])
    wanted = expected(onnx.load(path), {"x": frames[0]})
    assert np.square(got - wanted).sum() < 1e-3 * np.square(wanted).sum()


def test_onnx_runtimes_op_of_the_same_name_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("Attention", ["x", "w"], ["y"], domain="com.microsoft", num_heads=2)
    given, weights = {"x": np.ones((1, 3, 4), np.float32)}, {"w": np.ones((4, 12), np.float32)}
    path = saved(tmp_path, [node], given, weights, "com.microsoft")
    with pytest.raises(NpukitError, match=r"is Attention of com\.microsoft, which npukit does not read yet") as refusal:
        load_model(path, in_float=True)
    assert refusal.value.tries


def test_a_converter_that_wants_a_constant_is_named(tmp_path: Path) -> None:
    node = helper.make_node("Pad", ["x", "pads", "level"], ["y"])
    given = {"x": np.ones((2, 3), np.float32), "level": np.array(1.0, np.float32)}
    path = saved(tmp_path, [node], given, {"pads": np.array([0, 1, 0, 1])})
    with pytest.raises(NpukitError, match="constant_value computed at run time") as refusal:
        load_model(path, in_float=True)
    assert any("--custom Pad" in each for each in refusal.value.tries)


def test_a_shape_is_a_result(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Shape", ["x"], ["y"])], {"x": np.ones((2, 5), np.float32)}, {})
    model = onnx.load(path)
    model.graph.output[0].CopyFrom(tensor("y", [2], onnx.TensorProto.INT64))
    onnx.save(model, path)
    (got,) = run_reference(load_model(path, in_float=True).net, [np.ones((2, 5), np.float32)])
    assert got.tolist() == [2, 5]


def test_a_model_without_an_input_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Neg", ["c"], ["y"])], {}, {"c": np.ones(3, np.float32)})
    with pytest.raises(NpukitError, match="has no input"):
        load_model(path, in_float=True)
