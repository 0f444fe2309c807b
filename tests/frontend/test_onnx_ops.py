"""ONNX ops in QDQ form, each by itself: at most 1 from ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import Graph, saved

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.net.receptive import cuttable_axes
from npukit.net.reference import run_reference
from oracles.onnx_runtime import run_onnx

SHAPE = (1, 4, 6, 5)


def int8(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def compared(graph: Graph, folder: Path, **inputs: np.ndarray) -> Net:
    return near(graph.model({name: value.shape for name, value in inputs.items()}, "y"), folder, **inputs)


def near(model: onnx.ModelProto, folder: Path, **inputs: np.ndarray) -> Net:
    path = saved(model, folder)
    net = load_net_from_model(path)
    (expected,), (got,) = run_onnx(path, inputs), run_reference(net, list(inputs.values()))
    assert got.shape == expected.shape
    assert np.abs(got.astype(int) - expected).max() <= 1
    assert np.unique(expected).size > 3, "the example must say something"
    return net


def one(kind: str, inputs: tuple[str, ...] = (), **attributes: Any) -> Graph:
    graph = Graph()
    graph.node(kind, [graph.dequantized("x", 0.04, 9), *inputs], "r", **attributes)
    return graph


@pytest.mark.parametrize(
    ("kind", "attributes", "output"),
    [
        ("Relu", {}, (0.02, -128)),
        ("Sigmoid", {}, (1 / 256, -128)),
        ("Sigmoid", {}, (0.0035, -120)),
        ("Tanh", {}, (1 / 128, 0)),
        ("Tanh", {}, (0.007, 3)),
        ("LeakyRelu", {"alpha": 0.2}, (0.03, -50)),
        ("HardSwish", {}, (0.02, -110)),
        ("HardSigmoid", {"alpha": 0.2, "beta": 0.4}, (1 / 256, -128)),
        ("Elu", {"alpha": 0.7}, (0.03, -90)),
        ("Celu", {"alpha": 0.7}, (0.03, -90)),
        ("Exp", {}, (0.3, -128)),
        ("Erf", {}, (1 / 128, 0)),
        ("Abs", {}, (0.03, -128)),
        ("Neg", {}, (0.04, -9)),
        ("Softmax", {"axis": 1}, (1 / 256, -128)),
        ("Softmax", {"axis": -1}, (0.0039, -128)),
        ("GlobalAveragePool", {}, (0.011, 3)),
        ("ReduceMean", {"axes": [2, 3], "keepdims": 0}, (0.011, 3)),
        ("ReduceMean", {"axes": [1], "keepdims": 1}, (0.02, 3)),
        ("Transpose", {"perm": [0, 2, 3, 1]}, (0.04, 9)),
        ("Transpose", {"perm": [0, 3, 1, 2]}, (0.06, 1)),
        ("Flatten", {}, (0.04, 9)),
        ("DepthToSpace", {"blocksize": 2}, (0.04, 9)),
    ],
)
def test_one_operand(kind: str, attributes: dict[str, Any], output: tuple[float, int], tmp_path: Path) -> None:
    graph = one(kind, **attributes)
    graph.quantized("r", *output, "y")
    compared(graph, tmp_path, x=int8(1, *SHAPE))


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Max", "Min"])
@pytest.mark.parametrize("other", [SHAPE, (4, 1, 1), (5,)])
def test_two_operands(kind: str, other: tuple[int, ...], tmp_path: Path) -> None:
    graph = Graph()
    graph.node(kind, [graph.dequantized("a", 0.04, 9), graph.dequantized("b", 0.07, -3)], "r")
    graph.quantized("r", 0.09, 1, "y")
    compared(graph, tmp_path, a=int8(2, *SHAPE), b=int8(3, *other))


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Max", "Min", "Div"])
def test_a_number(kind: str, tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("c", np.array(0.7, np.float32))
    graph.node(kind, [graph.dequantized("x", 0.04, 9), "c"], "r")
    graph.quantized("r", 0.05, 1, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(4, *SHAPE)).ops] == ["lookup"]


def test_gelu_in_pieces_is_one_table(tmp_path: Path) -> None:
    graph = Graph()
    for name, value in (("root", np.sqrt(2)), ("one", 1), ("half", 0.5)):
        graph.constant(name, np.array(value, np.float32))
    graph.node("Div", [graph.dequantized("x", 0.02, 9), "root"], "a")
    graph.node("Erf", ["a"], "b")
    graph.node("Add", ["b", "one"], "c")
    graph.node("Mul", ["x_real", "c"], "d")
    graph.node("Mul", ["d", "half"], "r")
    graph.quantized("r", 0.012, -110, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(5, *SHAPE)).ops] == ["lookup"]


def test_silu_is_one_table(tmp_path: Path) -> None:
    graph = one("Sigmoid")
    graph.node("Mul", ["x_real", "r"], "s")
    graph.quantized("s", 0.03, -100, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(6, *SHAPE)).ops] == ["lookup"]


@pytest.mark.parametrize("kind", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
def test_a_choice_by_a_comparison_with_a_number_is_one_table(kind: str, tmp_path: Path) -> None:
    graph = Graph()
    for name, value in (("limit", 0.4), ("slope", 0.1)):
        graph.constant(name, np.array(value, np.float32))
    graph.node("Mul", [graph.dequantized("x", 0.04, 9), "slope"], "a")
    graph.node(kind, ["x_real", "limit"], "c")
    graph.node("Where", ["c", "x_real", "a"], "r")
    graph.quantized("r", 0.03, -20, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(6, *SHAPE)).ops] == ["lookup"]


@pytest.mark.parametrize("kind", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
def test_a_comparison_with_a_number_is_a_table(kind: str, tmp_path: Path) -> None:
    """Number -21 of `x` is the limit itself."""
    graph = Graph()
    graph.constant("limit", np.array(-1.2, np.float32))
    graph.node(kind, [graph.dequantized("x", 0.04, 9), "limit"], "c")
    graph.node("Where", ["c", "x_real", graph.dequantized("w", 0.04, 9)], "r")
    graph.quantized("r", 0.04, 9, "y")
    data = np.arange(-128, 128, dtype=np.int8).reshape(1, 4, 8, 8)
    assert [op.kind for op in compared(graph, tmp_path, x=data, w=int8(6, 1, 4, 8, 8)).ops] == ["lookup", "select"]


@pytest.mark.parametrize("scale", [0.04, 0.0703, 0.25])
@pytest.mark.parametrize("kind", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
def test_a_comparison_of_two_tensors_is_a_difference_and_a_table(kind: str, scale: float, tmp_path: Path) -> None:
    """All pairs of numbers. 0.04 and 0.25 have equal multiples, also in float32."""
    graph = Graph()
    first, second = graph.dequantized("x", 0.04, 9), graph.dequantized("w", scale, -30)
    graph.node(kind, [first, second], "c")
    graph.node("Where", ["c", first, graph.dequantized("v", 0.04, 9)], "r")
    graph.quantized("r", 0.04, 9, "y")
    every = np.arange(-128, 128, dtype=np.int8)
    inputs = {"x": every.reshape(1, -1, 1), "w": every.reshape(1, 1, -1), "v": np.roll(every, 100).reshape(1, -1, 1)}
    net = compared(graph, tmp_path, **inputs)
    assert [op.kind for op in net.ops] == ["subtract", "lookup", "select"]


@pytest.mark.parametrize("scale", [0.04, 0.05])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_a_table_are_moved_as_bytes(axis: int, scale: float, tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("table", int8(7, 30, 12))
    graph.node("Gather", [graph.dequantized("table", 0.04, 9), "at"], "r", axis=axis)
    graph.quantized("r", scale, 9, "y")
    at = np.random.default_rng(8).integers(-12, 12, (1, 7))
    path = saved(graph.model({"at": at.shape}, "y", "int64", "int8"), tmp_path)
    net = load_net_from_model(path)
    np.testing.assert_array_equal(run_reference(net, [at])[0], run_onnx(path, {"at": at})[0])
    codes = [op.attributes.code for op in net.ops if isinstance(op.attributes, TvmCode)]
    assert codes
    assert not any("float" in code for code in codes)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_constant_places_of_an_activation_are_columns(axis: int, tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("places", np.array([3, 0, -1, 3, -4, 2, 1]))
    graph.node("Gather", [graph.dequantized("x", 0.04, 9), "places"], "r", axis=axis)
    graph.quantized("r", 0.04, 9, "y")
    assert {op.kind for op in compared(graph, tmp_path, x=int8(9, *SHAPE)).ops} == {"reshape", "resize_nearest"}


@pytest.mark.parametrize("shape", [(1, 4, 6, 5), (2, 6, 30), (1, 6, 3, 4, 5)])
@pytest.mark.parametrize("kind", ["InstanceNormalization", "GroupNormalization"])
def test_norms_of_images(kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    random, channels = np.random.default_rng(5), shape[1]
    graph = Graph(opset=21)
    ends = [graph.constant(name, random.uniform(0.5, 2, channels).astype(np.float32)) for name in ("gains", "biases")]
    groups = {"num_groups": 2} if kind == "GroupNormalization" else {}
    graph.node(kind, [graph.dequantized("x", 0.04, 9), *ends], "r", **groups)
    graph.quantized("r", 0.03, -20, "y")
    model = graph.model({"x": shape}, "y")
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.INT8, shape))
    assert {op.kind for op in near(model, tmp_path, x=int8(6, *shape)).ops} == {"reshape", "norm"}


@pytest.mark.parametrize("shape", [(4, 1, 1), (5,), (1, 1, 6, 1)])
def test_arithmetic_with_real_numbers_by_channel_is_a_filter(shape: tuple[int, ...], tmp_path: Path) -> None:
    graph = Graph()
    for name, low, high in (("gains", -2.0, 2.0), ("means", -1.0, 1.0)):
        graph.constant(name, np.random.default_rng(1).uniform(low, high, shape).astype(np.float32))
    graph.node("Sub", [graph.dequantized("x", 0.04, 9), "means"], "a")
    graph.node("Mul", ["a", "gains"], "r")
    graph.quantized("r", 0.05, -20, "y")
    kinds = [op.kind for op in compared(graph, tmp_path, x=int8(6, *SHAPE)).ops]
    assert kinds.count("depthwise_conv2d") == 1
    assert {*kinds} <= {"depthwise_conv2d", "transpose"}


@pytest.mark.parametrize("gains_are_quantised", [False, True])
def test_a_batch_norm_is_a_filter(gains_are_quantised: bool, tmp_path: Path) -> None:
    """ONNX Runtime's static quantiser quantises the gains."""
    graph, random = Graph(), np.random.default_rng(3)
    ends = [graph.constant(name, random.uniform(0.5, 2, 4).astype(np.float32)) for name in "gbmv"]
    if gains_are_quantised:
        ends[0] = graph.dequantized(graph.constant("steps", int8(4, 4)), 0.01, 0)
    graph.node("BatchNormalization", [graph.dequantized("x", 0.04, 9), *ends], "r", momentum=1.0)
    graph.quantized("r", 0.05, -20, "y")
    kinds = [op.kind for op in compared(graph, tmp_path, x=int8(6, *SHAPE)).ops]
    assert kinds == ["transpose", "depthwise_conv2d", "transpose"]


