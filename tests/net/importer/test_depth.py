"""Graphs may be as deep as they like: nothing on the way to the net recurses over their length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from helpers import first_of, shallow
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import Session


def saved(
    folder: Path, nodes: list[onnx.NodeProto], shapes: tuple[list[int], list[int]], dtype: int, **constants: np.ndarray
) -> Path:
    """A model from x to y."""
    ends = [helper.make_tensor_value_info(name, dtype, shape) for name, shape in zip("xy", shapes, strict=True)]
    values = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "deep", ends[:1], ends[1:], values)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), folder / "model.onnx"
    )
    return folder / "model.onnx"


def imported(path: Path, *, in_float: bool = False) -> Net:
    with shallow():
        return load_model(path, in_float=in_float).net


def in_a_row(kinds: list[str], first: str = "x", last: str = "y") -> list[onnx.NodeProto]:
    """Nodes that read each the one before."""
    names = [first, *(f"v{number}" for number in range(1, len(kinds))), last]
    return [helper.make_node(kind, [names[i]], [names[i + 1]]) for i, kind in enumerate(kinds)]


def quantised(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Float nodes from `real` to `made` between int8 ends."""
    return [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["real"]),
        *nodes,
        helper.make_node("QuantizeLinear", ["made", "scale", "zero"], ["y"]),
    ]


ENDS = {"scale": np.array(0.01, np.float32), "zero": np.array(3, np.int8)}


def reference_of(path: Path, x: np.ndarray) -> np.ndarray:
    return Session(path).run({"x": x})[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "gates", "more"), first_of([("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 1}), ("GRU", 3, {})])
)
def test_a_recurrent_layer_in_float_has_its_weights_once(
    kind: str, gates: int, more: dict[str, Any], tmp_path: Path
) -> None:
    steps, size, random = 40, 4, np.random.default_rng(5)
    shapes = {"W": (1, gates * size, size), "R": (1, gates * size, size), "B": (1, 2 * gates * size)}
    arrays = {name: (random.standard_normal(shape) / 2).astype(np.float32) for name, shape in shapes.items()}
    node = helper.make_node(kind, ["x", "W", "R", "B"], ["y"], hidden_size=size, **more)
    path = saved(tmp_path, [node], ([steps, 1, size], [steps, 1, 1, size]), TensorProto.FLOAT, **arrays)
    net = imported(path, in_float=True)
    held, given = (sum(value.nbytes for value in each.values()) for each in (net.constants, arrays))
    assert held < 2 * given
    x = random.standard_normal((steps, 1, size)).astype(np.float32)
    np.testing.assert_allclose(run_reference(net, [x])[0], reference_of(path, x), atol=1e-5)


@pytest.mark.exhaustive
def test_functions_one_after_the_other_in_float(tmp_path: Path) -> None:
    path = saved(tmp_path, in_a_row(["Sin", "Neg"] * 150), ([1, 3], [1, 3]), TensorProto.FLOAT)
    net = imported(path, in_float=True)
    x = np.array([[0.5, -1.0, 2.0]], np.float32)
    np.testing.assert_allclose(run_reference(net, [x])[0], reference_of(path, x), atol=1e-5)


@pytest.mark.exhaustive
def test_many_moves_of_integers(tmp_path: Path) -> None:
    nodes = quantised(in_a_row(["Transpose"] * 501, "real", "made"))
    path = saved(tmp_path, nodes, ([2, 3], [3, 2]), TensorProto.INT8, **ENDS)
    x = np.arange(6, dtype=np.int8).reshape(2, 3)
    np.testing.assert_array_equal(run_reference(imported(path), [x])[0], x.T)


@pytest.mark.parametrize("squares", [3, 60])
def test_a_value_read_twice_by_each_function_is_computed_once(squares: int, tmp_path: Path) -> None:
    names = ["real", *(f"v{number}" for number in range(1, squares)), "made"]
    ladder = [helper.make_node("Mul", [names[i], names[i]], [names[i + 1]]) for i in range(squares)]
    path = saved(tmp_path, quantised(ladder), ([1, 2], [1, 2]), TensorProto.INT8, **ENDS)
    net = imported(path)
    assert [op.kind for op in net.ops] == ["lookup"]
    (got,) = run_reference(net, [np.array([[3, 102]], np.int8)])
    expected = 3 + round(0.99 ** (2**squares) / 0.01)
    assert got.tolist() == [[3, expected]]
