"""Models in QOperator form, written by ONNX Runtime's quantiser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import saved
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from test_digits import DIGITS, Images

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.net.reference import run_reference
from oracles.onnx_runtime import run_onnx


@pytest.mark.parametrize("activations", [QuantType.QInt8, QuantType.QUInt8])
def test_the_digits_are_recognised(activations: QuantType, tmp_path: Path) -> None:
    path = tmp_path / "quantised.onnx"
    quantize_static(
        DIGITS / "digits_float.onnx",
        path,
        Images(),
        quant_format=QuantFormat.QOperator,
        activation_type=activations,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )
    kinds = {node.op_type for node in onnx.load(path).graph.node}
    assert {"QLinearConv", "QLinearAdd"} <= kinds
    net = load_net_from_model(path)
    assert {op.kind for op in net.ops} >= {"conv2d", "depthwise_conv2d", "add"}
    data = np.load(DIGITS / "digits.npz")
    quantization = net.tensor(net.inputs[0]).quantization
    assert quantization is not None
    integers = np.rint(data["float0"] / np.float32(quantization.scale)) + quantization.zero_point
    (scores,) = run_reference(net, [np.clip(integers, -128, 127).astype(np.int8)])
    assert np.mean(scores.reshape(-1, 10).argmax(axis=1) == data["labels"]) > 0.95


def integer_model(
    node: onnx.NodeProto | list[onnx.NodeProto],
    shape: tuple[int, ...],
    result: tuple[int, ...],
    dtype: str = "int8",
    opset: int = 12,
    **constants: object,
) -> onnx.ModelProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [helper.make_tensor_value_info(name, kind, size) for name, size in (("x", shape), ("y", result))]
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(node if isinstance(node, list) else [node], "graph", ends[:1], ends[1:], values)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


SCALES = {
    "xs": np.array(0.04, np.float32),
    "xz": np.array(9, np.int8),
    "ws": np.array([0.01, 0.02, 0.005], np.float32),
    "wz": np.zeros(3, np.int8),
    "ys": np.array(0.09, np.float32),
    "yz": np.array(-7, np.int8),
}


def test_a_convolution_with_scales_by_channel_in_an_old_opset(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    weights, bias = random.integers(-127, 128, (3, 4, 3, 3), np.int8), random.integers(-900, 900, 3, np.int32)
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1])
    path = saved(integer_model(node, (1, 4, 6, 5), (1, 3, 6, 5), w=weights, b=bias, **SCALES), tmp_path)
    data = random.integers(-128, 128, (1, 4, 6, 5), np.int8)
    (expected,), (got,) = run_onnx(path, {"x": data}), run_reference(load_net_from_model(path), [data])
    assert np.abs(got.astype(int) - expected).max() <= 1


def test_a_dense_layer(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    weights, bias = random.integers(-127, 128, (3, 20), np.int8), random.integers(-900, 900, 3, np.int32)
    names = ["x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"]
    node = helper.make_node("QGemm", names, ["y"], domain="com.microsoft", transB=1)
    path = saved(integer_model(node, (4, 20), (4, 3), w=weights, b=bias, **SCALES), tmp_path)
    data = random.integers(-128, 128, (4, 20), np.int8)
    (expected,), (got,) = run_onnx(path, {"x": data}), run_reference(load_net_from_model(path), [data])
    assert np.abs(got.astype(int) - expected).max() <= 1


IMAGES = (2, 4, 6, 5)
OPERAND, SECOND, RESULT = ["x", "xs", "xz"], ["w", "us", "uz"], ["ys", "yz"]
OF_ONE, OF_TWO = [*OPERAND, *RESULT], [*OPERAND, *SECOND, *RESULT]
OPS: dict[str, tuple[list[str], tuple[int, ...], dict[str, Any]]] = {
    "QLinearAdd": (OF_TWO, IMAGES, {}),
    "QLinearAveragePool": (OF_ONE, (2, 4, 3, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 1]}),
    "QLinearConcat": ([*RESULT, *OPERAND, *SECOND], (4, 4, 6, 5), {"axis": 0}),
    "QLinearGlobalAveragePool": (OF_ONE, (2, 4, 1, 1), {}),
    "QLinearLeakyRelu": (OF_ONE, IMAGES, {"alpha": 0.2}),
    "QLinearMul": (OF_TWO, IMAGES, {}),
    "QLinearSigmoid": (OF_ONE, IMAGES, {}),
    "QLinearSoftmax": (OF_ONE, IMAGES, {"axis": 3, "opset": 13}),
    "QLinearWhere": (["c", *OF_TWO], IMAGES, {}),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("kind", OPS)
def test_an_op_of_each_type(kind: str, dtype: str, tmp_path: Path) -> None:
    random, limits = np.random.default_rng(4), np.iinfo(dtype)
    names, result, attributes = OPS[kind]
    data, other = (random.integers(limits.min, limits.max + 1, IMAGES).astype(dtype) for _ in range(2))
    held: dict[str, Any] = {"w": other, "c": random.random(IMAGES) < 0.5}
    scales = {"xs": 0.05, "us": 0.03, "ys": 1 / 256 if kind in ("QLinearSigmoid", "QLinearSoftmax") else 0.04}
    held |= {name: np.float32(scale) for name, scale in scales.items()}
    held |= {name: np.array(limits.min + zero, dtype) for name, zero in (("xz", 137), ("uz", 90), ("yz", 60))}
    node = helper.make_node(kind, names, ["y"], domain="com.microsoft", **attributes)
    constants = {name: value for name, value in held.items() if name in names}
    path = saved(integer_model(node, IMAGES, result, dtype, 13, **constants), tmp_path)
    (expected,), (got,) = run_onnx(path, {"x": data}), run_reference(load_net_from_model(path), [data])
    assert got.dtype == expected.dtype
    assert np.abs(got.astype(int) - expected).max() <= 1
    assert np.unique(expected).size > 2, "the example must say something"


def test_padding_of_integers_by_an_integer(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("QLinearSigmoid", ["x", "xs", "xz", "ys", "yz"], ["s"], domain="com.microsoft"),
        helper.make_node("Pad", ["s", "pads", "yz"], ["y"]),
    ]
    constants = {**SCALES, "ys": np.array(1 / 128, np.float32), "pads": np.array([0, 1, 0, 2])}
    path = saved(integer_model(nodes, (4, 20), (4, 23), **constants), tmp_path)
    data = np.random.default_rng(3).integers(-128, 128, (4, 20), np.int8)
    (expected,), (got,) = run_onnx(path, {"x": data}), run_reference(load_net_from_model(path), [data])
    assert np.abs(got.astype(int) - expected).max() <= 1


def test_scales_by_channel_in_a_qdq_model_of_an_old_opset(tmp_path: Path) -> None:
    path = tmp_path / "quantised.onnx"
    model = onnx.load(DIGITS / "digits_float.onnx")
    next(entry for entry in model.opset_import if entry.domain == "").version = 12
    onnx.save(model, tmp_path / "old.onnx")
    quantize_static(tmp_path / "old.onnx", path, Images(), activation_type=QuantType.QInt8, per_channel=True)
    assert "conv2d" in {op.kind for op in load_net_from_model(path).ops}


def test_a_softmax_of_another_opset_is_refused(tmp_path: Path) -> None:
    node = helper.make_node("QLinearSoftmax", OF_ONE, ["y"], domain="com.microsoft", axis=1, opset=12)
    path = saved(integer_model(node, IMAGES, IMAGES, "int8", 13, **SCALES), tmp_path)
    with pytest.raises(NpukitError, match=r"QLinearSoftmax.*of opset 12 in a model of opset 13"):
        load_net_from_model(path)


def test_too_few_inputs(tmp_path: Path) -> None:
    node = helper.make_node("QLinearAdd", ["x", "xs"], ["y"], domain="com.microsoft")
    path = saved(integer_model(node, (4, 20), (4, 20), xs=SCALES["xs"]), tmp_path)
    with pytest.raises(NpukitError, match=r"model.onnx"):
        load_net_from_model(path)
