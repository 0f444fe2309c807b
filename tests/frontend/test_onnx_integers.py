"""ONNX's integer products and dynamic quantisation, equal bit for bit to ONNX Runtime node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_models import saved

from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import run_onnx

Arrays = dict[str, np.ndarray]

QUICK = settings(max_examples=5, derandomize=True)


def model(nodes: Sequence[onnx.NodeProto], inputs: Arrays, constants: Arrays, results: Mapping[str, int]) -> Any:
    ends = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in inputs.items()
    ]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in results.items()]
    values = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", ends, outputs, values)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made)


def equal(made: Any, inputs: Arrays, folder: Path, *, in_float: bool = False) -> Net:
    """The net, after a check of npukit's reference (equal to the device) against ONNX Runtime without optimisations."""
    path = saved(made, folder)
    net = load_model(path, in_float=in_float).net
    for got, expected in zip(run_reference(net, list(inputs.values())), run_onnx(path, inputs), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected.reshape(got.shape))
    return net


def summed(net: Net) -> bool:
    """True if the layer computes sums of int8, as the MAC array does."""
    return any(op.kind == "sums" for op in net.ops)


def integers(random: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


@QUICK
@given(
    seed=st.integers(0, 1 << 30),
    types=st.sampled_from(["uint8 uint8", "uint8 int8"]),
    known=st.sampled_from(["xz wz", "w wz", "w xz wz"]),
)
def test_convolutions(seed: int, types: str, known: str, tmp_path: Path) -> None:
    """Weights and the data's zero point are constants or computed at run time."""
    random = np.random.default_rng(seed)
    groups, depth, *window = (int(size) for size in random.integers((1, 1, 1, 1), (3, 4, 4, 4)))
    x, w = types.split()
    weights = integers(random, w, groups * int(random.integers(1, 4)), depth, *window)
    inputs = {"x": integers(random, x, 1, groups * depth, 7, 6)}
    others = {"w": weights, "xz": integers(random, x), "wz": np.array(random.integers(0, 9), w)}
    node = helper.make_node(
        "ConvInteger",
        ["x", "w", "xz", "wz"],
        ["y"],
        group=groups,
        strides=random.integers(1, 3, 2),
        pads=random.integers(0, 2, 4),
        dilations=random.integers(1, 3, 2),
    )
    inputs |= {name: value for name, value in others.items() if name not in known.split()}
    constants = {name: others[name] for name in known.split()}
    proto = model([node], inputs, constants, {"y": TensorProto.INT32})
    assert summed(equal(proto, inputs, tmp_path)) == ("w" in constants)


def test_corrections_of_a_large_image_are_no_larger_than_the_weights(tmp_path: Path) -> None:
    """Only the edges of the image differ in their sums of weights."""
    random = np.random.default_rng(7)
    inputs = {"x": integers(random, "uint8", 1, 4, 20, 30), "xz": np.array(9, np.uint8)}
    constants = {"w": integers(random, "int8", 8, 4, 3, 3)}
    node = helper.make_node("ConvInteger", ["x", "w", "xz"], ["y"], pads=[1, 0, 2, 1], strides=[1, 2])
    net = equal(model([node], inputs, constants, {"y": TensorProto.INT32}), inputs, tmp_path)
    assert sum(each.nbytes for each in net.constants.values()) < 8 * constants["w"].nbytes


def test_groups_with_weights_of_nine_bits(tmp_path: Path) -> None:
    """Weights of uint8 minus a zero point that is not the middle."""
    random = np.random.default_rng(8)
    inputs = {"x": integers(random, "uint8", 1, 4, 5, 6), "xz": np.array(3, np.uint8)}
    constants = {"w": integers(random, "uint8", 4, 1, 3, 3), "wz": np.array(0, np.uint8)}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], group=4, pads=[1, 1, 1, 1])
    assert summed(equal(model([node], inputs, constants, {"y": TensorProto.INT32}), inputs, tmp_path))


@pytest.mark.parametrize("moved", [False, True])
def test_convolutions_along_one_axis(moved: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    inputs = {"x": integers(random, "uint8", 1, 4, 9)}
    constants = {"w": integers(random, "int8", 6, 4, 3), "xz": np.array(7, np.uint8), "wz": np.array(2, np.int8)}
    inputs |= {"xz": constants.pop("xz")} if moved else {}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], dilations=[2], pads=[2, 1])
    assert summed(equal(model([node], inputs, constants, {"y": TensorProto.INT32}), inputs, tmp_path))


def test_a_line_of_a_single_channel_that_is_quantised_at_run_time(tmp_path: Path) -> None:
    """The data are reshaped twice, where others are transposed."""
    random = np.random.default_rng(7)
    inputs = {"x": random.normal(size=(2, 1, 7)).astype(np.float32)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "o"]),
        helper.make_node("ConvInteger", ["q", "w", "o"], ["y"], strides=[2]),
    ]
    made = model(nodes, inputs, {"w": integers(random, "int8", 2, 1, 3)}, {"y": TensorProto.INT32})
    assert summed(equal(made, inputs, tmp_path))