def test_places_of_a_gather_are_counted_from_its_inputs_sizes(tmp_path: Path) -> None:
    """TVM's converter counts negative places from the end by sizes computed at run time."""
    graph = one("GatherND", (), batch_dims=0)
    graph.nodes[-1].input.append(graph.constant("places", np.array([[0, -1], [0, 2], [0, 1]], np.int64)))
    graph.quantized("r", 0.04, 9, "y")
    compared(graph, tmp_path, x=int8(6, *SHAPE))


def test_a_function_by_channel_is_a_table_for_each(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("gains", np.random.default_rng(1).uniform(0.5, 2, (4, 1, 1)).astype(np.float32))
    graph.node("Mul", [graph.dequantized("x", 0.04, 9), "gains"], "a")
    graph.node("Sigmoid", ["a"], "r")
    graph.quantized("r", 1 / 256, -128, "y")
    net = compared(graph, tmp_path, x=int8(6, *SHAPE))
    assert "lookup" in [op.kind for op in net.ops]


def test_prelu(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("s", int8(7, 4, 1, 1))
    graph.node("PRelu", [graph.dequantized("x", 0.04, 9), graph.dequantized("s", 0.01, 0)], "r")
    graph.quantized("r", 0.04, 1, "y")
    compared(graph, tmp_path, x=int8(8, *SHAPE))


@pytest.mark.parametrize("slopes", [(4, 1, 1), (1,), (1, 1, 1)], ids=str)
def test_prelu_of_float_slopes_is_tables(slopes: tuple[int, ...], tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("s", np.random.default_rng(2).uniform(-0.5, 2, slopes).astype(np.float32))
    graph.node("PRelu", [graph.dequantized("x", 0.04, 9), "s"], "r")
    graph.quantized("r", 0.05, 1, "y")
    net = compared(graph, tmp_path, x=int8(8, *SHAPE))
    assert {op.kind for op in net.ops} - {"reshape", "transpose"} == {"lookup"}


def test_a_max_pool_of_real_numbers_takes_the_quantised_numbers(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("s", np.random.default_rng(2).uniform(0, 0.5, (4, 1, 1)).astype(np.float32))
    graph.node("PRelu", [graph.dequantized("x", 0.04, 9), "s"], "a")
    graph.node("MaxPool", ["a"], "r", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    graph.quantized("r", 0.05, 1, "y")
    net = compared(graph, tmp_path, x=int8(8, *SHAPE))
    assert {op.kind for op in net.ops} - {"reshape", "transpose"} == {"lookup", "max_pool"}


def test_concat_of_differently_quantised_parts(tmp_path: Path) -> None:
    graph = Graph()
    """Equal, because a rescaled part is rounded once. Two roundings differ most often where a step becomes a fraction
    of a step."""
    graph.node("Concat", [graph.dequantized("a", 0.04, 9), graph.dequantized("b", 0.019, -3)], "r", axis=1)
    graph.quantized("r", 0.07, 1, "y")
    inputs = {"a": int8(9, *SHAPE), "b": int8(10, *SHAPE)}
    net = compared(graph, tmp_path, **inputs)
    assert [op.kind for op in net.ops] == ["lookup", "lookup", "concat"]
    model = saved(graph.model({name: value.shape for name, value in inputs.items()}, "y"), tmp_path)
    np.testing.assert_array_equal(run_reference(net, list(inputs.values()))[0], run_onnx(model, inputs)[0])


def integers(graph: Graph, **values: list[int]) -> list[str]:
    return [graph.constant(name, np.array(value, np.int64)) for name, value in values.items()]


def test_slice(tmp_path: Path) -> None:
    graph = Graph()
    names = integers(graph, starts=[1, 0], ends=[-1, 100], axes=[1, 3], steps=[1, 2])
    graph.node("Slice", [graph.dequantized("x", 0.04, 9), *names], "r")
    graph.quantized("r", 0.04, 9, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(11, *SHAPE)).ops] == ["slice"]


def test_split_halves_are_added(tmp_path: Path) -> None:
    graph = Graph()
    names = integers(graph, sizes=[2, 2])
    graph.nodes.append(split_node([graph.dequantized("x", 0.04, 9), *names]))
    graph.node("Add", ["low", "high"], "r")
    graph.quantized("r", 0.08, 9, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(12, *SHAPE)).ops] == ["slice", "slice", "add"]


def split_node(inputs: list[str]) -> Any:
    return helper.make_node("Split", inputs, ["low", "high"], axis=1)


def test_pad(tmp_path: Path) -> None:
    graph = Graph()
    names = integers(graph, pads=[0, 0, 1, 2, 0, 0, 0, 1])
    graph.constant("level", np.array(0.4, np.float32))
    graph.node("Pad", [graph.dequantized("x", 0.04, 9), *names, "level"], "r")
    graph.quantized("r", 0.04, 9, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(13, *SHAPE)).ops] == ["pad"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_floor"},
        {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"},
        {"mode": "nearest", "coordinate_transformation_mode": "pytorch_half_pixel", "nearest_mode": "floor"},
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
    ],
)
@pytest.mark.parametrize("size", [[9, 10], [12, 7], [3, 4]])
def test_resize(attributes: dict[str, Any], size: list[int], tmp_path: Path) -> None:
    graph = Graph()
    names = integers(graph, size=[1, 4, *size])
    graph.node("Resize", [graph.dequantized("x", 0.04, 9), "", "", *names], "r", **attributes)
    graph.quantized("r", 0.04, 9, "y")
    compared(graph, tmp_path, x=int8(14, *SHAPE))


def test_a_region_that_is_computed_is_refused(tmp_path: Path) -> None:
    graph = Graph()
    names = integers(graph, size=[1, 4, 3, 4])
    graph.node("Reshape", [graph.dequantized("region", 0.01, 0), *integers(graph, sides=[8])], "sides_real")
    inputs = [graph.dequantized("x", 0.04, 9), "sides_real", "", *names]
    graph.node("Resize", inputs, "r", mode="linear", coordinate_transformation_mode="tf_crop_and_resize")
    graph.quantized("r", 0.04, 9, "y")
    path = saved(graph.model({"x": SHAPE, "region": (8,)}, "y"), tmp_path)
    with pytest.raises(NpukitError, match="region is computed at run time"):
        load_net_from_model(path)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"strides": [2, 2], "pads": [1, 0, 1, 0], "output_padding": [1, 1]},
    ],
)
def test_conv_transpose(attributes: dict[str, Any], tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("w", int8(15, 4, 3, 3, 3))
    scales = np.random.default_rng(16).uniform(0.002, 0.01, 3)
    operands = [graph.dequantized("x", 0.04, 9), graph.dequantized("w", scales, 0, axis=1)]
    graph.node("ConvTranspose", operands, "r", **attributes)
    graph.quantized("r", 0.05, -3, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(17, *SHAPE)).ops] == [
        "transpose",
        "transpose_conv2d",
        "transpose",
    ]


