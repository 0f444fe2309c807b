"""The ONNX oracles give the same results on any processor, and every test uses them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from helpers import CHECKOUT
from oracles.onnx_runtime import Session, run_onnx

ORACLE = Path("tests/oracles/onnx_runtime.py")


def test_no_other_test_opens_a_session() -> None:
    files = (path.relative_to(CHECKOUT) for path in (CHECKOUT / "tests").rglob("*.py"))
    calls = "InferenceSession" + "("
    assert [path for path in files if calls in (CHECKOUT / path).read_text(encoding="utf-8")] == [ORACLE]


def dense(folder: Path, **more: int | float) -> Path:
    """A QGemm whose sums exceed 16 bits by far."""
    values = {"xs": np.float32(1), "xz": np.uint8(0), "ws": np.array([1, 2], np.float32), "wz": np.int8(0)}
    values |= {"w": np.full((2, 6), 127, np.int8), "b": np.array([1, -7], np.int32)}
    values |= {"ys": np.float32(2**12), "yz": np.uint8(3)}
    names = ["x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"]
    node = helper.make_node("QGemm", names, ["y"], domain="com.microsoft", transB=1)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in more.items())
    ends = [
        helper.make_tensor_value_info(name, TensorProto.UINT8, shape) for name, shape in (("x", [1, 6]), ("y", [1, 2]))
    ]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "dense", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_a_dense_layer_of_integers_is_exact(alpha: float, tmp_path: Path) -> None:
    """Six products of 255 and 127: without VNNI, ONNX Runtime adds pairs of products in 16 bits."""
    (got,) = run_onnx(dense(tmp_path, alpha=alpha), {"x": np.full((1, 6), 255, np.uint8)})
    total = 6 * 255 * 127
    expected = [3 + round((total + 1) * alpha / 2**12), 3 + round((total - 7) * 2 * alpha / 2**12)]
    assert got.tolist() == [expected]


def test_onnx_runtime_is_not_asked_for_products_of_integers(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="QGemm"):
        Session(dense(tmp_path))
