"""ONNX layers with weights of 4 bits and a scale for each block of inputs, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import Graph, saved

from frontend.test_onnx_qdq import compared, int8
from npukit.errors import NpukitError
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import run_onnx

DEPTH, CHANNELS = 72, 10


def layer(kind: str, size: int, dtype: type, zero: int) -> Graph:
    """A dense layer on int8 data. `size`: inputs of a block."""
    graph, random, count = Graph(opset=21), np.random.default_rng(3), -(-DEPTH // size)
    weights, zeros = random.integers(-8, 8, (DEPTH, CHANNELS)) + zero, np.full((count, CHANNELS), zero)
    scales = random.uniform(0.02, 0.2, zeros.shape).astype(np.float32)
    turned = kind == "Gemm"
    for name, value in (("w", weights.astype(dtype)), ("scales", scales), ("zeros", zeros.astype(dtype))):
        graph.constant(name, np.ascontiguousarray(value.T if turned else value))
    graph.node("DequantizeLinear", ["w", "scales", "zeros"], "real", axis=int(turned), block_size=size)
    graph.constant("b", random.normal(0, 3, CHANNELS).astype(np.float32))
    data = graph.dequantized("x", 0.03, 1)
    if turned:
        graph.node("Gemm", [data, "real", "b"], "product", transB=1)
    else:
        graph.node("MatMul", [data, "real"], "product")
    graph.quantized("product", 0.3, 7, "y")
    return graph


@pytest.mark.parametrize("kind", ["MatMul", "Gemm"])
@pytest.mark.parametrize(
    ("size", "dtype", "zero"), [(16, ml_dtypes.int4, 0), (32, ml_dtypes.uint4, 8), (72, np.int8, 3)]
)
def test_each_block_is_a_sum_of_products(kind: str, size: int, dtype: type, zero: int, tmp_path: Path) -> None:
    net = compared(layer(kind, size, dtype, zero), "y", tmp_path, x=int8(11, 20, DEPTH))
    blocks = -(-DEPTH // size)
    sums = [op for op in net.ops if op.kind == "sums"]
    assert len(sums) == blocks if blocks > 1 else [op.kind for op in net.ops] == ["dense"]
    for op in sums:
        weights = net.constants[op.inputs[1]]
        assert np.array_equal(weights, np.clip(weights, -8, 7))


def packed_layer(size: int, *, zeros: bool, order: bool = False) -> onnx.ModelProto:
    """ONNX Runtime's layer with packed weights of 4 bits."""
    random, count = np.random.default_rng(5), -(-DEPTH // size)
    held = {"w": random.integers(0, 256, (CHANNELS, count, size // 2), np.uint8)}
    held["scales"] = random.uniform(0.02, 0.1, CHANNELS * count).astype(np.float32)
    held["zeros"] = random.integers(0, 256, CHANNELS * -(-count // 2), np.uint8)
    held["order"] = np.arange(DEPTH, dtype=np.int32) // size
    held["b"] = random.normal(0, 1, CHANNELS).astype(np.float32)
    names = ["x", "w", "scales", "zeros" if zeros else "", "order" if order else "", "b"]
    options: dict[str, Any] = {"K": DEPTH, "N": CHANNELS, "bits": 4, "block_size": size}
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **options)
    ends = [
        helper.make_tensor_value_info(*each)
        for each in (("x", TensorProto.FLOAT, (3, DEPTH)), ("y", TensorProto.FLOAT, (3, CHANNELS)))
    ]
    constants = [numpy_helper.from_array(value, name) for name, value in held.items() if name in names]
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("zeros", [False, True])
def test_packed_weights_are_unpacked(size: int, zeros: bool, tmp_path: Path) -> None:
    path = saved(packed_layer(size, zeros=zeros), tmp_path)
    data = np.random.default_rng(1).normal(0, 1, (3, DEPTH)).astype(np.float32)
    (expected,) = run_onnx(path, {"x": data})
    (got,) = run_reference(load_model(path, in_float=True).net, [data])
    assert np.abs(got - expected).max() < 1e-4 * np.abs(expected).max()


def test_inputs_in_any_order_are_refused(tmp_path: Path) -> None:
    path = saved(packed_layer(16, zeros=False, order=True), tmp_path)
    with pytest.raises(NpukitError, match=r"MatMulNBits .* in any order"):
        load_model(path, in_float=True)
