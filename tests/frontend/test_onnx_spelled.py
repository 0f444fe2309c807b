"""Ops of ONNX that npukit spells in other ops: close to ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised
from oracles.onnx_runtime import Session

ROWS, IMAGE, SIGNAL = (2, 3, 8), (1, 4, 6, 5), (2, 40, 1)
WINDOW = np.hanning(12).astype(np.float32)
STEP, LENGTH = np.array(5), np.array(12)
BY_CHANNEL = {"s": np.linspace(0.5, 2, 4, dtype=np.float32), "t": np.linspace(-1, 1, 4, dtype=np.float32)}

NODES: dict[str, tuple[tuple[int, ...], onnx.NodeProto, dict[str, np.ndarray]]] = {
    "group norm": (IMAGE, helper.make_node("GroupNormalization", ["x", "s", "t"], ["y"], num_groups=2), BY_CHANNEL),
    "norm of squares": (ROWS, helper.make_node("LpNormalization", ["x"], ["y"], axis=1), {}),
    "norm of magnitudes": (ROWS, helper.make_node("LpNormalization", ["x"], ["y"], p=1), {}),
    "short transform": (
        SIGNAL,
        helper.make_node("STFT", ["x", "step", "w", "length"], ["y"], onesided=1),
        {"step": STEP, "w": WINDOW, "length": LENGTH},
    ),
    "both sides": (
        SIGNAL,
        helper.make_node("STFT", ["x", "step", "", "length"], ["y"], onesided=0),
        {"step": STEP, "length": LENGTH},
    ),
    "transform": (SIGNAL, helper.make_node("DFT", ["x"], ["y"], onesided=1), {}),
    "transform of complex numbers": ((2, 9, 2), helper.make_node("DFT", ["x"], ["y"]), {}),
    "inverse": ((2, 10, 2), helper.make_node("DFT", ["x"], ["y"], inverse=1), {}),
    "transform along another axis": (
        (2, 6, 5, 1),
        helper.make_node("DFT", ["x", "length", "axis"], ["y"], onesided=1),
        {"length": np.array(8), "axis": np.array(1)},
    ),
    "inverse to real numbers": ((2, 6, 2), helper.make_node("DFT", ["x"], ["y"], inverse=1, onesided=1), {}),
    "chosen places": (
        ROWS,
        helper.make_node("Compress", ["x", "c"], ["y"], axis=1),
        {"c": np.array([True, False, True])},
    ),
    "chosen places of a line": (ROWS, helper.make_node("Compress", ["x", "c"], ["y"]), {"c": np.arange(40) % 3 == 1}),
    "one-hot codes": (
        ROWS,
        helper.make_node("OneHot", ["x", "depth", "values"], ["y"], axis=1),
        {"depth": np.array(3.0, np.float32), "values": np.array([-1, 2], np.float32)},
    ),
    "largest number": (ROWS, helper.make_node("Hardmax", ["x"], ["y"], axis=1), {}),
    **{
        equation: (
            shape,
            helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation),
            {"w": np.random.default_rng(7).standard_normal(other).astype(np.float32)},
        )
        for equation, shape, other in (
            ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
            ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
            ("ij,jk->ki", (4, 5), (5, 6)),
            ("i,j->ij", (4,), (5,)),
            ("abc, bca -> a", (2, 3, 4), (3, 4, 2)),
            ("...ij,jk->...ik", ROWS, (8, 5)),
            ("ij,jk->k", (4, 5), (5, 6)),
        )
    },
    "dropout": (ROWS, helper.make_node("Dropout", ["x"], ["y"]), {}),
    "unnamed results": (IMAGE, helper.make_node("MaxPool", ["x"], ["y", ""], kernel_shape=[2, 2]), {}),
}


def model(
    nodes: list[onnx.NodeProto], shape: tuple[int, ...], constants: Any, kind: int = TensorProto.FLOAT, opset: int = 21
) -> Any:
    """A model from `x` through the nodes to `y` and on to `z`, twice `y`."""
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    nodes = [*nodes, helper.make_node("Add", ["y", "y"], ["z"])]
    ends = [helper.make_tensor_value_info("x", kind, shape)], [helper.make_tensor_value_info("z", kind, None)]
    graph = helper.make_graph(nodes, "graph", *ends, values)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=10))


def decibels(made: Any, folder: Path, shape: tuple[int, ...], dtype: str = "float32", **options: Any) -> float:
    """The closeness of npukit's results to ONNX Runtime's."""
    path = folder / "model.onnx"
    onnx.save(made, path)
    cases = np.random.default_rng(3).standard_normal((4, *shape)).astype(np.float32)
    session = Session(path)
    expected = np.stack([session.run({"x": case.astype(dtype)})[0] for case in cases]).astype(np.float64)
    kind = made.graph.output[0].type.tensor_type.elem_type
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", kind, expected.shape[1:]))
    onnx.save(made, path)
    (got,) = run_reference(load_model(path, **options).net, [cases])
    assert got.shape == expected.shape
    return float(10 * np.log10(np.sum(expected**2) / (np.sum((expected - got) ** 2) + 1e-30)))


@pytest.mark.parametrize("name", NODES)
def test_near_onnx_runtime(name: str, tmp_path: Path) -> None:
    shape, node, constants = NODES[name]
    assert decibels(model([node], shape, constants), tmp_path, shape, in_float=True) > 110


@pytest.mark.parametrize("reduction", ["none", "max"])
def test_scattered_numbers_in_int8(reduction: str, tmp_path: Path) -> None:
    node = helper.make_node("ScatterND", ["x", "places", "r"], ["y"], reduction=reduction)
    constants = {"places": np.array([[1], [0]]), "r": np.linspace(-2, 2, 48, dtype=np.float32).reshape(2, 3, 8)}
    made, data = model([node], ROWS, constants), np.random.default_rng(5).standard_normal(ROWS).astype(np.float32)
    onnx.save(made, tmp_path / "model.onnx")
    np.savez(tmp_path / "c.npz", in0=data[np.newaxis])
    expected = Session(tmp_path / "model.onnx").run({"x": data})[0]
    net = load_model(tmp_path / "model.onnx", calibration=tmp_path / "c.npz").net
    given, result = (net.tensor(name).quantization for name in ("x", "z"))
    assert given is not None
    assert result is not None
    (got,) = run_reference(net, [quantised(data, given)])
    assert np.abs((got.astype(int) - result.zero_point) * result.scale - expected).max() < 2 * result.scale


def test_a_group_norm_with_factors_of_groups(tmp_path: Path) -> None:
    node = helper.make_node("GroupNormalization", ["x", "s", "t"], ["y"], num_groups=2)
    of_groups = {name: values[:2] for name, values in BY_CHANNEL.items()}
    assert decibels(model([node], IMAGE, of_groups, opset=18), tmp_path, IMAGE, in_float=True) > 110


@pytest.mark.parametrize("p", [1, 2])
def test_a_row_of_zeros_stays_zero(p: int, tmp_path: Path) -> None:
    node, path = helper.make_node("LpNormalization", ["x"], ["y"], p=p), tmp_path / "model.onnx"
    made, rows = model([node], ROWS, {}), np.zeros(ROWS, np.float32)
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, ROWS))
    onnx.save(made, path)
    (got,), (expected,) = run_reference(load_model(path, in_float=True).net, [rows]), Session(path).run({"x": rows})
    np.testing.assert_array_equal(got, expected)


def test_parts_without_elements(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Slice", ["x", "none", "none", "last"], ["e"]),
        helper.make_node("Concat", ["e", "x"], ["y"], axis=2),
    ]
    made = model(nodes, ROWS, {"none": np.array([0]), "last": np.array([2])})
    assert decibels(made, tmp_path, ROWS, in_float=True) > 200


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_floats_become_single(dtype: str, tmp_path: Path) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("Cast", ["x"], ["c"], to=kind), helper.make_node("MatMul", ["c", "w"], ["y"])]
    made = model(nodes, ROWS, {"w": np.linspace(-1, 1, 24).reshape(8, 3).astype(dtype)}, kind)
    assert decibels(made, tmp_path, ROWS, dtype, in_float=True) > (55 if dtype == "float16" else 110)
    assert bool(load_model(tmp_path / "model.onnx", in_float=True).remarks) == (dtype == "float64")


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_lstm_quantised_at_run_time(direction: str, tmp_path: Path) -> None:
    """int8 weights stay int8."""
    random, steps, width, hidden, count = np.random.default_rng(4), 3, 10, 6, 1 + (direction != "forward")
    constants: dict[str, np.ndarray] = {
        "w": random.integers(-127, 128, (count, width, 4 * hidden)).astype(np.int8),
        "r": random.integers(-127, 128, (count, hidden, 4 * hidden)).astype(np.int8),
        "b": random.standard_normal((count, 8 * hidden)).astype(np.float32),
        "s": np.full(count, 0.004, np.float32),
        "o": np.zeros(count, np.int8),
    }
    inputs = ["x", "w", "r", "b", "", "", "", "", "s", "o", "s", "o"]
    options: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    node = helper.make_node("DynamicQuantizeLSTM", inputs, ["y"], domain="com.microsoft", **options)
    made = model([node], (steps, 1, width), constants)
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, (steps, count, 1, hidden)))
    assert decibels(made, tmp_path, (steps, 1, width)) > 40
    net = load_model(tmp_path / "model.onnx").net
    assert {net.constants[op.inputs[1]].dtype.name for op in net.ops if op.kind == "sums"} == {"int8"}
