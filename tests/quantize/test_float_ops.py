"""Float models computed in float: close to ONNX Runtime for any op."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from float_models import node, saved, weights

from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.ops.table import SPECS
from npukit.net.receptive import cuttable_axes
from npukit.net.reference import run_reference
from npukit.net.store import load_net, save_net
from npukit.quantize.models import load_model
from oracles.onnx_runtime import Session

IMAGE, ROWS = (1, 4, 6, 5), (2, 3, 8)
NORM = {"s": weights(8), "t": weights(8)}
KERNEL = {"w": weights(6, 4, 3, 3), "b": weights(6)}
INDICES = np.array([2, 0, 2], np.int64)

NODES: dict[str, tuple[tuple[int, ...], list[onnx.NodeProto], dict[str, np.ndarray]]] = {
    "layer norm": (ROWS, [node("LayerNormalization", "x s t", "y")], NORM),
    "instance norm": (IMAGE, [node("InstanceNormalization", "x s t", "y")], {"s": weights(4), "t": weights(4)}),
    "softmax": (ROWS, [node("Softmax", "x", "y", axis=1)], {}),
    "error function": (ROWS, [node("Erf", "x", "y")], {}),
    "sines": (ROWS, [node("Sin", "x", "a"), node("Cos", "a", "b"), node("Tan", "b", "y")], {}),
    "arcs": (ROWS, [node("Tanh", "x", "a"), node("Asin", "a", "b"), node("Atan", "b", "y")], {}),
    "powers": (ROWS, [node("Abs", "x", "a"), node("Pow", "a p", "y")], {"p": np.array(1.7, np.float32)}),
    "variance": (ROWS, [node("Sub", "x m", "d"), node("Mul", "d d", "y")], {"m": weights(2, 3, 1)}),
    "sum of squares": (ROWS, [node("ReduceSumSquare", "x", "y", axes=[2])], {}),
    "largest": (ROWS, [node("ReduceMax", "x", "y", axes=[1], keepdims=0)], {}),
    "chosen": (ROWS, [node("Greater", "x z", "m"), node("Where", "m x z", "y")], {"z": np.array(0.1, np.float32)}),
    "gathered": (ROWS, [node("Gather", "x i", "y", axis=2)], {"i": INDICES}),
    "summed up": (ROWS, [node("CumSum", "x a", "y")], {"a": np.array(2, np.int64)}),
    "convolution": (
        IMAGE,
        [node("Conv", "x w b", "y", pads=[1, 0, 1, 2])],
        KERNEL,
    ),
    "transposed": (IMAGE, [node("ConvTranspose", "x w", "y", group=2)], {"w": weights(4, 3, 2, 2)}),
    "pool with gaps": (IMAGE, [node("MaxPool", "x", "y", kernel_shape=[2, 2], dilations=[2, 2])], {}),
    "two products": (ROWS, [node("Transpose", "x", "t", perm=[0, 2, 1]), node("MatMul", "x t", "y")], {}),
    "two results": (ROWS, [node("Split", "x", "a b", axis=2), node("Mul", "a b", "y")], {}),
    "divided": (ROWS, [node("Exp", "x", "e"), node("Add", "e x", "d"), node("Div", "x d", "y")], {}),
    "cubic": (
        IMAGE,
        [node("Resize", "x r k", "y", mode="cubic", coordinate_transformation_mode="half_pixel")],
        {"r": np.zeros(0, np.float32), "k": np.array([1, 1, 1.5, 2], np.float32)},
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_ops_near_onnx_runtime(name: str, tmp_path: Path) -> None:
    shape, nodes, constants = NODES[name]
    path = saved(tmp_path, shape, nodes, **constants)
    cases = np.random.default_rng(3).standard_normal((4, *shape)).astype(np.float32)
    net = load_model(path, in_float=True).net
    assert {op.kind for op in net.ops} <= {"tvm_code", "reshape"}
    assert "tvm_code" in {op.kind for op in net.ops}
    (got,) = run_reference(net, [cases])
    np.testing.assert_allclose(got, _expected(path, cases), rtol=2e-4, atol=2e-5)
    _check_text(net, tmp_path, cases, got)


ROW = (1, 2, 192)
ROW_NORM = {"s": weights(192), "t": weights(192)}
OF_FEW_ROWS: dict[str, tuple[tuple[int, ...], list[onnx.NodeProto], dict[str, np.ndarray]]] = {
    "softmax": ((1, 192), [node("Softmax", "x", "y", axis=-1)], {}),
    "logarithm of softmax": ((192,), [node("LogSoftmax", "x", "y")], {}),
    "layer norm": ((1, 1, 192), [node("LayerNormalization", "x s t", "y")], ROW_NORM),
    "layer norm of two axes": (
        ROW,
        [node("LayerNormalization", "x s", "y", axis=1, epsilon=0.1)],
        {"s": weights(2, 192)},
    ),
    "mean": (ROW, [node("ReduceMean", "x", "y", axes=[1, 2])], {}),
    "largest of all": (ROW, [node("Neg", "x", "n"), node("ReduceMax", "n", "y", axes=[0, 1, 2], keepdims=0)], {}),
    "smallest": (ROW, [node("ReduceMin", "x", "y")], {}),
    "root mean square": (ROW, [node("Mul", "x x", "q"), node("ReduceMean", "q", "m"), node("Sqrt", "m", "y")], {}),
    "norm of channels": (
        (1, 3, 16, 16),
        [node("InstanceNormalization", "x s t", "y")],
        {"s": weights(3), "t": weights(3)},
    ),
    "norm of many channels": (
        (1, 16, 12, 16),
        [node("InstanceNormalization", "x s t", "y")],
        {"s": weights(16), "t": weights(16)},
    ),
    "two sums of a source": (
        ROW,
        [
            node("ReduceMax", "x", "r", axes=[2]),
            node("ReduceMax", "x", "m"),
            node("Add", "r m", "b"),
            node("Add", "x b", "y"),
        ],
        {},
    ),
    "softmax of rows": (ROW, [node("Softmax", "x", "y")], {}),
    "softmax of a sum": (
        (1, 192),
        [node("Exp", "x", "e"), node("Add", "e x", "d"), node("Softmax", "d", "s"), node("Mul", "s x", "y")],
        {},
    ),
}
"""Functions of a single row, or of few rows."""


@pytest.mark.parametrize("name", OF_FEW_ROWS)
def test_many_pes_can_share_every_pass_over_few_rows(name: str, tmp_path: Path) -> None:
    shape, nodes, constants = OF_FEW_ROWS[name]
    path = saved(tmp_path, shape, nodes, **constants)
    cases = np.random.default_rng(3).standard_normal((4, *shape)).astype(np.float32)
    net = load_model(path, in_float=True).net
    (got,) = run_reference(net, [cases])
    np.testing.assert_allclose(got, _expected(path, cases), rtol=2e-5, atol=2e-6)
    long = [op for op in net.ops if op.kind != "reshape" and net.tensor(op.inputs[0]).elements >= 192]
    assert long
    for op in long:
        assert prod(net.tensor(op.output).shape[axis] for axis in cuttable_axes(net, op)) >= 16


def test_a_part_of_a_product_of_one_row_takes_its_own_columns(tmp_path: Path) -> None:
    path = saved(tmp_path, (1, 8), [node("MatMul", "x w", "y")], w=weights(8, 6))
    net = load_model(path, in_float=True).net
    (op,) = net.ops
    (taken,) = (values for _, values, _ in SPECS[op.kind].constants_of(net, op, Box((0, 2), (1, 4))))
    np.testing.assert_array_equal(taken, weights(8, 6).T[2:4])


def _expected(path: Path, cases: np.ndarray) -> np.ndarray:
    session = Session(path)
    return np.stack([session.run({"x": case})[0] for case in cases])


def _check_text(net: Net, folder: Path, cases: np.ndarray, expected: Any) -> None:
    """The net's text includes the code."""
    save_net(net, folder)
    (again,) = run_reference(load_net(folder), [cases])
    assert again.tobytes() == expected.tobytes()
