"""ONNX models in QDQ form: the net against ONNX Runtime, at most 1 apart for each op."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx_models import Graph, saved

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.net.reference import run_reference
from oracles.onnx_runtime import run_onnx

SHAPE = (1, 6, 7, 5)


def int8(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def compared(graph: Graph, output: str, folder: Path, **inputs: np.ndarray) -> Net:
    """The net, after a check for at most 1 between its results and ONNX Runtime's."""
    path = saved(graph.model({name: value.shape for name, value in inputs.items()}, output), folder)
    net = load_net_from_model(path)
    (expected,) = run_onnx(path, inputs)
    (got,) = run_reference(net, list(inputs.values()))
    assert got.shape == expected.shape
    assert np.abs(got.astype(int) - expected).max() <= 1
    assert np.unique(expected).size > 4, "the example must say something"
    return net


def kinds(net: Net) -> list[str]:
    return [op.kind for op in net.ops]


def convolution(group: int, outputs: int, **attributes: Any) -> Graph:
    graph = Graph()
    weights = int8(1, outputs, SHAPE[1] // group, 3, 3)
    scales = np.random.default_rng(2).uniform(0.001, 0.01, outputs)
    graph.constant("w", weights)
    graph.constant("b", np.random.default_rng(3).integers(-2000, 2000, outputs, np.int32))
    real = [
        graph.dequantized("x", 0.05, -3),
        graph.dequantized("w", scales, 0, axis=0),
        graph.dequantized("b", scales.astype(np.float32) * np.float32(0.05), 0, "int32", axis=0),
    ]
    graph.node("Conv", real, "product", group=group, **attributes)
    return graph


@pytest.mark.parametrize(
    ("group", "outputs", "attributes", "kind"),
    [
        (1, 8, {}, "conv2d"),
        (1, 8, {"strides": [2, 1], "pads": [0, 1, 2, 1]}, "conv2d"),
        (1, 4, {"dilations": [2, 2], "pads": [2, 2, 2, 2]}, "conv2d"),
        (2, 8, {"pads": [1, 1, 1, 1]}, "conv2d"),
        (6, 6, {"pads": [1, 1, 1, 1]}, "depthwise_conv2d"),
        (6, 12, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, "depthwise_conv2d"),
    ],
)
def test_convolutions(group: int, outputs: int, attributes: dict[str, Any], kind: str, tmp_path: Path) -> None:
    graph = convolution(group, outputs, **attributes)
    graph.quantized("product", 0.07, 10, "y")
    net = compared(graph, "y", tmp_path, x=int8(4, *SHAPE))
    assert kinds(net) == ["transpose", kind, "transpose"]


def test_relu_and_clip_become_the_clamp(tmp_path: Path) -> None:
    graph = convolution(1, 4)
    graph.node("Relu", ["product"], "positive")
    graph.constant("low", np.array(0.5, np.float32))
    graph.constant("high", np.array(4, np.float32))
    graph.node("Clip", ["positive", "low", "high"], "clipped")
    graph.quantized("clipped", 0.05, -10, "y")
    net = compared(graph, "y", tmp_path, x=int8(5, *SHAPE))
    assert [op.attributes.clamp for op in net.ops if op.kind == "conv2d"] == [(0, 70)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("limits", [["low", "high"], ["low"], ["", "high"]])
def test_limits_that_are_computed_clip_too(limits: list[str], tmp_path: Path) -> None:
    graph = Graph()
    given = {"x": int8(4, *SHAPE), "low": np.array([-60], np.int8), "high": np.array([70], np.int8)}
    graph.constant("scalar", np.zeros(0, np.int64))
    for each in filter(None, limits):
        graph.node("Reshape", [graph.dequantized(each, 0.05, 3), "scalar"], f"{each}_limit")
    data, names = graph.dequantized("x", 0.05, 3), [each and f"{each}_limit" for each in limits]
    graph.node("Clip", [data, *names], "clipped")
    graph.quantized("clipped", 0.05, -10, "y")
    compared(graph, "y", tmp_path, **{name: value for name, value in given.items() if name in ["x", *limits]})


def test_the_zero_points_of_a_bias_count(tmp_path: Path) -> None:
    graph = Graph()
    scales, bias = np.full(4, 0.01, np.float32), np.arange(4, dtype=np.int32)
    graph.constant("w", int8(1, 4, SHAPE[1], 3, 3))
    graph.constant("b", bias)
    data, weights = graph.dequantized("x", 0.05, -3), graph.dequantized("w", scales, 0, axis=0)
    added = graph.dequantized("b", scales * np.float32(0.05), [0, 3000, -3000, 7], "int32", axis=0)
    graph.node("Conv", [data, weights, added], "product")
    graph.quantized("product", 0.2, 10, "y")
    compared(graph, "y", tmp_path, x=int8(4, *SHAPE))


def test_no_layout_copies_between_layers(tmp_path: Path) -> None:
    graph = convolution(1, 6, pads=[1, 1, 1, 1])
    graph.quantized("product", 0.07, 10, "first")
    graph.node("Add", [graph.dequantized("first", 0.07, 10), "x_real"], "sum")
    graph.quantized("sum", 0.1, 0, "second")
    graph.node("MaxPool", [graph.dequantized("second", 0.1, 0)], "pooled", kernel_shape=[2, 2], strides=[2, 2])
    graph.quantized("pooled", 0.1, 0, "y")
    net = compared(graph, "y", tmp_path, x=int8(6, *SHAPE))
    assert kinds(net) == ["transpose", "conv2d", "add", "max_pool", "transpose"]


def test_a_border_with_one_channel_moves_nothing(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("MaxPool", [graph.dequantized("x", 0.1, 0)], "pooled", kernel_shape=[2, 2])
    graph.quantized("pooled", 0.1, 0, "y")
    assert "transpose" not in kinds(compared(graph, "y", tmp_path, x=int8(7, 1, 1, 6, 6)))


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_pools_that_round_up(kind: str, tmp_path: Path) -> None:
    graph = Graph()
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 0, 0, 0]}
    graph.node(kind, [graph.dequantized("x", 0.1, 4)], "pooled", **options)
    graph.quantized("pooled", 0.07, -4, "y")
    assert "lookup" in kinds(compared(graph, "y", tmp_path, x=int8(13, 1, 2, 8, 9)))


@pytest.mark.parametrize("shape", [(1, 3, 8, 6), (1, 3, 9)])
def test_an_average_of_a_finer_scale_rounds_once(shape: tuple[int, ...], tmp_path: Path) -> None:
    graph, window = Graph(), [2] * (len(shape) - 2)
    graph.node("AveragePool", [graph.dequantized("x", 0.1, 4)], "mean", kernel_shape=window, strides=window)
    graph.quantized("mean", 0.03, -7, "y")
    assert "lookup" not in kinds(compared(graph, "y", tmp_path, x=int8(9, *shape)))


def test_average_pool_and_flatten_and_gemm(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("AveragePool", [graph.dequantized("x", 0.1, 4)], "mean", kernel_shape=[3, 2], strides=[2, 1])
    graph.quantized("mean", 0.1, 4, "a")
    graph.node("Flatten", [graph.dequantized("a", 0.1, 4)], "flat")
    graph.constant("w", int8(8, 5, 6 * 3 * 4))
    graph.constant("b", np.array([1.5, -2.5, 0, 10, 3], np.float32))
    graph.node("Gemm", ["flat", graph.dequantized("w", 0.004, 0), "b"], "dense", transB=1)
    graph.quantized("dense", 0.2, -5, "y")
    compared(graph, "y", tmp_path, x=int8(9, *SHAPE))


def test_matmul_and_softmax(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("w", int8(10, 12, 9))
    graph.node("MatMul", [graph.dequantized("x", 0.03, 1), graph.dequantized("w", 0.01, 0)], "product")
    graph.quantized("product", 0.3, 7, "y")
    compared(graph, "y", tmp_path, x=int8(11, 20, 12))


def of_four_bits(dtype: type, zero: int) -> Graph:
    graph = Graph(opset=21)
    graph.constant("w", (int8(10, 12, 9) // 16 + zero).astype(dtype))
    real = [graph.dequantized("x", 0.03, 1), graph.dequantized("w", 0.1, zero, dtype)]
    graph.node("MatMul", real, "product")
    graph.quantized("product", 0.3, 7, "y")
    return graph


@pytest.mark.parametrize(("dtype", "zero"), [(ml_dtypes.int4, 0), (ml_dtypes.uint4, 8)])
def test_weights_of_four_bits(dtype: type, zero: int, tmp_path: Path) -> None:
    compared(of_four_bits(dtype, zero), "y", tmp_path, x=int8(11, 20, 12))


def test_four_bits_that_more_than_weights_have_are_refused(tmp_path: Path) -> None:
    graph = of_four_bits(ml_dtypes.int4, 0)
    graph.node("QuantizeLinear", ["product", "w_in_scale", "w_in_zero"], "z")
    with pytest.raises(NpukitError, match=r"QuantizeLinear .* reads 'w_in_zero', which has 4 bits a number"):
        load_net_from_model(saved(graph.model({"x": (20, 12)}, "y"), tmp_path))


def test_softmax(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("Softmax", [graph.dequantized("x", 0.03, 1)], "chances", axis=-1)
    graph.quantized("chances", 1 / 256, -128, "y")
    compared(graph, "y", tmp_path, x=int8(12, 20, 12))


def asymmetric(weights: np.ndarray, zero_point: int, operator: str, channels: int, **attributes: Any) -> Graph:
    graph = Graph()
    graph.constant("w", weights)
    graph.constant("b", np.random.default_rng(3).integers(-900, 900, channels, np.int32))
    real = [
        graph.dequantized("x", 0.05, -3),
        graph.dequantized("w", 0.01, zero_point),
        graph.dequantized("b", np.float32(0.01) * np.float32(0.05), 0, "int32"),
    ]
    graph.node(operator, real, "product", **attributes)
    graph.quantized("product", 0.3, 7, "y")
    return graph


FEW = int8(10, 20, 20, 3, 3).clip(-20, 127)
FEW[3, 7, 1, 1] = FEW[5, 9, 0, 2] = FEW[:2, 16, 2, 2] = -120
"""Weights with few numbers beyond int8 after 100 is subtracted."""


@pytest.mark.parametrize(
    ("weights", "operator", "attributes", "wanted"),
    [
        (int8(10, 20, 12), "Gemm", {"transB": 1}, {"dense", "concat"}),
        (FEW[..., 0, 0], "Gemm", {"transB": 1}, {"dense"}),
        (FEW[..., 2, 2], "Gemm", {"transB": 1}, {"dense", "slice", "concat"}),
        (FEW, "Conv", {"pads": [1, 1, 1, 1]}, {"conv2d", "transpose", "slice", "concat"}),
        (FEW, "Conv", {"strides": [2, 2], "dilations": [2, 1]}, {"conv2d", "transpose", "slice", "concat"}),
        (FEW[:, :, 1], "Conv", {}, {"conv2d", "transpose", "slice", "concat", "reshape"}),
        (FEW, "ConvTranspose", {"strides": [2, 2]}, {"transpose_conv2d", "transpose", "slice", "concat"}),
        (
            FEW[:, 16:17],
            *("Conv", {"group": 20, "pads": [0, 1, 1, 0]}),
            {"depthwise_conv2d", "conv2d", "transpose", "slice", "concat"},
        ),
        (int8(6, 18, 1, 3, 3), "Conv", {"group": 18}, {"conv2d", "transpose", "slice", "concat"}),
        (
            FEW[:, 16:17, 2],
            *("Conv", {"group": 20}),
            {"depthwise_conv2d", "conv2d", "transpose", "slice", "concat", "reshape"},
        ),
    ],
)
def test_weights_with_a_zero_point_become_int8_by_taking_input_channels_twice(
    weights: np.ndarray, operator: str, attributes: dict[str, Any], wanted: set[str], tmp_path: Path
) -> None:
    channels = weights.shape[0] if attributes.get("group", 1) > 1 else weights.shape[1]
    shape = (2, channels, 9, 8)[: weights.ndim]
    net = compared(
        asymmetric(weights, 100, operator, weights.shape[0], **attributes), "y", tmp_path, x=int8(12, *shape)
    )
    assert set(kinds(net)) == wanted


def test_weights_that_take_an_input_channel_three_times(tmp_path: Path) -> None:
    weights = int8(10, 20, 12).clip(-128, 126)
    weights[3, 4] = 127
    net = compared(asymmetric(weights, -128, "Gemm", 20, transB=1), "y", tmp_path, x=int8(12, 2, 12))
    (dense,) = (op for op in net.ops if op.kind == "dense")
    assert net.tensor(dense.inputs[0]).shape == (2, 25)


def test_weights_of_groups_with_a_zero_point_are_computed_in_float(tmp_path: Path) -> None:
    graph = asymmetric(int8(10, 20, 10, 3, 3), 100, "Conv", 20, group=2)
    net = compared(graph, "y", tmp_path, x=int8(12, 1, 20, 9, 8))
    (why,) = {op.attributes.why for op in net.ops if isinstance(op.attributes, TvmCode)}
    assert why == "its weights are not symmetric int8"


@pytest.mark.parametrize(
    ("group", "attributes", "kind"),
    [
        (1, {"dilations": [2], "pads": [3, 1]}, "conv2d"),
        (1, {"strides": [2], "auto_pad": "SAME_UPPER"}, "conv2d"),
        (2, {}, "conv2d"),
        (6, {"pads": [1, 1]}, "depthwise_conv2d"),
    ],
)
def test_convolutions_of_lines_are_those_of_images_one_row_high(
    group: int, attributes: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    graph = Graph()
    scales = np.random.default_rng(2).uniform(0.001, 0.01, 6).astype(np.float32)
    graph.constant("w", int8(1, 6, 6 // group, 3))
    graph.constant("b", np.random.default_rng(3).integers(-2000, 2000, 6, np.int32))
    biased = graph.dequantized("b", scales * np.float32(0.05), 0, "int32", axis=0)
    real = [graph.dequantized("x", 0.05, -3), graph.dequantized("w", scales, 0, axis=0), biased]
    graph.node("Conv", real, "product", group=group, **attributes)
    graph.quantized("product", 0.07, 10, "y")
    net = compared(graph, "y", tmp_path, x=int8(4, 1, 6, 20))
    assert set(kinds(net)) == {kind, "reshape", "transpose"}


@pytest.mark.parametrize(("operator", "kind"), [("MaxPool", "max_pool"), ("AveragePool", "average_pool")])
def test_pools_of_lines_are_those_of_images_one_row_high(operator: str, kind: str, tmp_path: Path) -> None:
    graph = Graph()
    graph.node(operator, [graph.dequantized("x", 0.05, -3)], "pooled", kernel_shape=[3], strides=[2], pads=[1, 0])
    graph.quantized("pooled", 0.05, -3, "y")
    net = compared(graph, "y", tmp_path, x=int8(4, 1, 6, 20))
    assert set(kinds(net)) == {kind, "reshape", "transpose"}
