"""A model quantised dynamically by ONNX Runtime: the emulator's outputs equal ONNX Runtime's, bit for bit.

ONNX Runtime runs each node on its own, in IEEE single precision as the device does. The model has no sum of floats,
whose order could differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from end_to_end.builds import build
from npukit import api
from oracles.onnx_runtime import run_onnx

FEATURES, CASES = 16, 12


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], name=f"{kind}_{output}", **attributes)


def save_float_model(path: Path) -> None:
    random = np.random.default_rng(4)
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (FEATURES, 8), "b2": (FEATURES,), "w3": (FEATURES, 5), "b3": (5,)}
    nodes = [
        node("Conv", "x w1 b1", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "c", "r1"),
        node("MaxPool", "r1", "p", kernel_shape=[5, 5]),
        node("Flatten", "p", "f"),
        node("Gemm", "f w2 b2", "g", transB=1),
        node("Relu", "g", "r2"),
        node("MatMul", "r2 w3", "m"),
        node("Add", "m b3", "y"),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, size)
        for name, size in (("x", (1, 3, 9, 9)), ("y", (1, 5)))
    ]
    values = [numpy_helper.from_array(random.normal(size=size).astype(np.float32), k) for k, size in shapes.items()]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.mark.exhaustive
def test_a_model_of_quantize_dynamic(tmp_path: Path) -> None:
    save_float_model(tmp_path / "float.onnx")
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "model.onnx", weight_type=QuantType.QUInt8)
    kinds = {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}
    assert {"ConvInteger", "MatMulInteger", "DynamicQuantizeLinear"} <= kinds
    built = build(tmp_path / "model.onnx", tmp_path / "out", pes=4)
    engines = [op["engine"] for op in built.manifest.summary["ops"] if op["op"] == "sums"]
    assert engines == ["mac_array"] * 3
    assert api.validate(tmp_path / "out").passed
    images = np.random.default_rng(8).normal(size=(CASES, 1, 3, 9, 9)).astype(np.float32)
    np.savez(tmp_path / "inputs.npz", in0=images)
    (got,) = api.run(tmp_path / "out", inputs=tmp_path / "inputs.npz")
    expected = [run_onnx(tmp_path / "model.onnx", {"x": image})[0] for image in images]
    np.testing.assert_array_equal(got, np.stack(expected).reshape(got.shape))