def test_what_is_between_two_convolutions_stays_as_the_first_leaves_it(tmp_path: Path) -> None:
    """Float code keeps the axes as they are in memory, so that only the input is transposed."""
    random = np.random.default_rng(6)
    inputs = {"x": random.normal(size=(1, 4, 5, 6)).astype(np.float32)}
    values = {"b": random.normal(size=(4, 1, 1)).astype(np.float32), "w": integers(random, "int8", 4, 4, 3, 3)}
    nodes = []
    for source, result in (("x", "y"), ("y", "z")):
        names = [f"{result}{part}" for part in ("q", "s", "o", "c", "f", "r", "a")]
        q, s, o, c, f, r, a = names
        nodes += [
            helper.make_node("DynamicQuantizeLinear", [source], [q, s, o]),
            helper.make_node("ConvInteger", [q, "w", o], [c], pads=[1, 1, 1, 1]),
            helper.make_node("Cast", [c], [f], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f, s], [r]),
            helper.make_node("Add", [r, "b"], [a]),
            helper.make_node("Relu", [a], [result]),
        ]
    net = equal(model(nodes, inputs, values, {"z": TensorProto.FLOAT}), inputs, tmp_path)
    moved = [net.tensor(op.inputs[0]).dtype for op in net.ops if op.kind == "transpose"]
    assert moved == ["int8", "float32"]


@QUICK
@given(
    seed=st.integers(0, 1 << 30),
    by_column=st.booleans(),
    known=st.sampled_from(["az bz", "b bz", "b az bz"]),
    rank=st.integers(2, 3),
)
def test_products(seed: int, by_column: bool, known: str, rank: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    rows, depth, columns = (int(size) for size in random.integers(1, 7, 3))
    others = {
        "b": integers(random, "int8", depth, columns),
        "az": integers(random, "uint8"),
        "bz": integers(random, "int8", *([columns] if by_column else [])),
    }
    inputs = {"a": integers(random, "uint8", *[2] * (rank - 2), rows, depth)}
    inputs |= {name: value for name, value in others.items() if name not in known.split()}
    node = helper.make_node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])
    constants = {name: others[name] for name in known.split()}
    net = equal(model([node], inputs, constants, {"y": TensorProto.INT32}), inputs, tmp_path)
    assert summed(net) == ("b" in known.split())


HALVES = np.array([[-10, -0.5, 0, 0.5], [1.5, 2.5, 245, 0.49999997]], np.float32)


@pytest.mark.parametrize(
    "values",
    [
        HALVES,
        np.zeros((3, 4)),
        np.full((2, 2), 7.0),
        np.full((2, 2), -3.0),
        np.random.default_rng(3).normal(size=(9, 8)),
    ],
    ids=["halves", "zeros", "positive", "negative", "normal"],
)
def test_dynamic_quantisation(values: np.ndarray, tmp_path: Path) -> None:
    inputs = {"x": values.astype(np.float32)}
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"])
    results = {"y": TensorProto.UINT8, "scale": TensorProto.FLOAT, "zero": TensorProto.UINT8}
    equal(model([node], inputs, {}, results), inputs, tmp_path, in_float=True)


def test_what_is_quantised_and_dequantised_by_scales_computed_at_run_time(tmp_path: Path) -> None:
    inputs = {"x": np.random.default_rng(5).normal(size=(4, 6)).astype(np.float32)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"]),
        helper.make_node("DequantizeLinear", ["y", "scale", "zero"], ["real"]),
        helper.make_node("QuantizeLinear", ["real", "scale", "zero"], ["again"]),
    ]
    results = {"real": TensorProto.FLOAT, "again": TensorProto.UINT8}
    equal(model(nodes, inputs, {}, results), inputs, tmp_path, in_float=True)


def test_weights_with_a_scale_for_each_block(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    inputs = {"x": random.normal(size=(2, 6)).astype(np.float32)}
    constants = {
        "w": integers(random, "int8", 6, 3),
        "scales": random.uniform(0.01, 0.1, (3, 3)).astype(np.float32),
        "zeros": integers(random, "int8", 3, 3),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scales", "zeros"], ["real"], axis=0, block_size=2),
        helper.make_node("MatMul", ["x", "real"], ["y"]),
    ]
    path = saved(model(nodes, inputs, constants, {"y": TensorProto.FLOAT}), tmp_path)
    (got,) = run_reference(load_model(path, in_float=True).net, [inputs["x"]])
    np.testing.assert_allclose(got, run_onnx(path, inputs)[0], rtol=1e-5, atol=1e-6)


def test_what_is_quantised_dynamically_needs_no_calibration(tmp_path: Path) -> None:
    inputs = {"a": np.zeros((2, 3), np.uint8)}
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    path = saved(model([node], inputs, {"b": np.ones((3, 2), np.int8)}, {"y": TensorProto.INT32}), tmp_path)
    with pytest.raises(NpukitError, match="is quantised already"):
        load_model(path, in_float=True)


def test_an_error_names_the_node_and_nothing_else_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Unsqueeze", ["r", "axes"], ["y"], name="last")]
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3)),
            helper.make_tensor_value_info("axes", TensorProto.INT64, (1,)),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 2, 3))],
    )
    path = saved(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path)
    with pytest.raises(NpukitError, match=r"node 1 \(last, Unsqueeze\).* computed at run time"):
        load_model(path, in_float=True)
    assert capfd.readouterr() == ("", "")