def test_product_of_activations(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("MatMul", [graph.dequantized("a", 0.04, 9), graph.dequantized("b", 0.02, -3)], "r")
    graph.quantized("r", 0.2, 1, "y")
    compared(graph, tmp_path, a=int8(18, 2, 3, 4, 5), b=int8(19, 2, 3, 5, 6))


def test_matrices_of_a_product_are_rows_of_an_image(tmp_path: Path) -> None:
    """PEs may then share the matrices and the rows of each matrix."""
    graph = Graph()
    graph.node("MatMul", [graph.dequantized("a", 0.04, 9), graph.dequantized("b", 0.02, -3)], "r")
    graph.quantized("r", 0.2, 1, "y")
    net = compared(graph, tmp_path, a=int8(18, 3, 4, 5), b=int8(19, 3, 5, 6))
    (product,) = (op for op in net.ops if op.kind == "matmul")
    assert cuttable_axes(net, product) == (1, 2, 3)


def test_attention_head(tmp_path: Path) -> None:
    """Scores, scaling, softmax and the weighted sum, quantised after each."""
    graph = Graph()
    graph.constant("scale", np.array(0.35, np.float32))
    graph.node("Transpose", [graph.dequantized("k", 0.03, 5)], "kt", perm=[0, 2, 1])
    graph.node("MatMul", [graph.dequantized("q", 0.03, 9), "kt"], "s")
    graph.quantized("s", 0.1, 1, "s8")
    graph.node("Mul", [graph.dequantized("s8", 0.1, 1), "scale"], "t")
    graph.quantized("t", 0.035, 1, "t8")
    graph.node("Softmax", [graph.dequantized("t8", 0.035, 1)], "p", axis=-1)
    graph.quantized("p", 1 / 256, -128, "y")
    net = compared(graph, tmp_path, q=int8(20, 1, 6, 8) // 3, k=int8(21, 1, 6, 8) // 3)
    assert [op.kind for op in net.ops] == ["transpose", "matmul", "lookup", "softmax"]


def test_argmax(tmp_path: Path) -> None:
    graph = one("ArgMax", axis=1, keepdims=0)
    path = saved(graph.model({"x": SHAPE}, "r", result_dtype="int64"), tmp_path)
    data = int8(22, *SHAPE)
    (got,) = run_reference(load_net_from_model(path), [data])
    assert got.tolist() == data.argmax(axis=1).tolist()


def test_uint8_activations_are_int8_inside(tmp_path: Path) -> None:
    """ONNX Runtime's own quantiser makes activations uint8 unless told otherwise."""
    graph = Graph()
    graph.quantized("f", 0.04, 137, "x", "uint8")
    graph.node("Relu", [graph.dequantized("x", 0.04, 137, "uint8")], "r")
    graph.quantized("r", 0.03, 0, "z", "uint8")
    graph.dequantized("z", 0.03, 0, "uint8")
    path = saved(graph.model({"f": SHAPE}, "z_real", "float32"), tmp_path)
    net = load_net_from_model(path)
    assert {net.tensor(name).dtype for op in net.ops for name in op.outputs} == {"int8"}
    data = int8(23, *SHAPE)
    (expected,) = run_onnx(path, {"f": (data.astype(np.float32) - 9) * np.float32(0.04)})
    (got,) = run_reference(net, [data])
    assert np.abs((got + 128.0) * 0.03 - expected).max() <= 0.0301


def test_dropout_is_nothing(tmp_path: Path) -> None:
    graph = one("Dropout")
    graph.node("Sigmoid", ["r"], "s")
    graph.quantized("s", 1 / 256, -128, "y")
    assert [op.kind for op in compared(graph, tmp_path, x=int8(24, *SHAPE)).ops] == ["lookup"]


def test_several_outputs_and_a_shared_input(tmp_path: Path) -> None:
    graph = one("Relu")
    graph.quantized("r", 0.04, -9, "y")
    graph.node("Tanh", ["x_real"], "t")
    graph.quantized("t", 1 / 128, 0, "z")
    model = graph.model({"x": SHAPE}, "y")
    model.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.INT8, SHAPE))
    path, data = saved(model, tmp_path), int8(25, *SHAPE)
    got = run_reference(load_net_from_model(path), [data])
    for ours, theirs in zip(got, run_onnx(path, {"x": data}), strict=True):
        assert np.abs(ours.astype(int) - theirs).max() <= 1


def test_the_place_of_the_largest_number(tmp_path: Path) -> None:
    graph = one("Hardmax")
    graph.quantized("r", 0.3, 0, "y")
    path, data = saved(graph.model({"x": SHAPE}, "y"), tmp_path), int8(26, *SHAPE)
    (got,), (expected,) = run_reference(load_net_from_model(path), [data]), run_onnx(path, {"x": data})
    assert np.array_equal(got, expected)
