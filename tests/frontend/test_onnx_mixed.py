"""ONNX models with unusual mixtures: static and dynamic quantisation, two types of index, odd operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_models import Graph, saved

from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.reference import run_reference
from oracles.onnx_runtime import run_onnx

SHAPE = (1, 4, 6, 5)


def int8(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def compared(path: Path, *, within: float = 1, **inputs: np.ndarray) -> Net:
    """The net, after a check that outputs and ONNX Runtime's outputs differ by at most `within`."""
    net = load_net_from_model(path)
    for got, expected in zip(run_reference(net, list(inputs.values())), run_onnx(path, inputs), strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        assert np.abs(got.astype(np.float64) - expected).max() <= within
    return net


def with_output(model: onnx.ModelProto, name: str, dtype: int) -> onnx.ModelProto:
    model.graph.output.append(helper.make_tensor_value_info(name, dtype, None))
    return onnx.shape_inference.infer_shapes(model)


def test_static_and_dynamic_quantisation_in_one_model(tmp_path: Path) -> None:
    """A convolution with scales in the file, then a dense layer with scales computed at run time."""
    graph = Graph()
    graph.constant("w", int8(1, 8, 4, 3, 3))
    graph.node("Conv", [graph.dequantized("x", 0.04, 9), graph.dequantized("w", 0.01, 0)], "c")
    graph.quantized("c", 0.5, -3, "q")
    graph.node("Flatten", [graph.dequantized("q", 0.5, -3)], "f")
    found = ["u", "u_scale", "u_zero"]
    graph.nodes.append(helper.make_node("DynamicQuantizeLinear", ["f"], found))
    graph.constant("v", int8(2, 96, 5))
    graph.constant("v_scale", np.array(0.02, np.float32))
    graph.node("MatMulInteger", ["u", "v", "u_zero"], "m")
    graph.node("Cast", ["m"], "n", to=TensorProto.FLOAT)
    graph.node("Mul", ["u_scale", "v_scale"], "s")
    graph.node("Mul", ["n", "s"], "y")
    path = saved(graph.model({"x": SHAPE}, "y", result_dtype="float32"), tmp_path)
    net = compared(path, within=0.5 * 0.02 * 128, x=int8(3, *SHAPE))
    kinds = [op.kind for op in net.ops]
    assert "conv2d" in kinds, "what the file quantises is computed in integers"
    assert "tvm_code" in kinds


@pytest.mark.parametrize("first", ["int64", "int32"])
def test_indices_are_read_in_both_types(first: str, tmp_path: Path) -> None:
    graph = Graph()
    graph.node("ArgMax", [graph.dequantized("x", 0.04, 9)], "y", axis=1, keepdims=0)
    graph.node("Cast", ["y"], "z", to=TensorProto.INT32)
    ends = {"int64": ("y", TensorProto.INT64), "int32": ("z", TensorProto.INT32)}
    model = graph.model({"x": SHAPE}, ends[first][0], result_dtype="int64")
    model.graph.output[0].type.tensor_type.elem_type = ends[first][1]
    (other,) = (end for name, end in ends.items() if name != first)
    compared(saved(with_output(model, *other), tmp_path), within=0, x=int8(4, *SHAPE))


@pytest.mark.parametrize(("left", "right"), [((5,), (5,)), ((5,), (2, 5, 3)), ((2, 4, 5), (5,))])
def test_a_vector_in_a_product(left: tuple[int, ...], right: tuple[int, ...], tmp_path: Path) -> None:
    graph = Graph()
    graph.node("MatMul", [graph.dequantized("a", 0.04, 9), graph.dequantized("b", 0.02, -3)], "r")
    graph.quantized("r", 0.2, 1, "y")
    path = saved(graph.model({"a": left, "b": right}, "y"), tmp_path)
    net = compared(path, a=int8(5, *left), b=int8(6, *right))
    assert "matmul" in [op.kind for op in net.ops]


def test_an_input_with_scales_for_each_channel(tmp_path: Path) -> None:
    graph = Graph()
    graph.dequantized("x", [0.04, 0.1, 0.02, 0.3], [9, 0, -7, 100])
    graph.node("Relu", ["x_real"], "r")
    graph.quantized("r", 0.2, -100, "y")
    compared(saved(graph.model({"x": SHAPE}, "y"), tmp_path), x=int8(7, *SHAPE))


@pytest.mark.parametrize("steps", [[-1, 1], [-2, -1], [3, -2]])
def test_slices_backwards(steps: list[int], tmp_path: Path) -> None:
    graph = Graph()
    values: dict[str, Any] = {
        "starts": [100 if step < 0 else 0 for step in steps],
        "ends": [-100 if step < 0 else 100 for step in steps],
        "axes": [1, 3],
        "steps": steps,
    }
    names = [graph.constant(name, np.array(value, np.int64)) for name, value in values.items()]
    graph.node("Slice", [graph.dequantized("x", 0.04, 9), *names], "r")
    graph.quantized("r", 0.04, 9, "y")
    net = compared(saved(graph.model({"x": SHAPE}, "y"), tmp_path), within=0, x=int8(8, *SHAPE))
    assert {op.kind for op in net.ops} == {"slice", "reshape", "resize_nearest"}


def test_a_layer_whose_result_stays_float_sums_up_in_integers(tmp_path: Path) -> None:
    """The integer layer has no quantise after it. The float result is the exact sum times both scales, with groups."""
    random, graph = np.random.default_rng(6), Graph()
    scales = random.uniform(0.001, 0.02, 40).astype(np.float32)
    graph.constant("w", int8(7, 40, 1, 3, 3))
    for name, value in {"w_scale": scales, "w_zero": np.zeros(40, np.int8)}.items():
        graph.constant(name, value)
    graph.node("DequantizeLinear", ["w", "w_scale", "w_zero"], "v", axis=0)
    graph.node("Conv", [graph.dequantized("x", 0.04, 9), "v"], "y", group=20, pads=[1, 1, 1, 1])
    path, image = saved(graph.model({"x": (1, 20, 6, 5)}, "y", result_dtype="float32"), tmp_path), int8(8, 1, 20, 6, 5)
    net = compared(path, within=1e-3, x=image)
    assert [op.kind for op in net.ops].count("sums") == 1
    (got,) = run_reference(net, [image])
    around = np.pad(image.astype(np.int64) - 9, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = np.lib.stride_tricks.sliding_window_view(around, (3, 3), (2, 3))[0].repeat(2, axis=0)
    sums = np.einsum("cyxij,cij->cyx", taps, int8(7, 40, 3, 3).astype(np.int64))
    factors = (np.float64(np.float32(0.04)) * scales.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(got[0], sums.astype(np.float32) * factors[:, None, None])


def test_an_input_that_is_moved_before_it_is_quantised(tmp_path: Path) -> None:
    """Tracing leaves a pad of floats in front of a convolution. It becomes a pad of the integers."""
    graph = Graph()
    graph.constant("pads", np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64))
    graph.node("Transpose", [graph.node("Pad", ["x", "pads"], "padded")], "moved", perm=[0, 2, 3, 1])
    graph.quantized("moved", 0.04, 9, "q")
    graph.node("Relu", [graph.dequantized("q", 0.04, 9)], "r")
    graph.quantized("r", 0.02, -100, "y")
    path = saved(graph.model({"x": SHAPE}, "y", "float32", "int8"), tmp_path)
    net, given = load_net_from_model(path), int8(11, *SHAPE)
    assert "tvm_code" not in {op.kind for op in net.ops}
    reals = (given.astype(np.float32) - 9) * np.float32(0.04)
    assert np.array_equal(run_reference(net, [given])[0], run_onnx(path, {"x": reals})[0])
