"""TFLite ops, each by itself, from a written file to integers: equal to LiteRT's reference kernels."""

from __future__ import annotations

from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from hypothesis import given, settings
from hypothesis import strategies as st
from tflite_models import Model, run_litert

from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
RELU, RELU6 = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.RELU6
SHAPE = (1, 6, 7, 4)


def int8(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def int32(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def compared(model: Model, outputs: list[str], folder: Path, *inputs: np.ndarray) -> Net:
    """The net, after a bit-exact check against LiteRT's reference."""
    path = folder / "model.tflite"
    path.write_bytes(model.bytes(outputs))
    net = load_net_from_model(path)
    expected = run_litert(path, inputs)
    got = run_reference(net, list(inputs))
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert np.array_equal(ours, theirs), f"{np.count_nonzero(ours != theirs)} of {ours.size} differ"
        assert np.unique(theirs).size > 2, "the example must say something"
    return net


def weighted(
    code: str, table: str, weights: tuple[int, ...], axis: int, result: tuple[int, ...], **options: Any
) -> Model:
    """A convolution with scales for each channel."""
    model, outputs = Model(), weights[axis]
    scales = np.random.default_rng(1).uniform(0.001, 0.01, outputs)
    model.input("x", SHAPE, 0.05, -3)
    model.constant("w", int8(2, *weights), scales, axis=axis)
    biases = np.random.default_rng(3).integers(-2000, 2000, outputs, np.int32)
    model.constant("b", biases, scales.astype(np.float32) * np.float32(0.05))
    model.tensor("y", result, 0.06, 7)
    names = ["shape", "w", "x", "b"] if code == "TRANSPOSE_CONV" else ["x", "w", "b"]
    if code == "TRANSPOSE_CONV":
        model.constant("shape", int32(*result))
    model.op(code, names, ["y"], table, **options)
    return model


@pytest.mark.parametrize(
    ("result", "options"),
    [
        ((1, 6, 7, 8), {"Padding": SAME, "StrideH": 1, "StrideW": 1}),
        ((1, 2, 3, 8), {"Padding": VALID, "StrideH": 2, "StrideW": 2, "FusedActivationFunction": RELU}),
        ((1, 3, 4, 8), {"Padding": SAME, "StrideH": 2, "StrideW": 2, "FusedActivationFunction": RELU6}),
        (
            (1, 6, 7, 8),
            {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 2, "DilationWFactor": 2},
        ),
    ],
)
def test_conv_2d(result: tuple[int, ...], options: dict[str, Any], tmp_path: Path) -> None:
    model = weighted("CONV_2D", "Conv2D", (8, 3, 3, 4), 0, result, **options)
    assert [op.kind for op in compared(model, ["y"], tmp_path, int8(4, *SHAPE)).ops] == ["conv2d"]


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_conv_2d(multiplier: int, tmp_path: Path) -> None:
    options = {"Padding": SAME, "StrideH": 2, "StrideW": 2, "DepthMultiplier": multiplier}
    result = (1, 3, 4, 4 * multiplier)
    model = weighted("DEPTHWISE_CONV_2D", "DepthwiseConv2D", (1, 3, 3, 4 * multiplier), 3, result, **options)
    assert [op.kind for op in compared(model, ["y"], tmp_path, int8(5, *SHAPE)).ops] == ["depthwise_conv2d"]


@pytest.mark.parametrize(
    ("result", "padding"), [((1, 12, 14, 5), SAME), ((1, 13, 15, 5), VALID), ((1, 11, 13, 5), SAME)]
)
def test_transpose_conv(result: tuple[int, ...], padding: int, tmp_path: Path) -> None:
    options = {"Padding": padding, "StrideH": 2, "StrideW": 2}
    model = weighted("TRANSPOSE_CONV", "TransposeConv", (5, 3, 3, 4), 0, result, **options)
    compared(model, ["y"], tmp_path, int8(6, *SHAPE))


def one_input(code: str, output: tuple[float, int], table: str = "", **options: Any) -> Model:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, *output)
    model.op(code, ["x"], ["y"], table, **options)
    return model


@pytest.mark.parametrize(
    ("code", "output", "table", "options"),
    [
        ("RELU", (0.03, -100), "", {}),
        ("RELU6", (0.05, -3), "", {}),
        ("RELU_N1_TO_1", (0.05, -3), "", {}),
        ("LOGISTIC", (1 / 256, -128), "", {}),
        ("TANH", (1 / 128, 0), "", {}),
        ("HARD_SWISH", (0.03, -90), "HardSwish", {}),
        ("LEAKY_RELU", (0.04, 5), "LeakyRelu", {"Alpha": 0.13}),
        ("LEAKY_RELU", (0.04, 5), "LeakyRelu", {"Alpha": -0.4}),
        ("QUANTIZE", (0.021, 30), "", {}),
        ("SOFTMAX", (1 / 256, -128), "Softmax", {"Beta": 1.0}),
        ("SOFTMAX", (1 / 256, -128), "Softmax", {"Beta": 0.37}),
    ],
)
def test_one_operand(code: str, output: tuple[float, int], table: str, options: dict[str, Any], tmp_path: Path) -> None:
    compared(one_input(code, output, table, **options), ["y"], tmp_path, int8(7, *SHAPE))


REAL = {
    "ABS": np.abs,
    "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "EXP": np.exp,
    "GELU": lambda x: x * np.vectorize(lambda value: (1 + erf(value / sqrt(2))) / 2)(x),
    "NEG": np.negative,
    "SQUARE": np.square,
}


@pytest.mark.parametrize("code", REAL)
def test_functions_are_rounded_from_real_numbers(code: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(one_input(code, (0.04, 5)).bytes(["y"]))
    data = int8(7, *SHAPE)
    (got,) = run_reference(load_net_from_model(path), [data])
    real = np.clip(REAL[code]((data + 3.0) * 0.05) / 0.04 + 5, -128, 127)
    assert np.abs(got - real).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("other", [SHAPE, (1, 1, 1, 4), (1, 6, 1, 1)])
@pytest.mark.parametrize(("code", "table"), [("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul")])
def test_two_operands(code: str, table: str, other: tuple[int, ...], tmp_path: Path) -> None:
    model = Model()
    model.input("a", SHAPE, 0.05, -3)
    model.input("b", other, 0.021, 11)
    model.tensor("y", SHAPE, 0.07, 2)
    model.op(code, ["a", "b"], ["y"], table, FusedActivationFunction=RELU)
    compared(model, ["y"], tmp_path, int8(8, *SHAPE), int8(9, *other))


@pytest.mark.parametrize("code", ["ADD", "MUL", "SUB", "MAXIMUM", "MINIMUM"])
def test_a_constant_operand(code: str, tmp_path: Path) -> None:
    model = Model()
    model.input("a", SHAPE, 0.05, -3)
    model.constant("b", int8(10, 4), 0.05, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    table = {"MAXIMUM": "MaximumMinimum", "MINIMUM": "MaximumMinimum"}.get(code, code.capitalize())
    model.op(code, ["a", "b"], ["y"], table)
    compared(model, ["y"], tmp_path, int8(11, *SHAPE))


def test_prelu(tmp_path: Path) -> None:
    model = one_input("PRELU", (0.04, 5))
    model.constant("slopes", int8(12, 1, 1, 4), 0.01, 3)
    model.ops[0][1].append("slopes")
    compared(model, ["y"], tmp_path, int8(13, *SHAPE))


@pytest.mark.parametrize(("code", "kind"), [("AVERAGE_POOL_2D", "average_pool"), ("MAX_POOL_2D", "max_pool")])
@pytest.mark.parametrize(("padding", "size"), [(SAME, (3, 4)), (VALID, (2, 3))])
def test_pools(code: str, kind: str, padding: int, size: tuple[int, int], tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("y", (1, *size, 4), 0.05, -3)
    options = {"StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 3}
    model.op(code, ["x"], ["y"], "Pool2D", Padding=padding, **options)
    assert [op.kind for op in compared(model, ["y"], tmp_path, int8(14, *SHAPE)).ops] == [kind]


@pytest.mark.parametrize(
    ("axes", "shape", "keep"), [((1, 2), (1, 1, 1, 4), 1), ((1, 2), (1, 4), 0), ((3,), (1, 6, 7), 0)]
)
def test_mean(axes: tuple[int, ...], shape: tuple[int, ...], keep: int, tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("axes", int32(*axes))
    model.tensor("y", shape, 0.011, 9)
    model.op("MEAN", ["x", "axes"], ["y"], "Reducer", KeepDims=bool(keep))
    compared(model, ["y"], tmp_path, int8(15, *SHAPE))


def moved(code: str, shape: tuple[int, ...], constants: list[np.ndarray], table: str = "", **options: Any) -> Model:
    """An op that moves the values of x by constant amounts."""
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    names = [model.constant(f"c{number}", value) for number, value in enumerate(constants)]
    model.tensor("y", shape, 0.05, -3)
    model.op(code, ["x", *names], ["y"], table, **options)
    return model


MOVES: dict[str, Model] = {
    "reshape": moved("RESHAPE", (1, 42, 4), [int32(1, -1, 4)]),
    "squeeze": moved("SQUEEZE", (6, 7, 4), [], "Squeeze"),
    "transpose": moved("TRANSPOSE", (1, 4, 7, 6), [int32(0, 3, 2, 1)]),
    "pad": moved("PAD", (1, 9, 8, 4), [np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)]),
    "slice": moved("SLICE", (1, 3, 6, 4), [int32(0, 2, 1, 0), int32(1, 3, -1, 4)]),
    "strided slice": moved(
        "STRIDED_SLICE",
        (1, 3, 2, 4),
        [int32(0, 0, -5, 0), int32(1, 6, -1, 4), int32(1, 2, 3, 1)],
        "StridedSlice",
        BeginMask=0,
        EndMask=8,
    ),
    "strided slice, one row": moved(
        "STRIDED_SLICE",
        (1, 7, 4),
        [int32(0, 2, 0, 0), int32(1, 3, 7, 4), int32(1, 1, 1, 1)],
        "StridedSlice",
        ShrinkAxisMask=2,
    ),
    "nearest": moved("RESIZE_NEAREST_NEIGHBOR", (1, 9, 5, 4), [int32(9, 5)], "ResizeNearestNeighbor"),
    "nearest, aligned": moved(
        "RESIZE_NEAREST_NEIGHBOR", (1, 11, 9, 4), [int32(11, 9)], "ResizeNearestNeighbor", AlignCorners=True
    ),
    "nearest, half pixels": moved(
        "RESIZE_NEAREST_NEIGHBOR", (1, 9, 21, 4), [int32(9, 21)], "ResizeNearestNeighbor", HalfPixelCenters=True
    ),
    "bilinear": moved("RESIZE_BILINEAR", (1, 9, 5, 4), [int32(9, 5)], "ResizeBilinear"),
    "bilinear, aligned": moved("RESIZE_BILINEAR", (1, 11, 9, 4), [int32(11, 9)], "ResizeBilinear", AlignCorners=True),
    "bilinear, half pixels": moved(
        "RESIZE_BILINEAR", (1, 12, 21, 4), [int32(12, 21)], "ResizeBilinear", HalfPixelCenters=True
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, tmp_path: Path) -> None:
    compared(MOVES[name], ["y"], tmp_path, int8(16, *SHAPE))


@pytest.mark.parametrize(
    ("code", "size", "options"),
    [
        ("RESIZE_BILINEAR", (12, 14), {"HalfPixelCenters": True}),
        ("RESIZE_BILINEAR", (11, 9), {"AlignCorners": True}),
        ("RESIZE_NEAREST_NEIGHBOR", (12, 21), {}),
    ],
)
def test_resized_in_16_bits(code: str, size: tuple[int, int], options: dict[str, Any], tmp_path: Path) -> None:
    """Fractions of a quarter, with products that fit 32 bits, and fractions of a 1024th."""
    model, table = Model(), {"RESIZE_BILINEAR": "ResizeBilinear"}.get(code, "ResizeNearestNeighbor")
    model.inputs.append(model.tensor("x", SHAPE, 0.0007, dtype="int16"))
    model.constant("size", int32(*size))
    model.tensor("y", (1, *size, 4), 0.0007, dtype="int16")
    model.op(code, ["x", "size"], ["y"], table, **options)
    values = np.random.default_rng(16).integers(-32768, 32768, SHAPE).astype(np.int16)
    assert [op.kind for op in compared(model, ["y"], tmp_path, values).ops] != ["tvm_code"]


def test_a_float_image_with_aligned_corners_rounds_halves_up(tmp_path: Path) -> None:
    model, image = Model(), np.random.default_rng(3).normal(size=(1, 3, 7, 1)).astype(np.float32)
    model.inputs.append(model.tensor("x", image.shape, dtype="float32"))
    model.constant("size", int32(8, 13))
    model.tensor("y", (1, 8, 13, 1), dtype="float32")
    model.op("RESIZE_NEAREST_NEIGHBOR", ["x", "size"], ["y"], "ResizeNearestNeighbor", AlignCorners=True)
    (tmp_path / "model.tflite").write_bytes(model.bytes(["y"]))
    (got,) = run_reference(load_model(tmp_path / "model.tflite", in_float=True).net, [image])
    assert np.array_equal(got, run_litert(tmp_path / "model.tflite", [image])[0])


def test_concatenation_of_differently_quantised_parts_is_within_rounding(tmp_path: Path) -> None:
    model = Model()
    for name in "abc":
        model.input(name, SHAPE, 0.05, -3)
    model.tensor("y", (1, 6, 7, 12), 0.05, -3)
    model.op("CONCATENATION", ["a", "b", "c"], ["y"], "Concatenation", Axis=-1)
    compared(model, ["y"], tmp_path, *(int8(seed, *SHAPE) for seed in (17, 18, 19)))


def test_split(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("axis", np.array(3, np.int32))
    names = [model.tensor(name, (1, 6, 7, 2), 0.05, -3) for name in ("low", "high")]
    model.op("SPLIT", ["axis", "x"], names, "Split", NumSplits=2)
    compared(model, names, tmp_path, int8(20, *SHAPE))


def test_split_v(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("sizes", int32(1, 3))
    model.constant("axis", np.array(3, np.int32))
    names = [model.tensor(f"part{width}", (1, 6, 7, width), 0.05, -3) for width in (1, 3)]
    model.op("SPLIT_V", ["x", "sizes", "axis"], names, "SplitV", NumSplits=2)
    compared(model, names, tmp_path, int8(21, *SHAPE))


@pytest.mark.parametrize("adjoint", [False, True])
def test_batch_matmul(adjoint: bool, tmp_path: Path) -> None:
    model = Model()
    model.input("a", (3, 4, 5), 0.05, -3)
    model.input("b", (3, 6, 5) if adjoint else (3, 5, 6), 0.02, 7)
    model.tensor("y", (3, 4, 6), 0.3, 1)
    model.op("BATCH_MATMUL", ["a", "b"], ["y"], "BatchMatMul", AdjX=False, AdjY=adjoint)
    compared(model, ["y"], tmp_path, int8(22, 3, 4, 5), int8(23, 3, 6, 5) if adjoint else int8(23, 3, 5, 6))


def test_arg_max(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("axis", np.array(3, np.int32))
    model.tensor("y", SHAPE[:3], dtype="int32")
    model.op("ARG_MAX", ["x", "axis"], ["y"], "ArgMax", OutputType=tflite.TensorType.INT32)
    compared(model, ["y"], tmp_path, int8(24, *SHAPE))


def test_uint8_at_both_ends(tmp_path: Path) -> None:
    model = Model()
    model.inputs.append(model.tensor("x", SHAPE, 0.05, 125, dtype="uint8"))
    model.tensor("inside", SHAPE, 0.05, -3)
    model.tensor("clipped", SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, 0.03, 100, dtype="uint8")
    model.op("QUANTIZE", ["x"], ["inside"])
    model.op("RELU6", ["inside"], ["clipped"])
    model.op("QUANTIZE", ["clipped"], ["y"])
    compared(model, ["y"], tmp_path, int8(25, *SHAPE).view(np.uint8))


def test_shapes_computed_in_the_model(tmp_path: Path) -> None:
    """SHAPE, STRIDED_SLICE and PACK, as in an exported Flatten of Keras."""
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("shape", (4,), dtype="int32")
    model.tensor("batch", (), dtype="int32")
    model.tensor("wanted", (2,), dtype="int32")
    model.tensor("y", (1, 168), 0.05, -3)
    bounds = [model.constant(f"bound{number}", int32(value)) for number, value in enumerate((0, 1, 1))]
    model.constant("rest", np.array(-1, np.int32))
    model.op("SHAPE", ["x"], ["shape"], "Shape", OutType=tflite.TensorType.INT32)
    model.op("STRIDED_SLICE", ["shape", *bounds], ["batch"], "StridedSlice", ShrinkAxisMask=1)
    model.op("PACK", ["batch", "rest"], ["wanted"], "Pack", ValuesCount=2)
    model.op("RESHAPE", ["x", "wanted"], ["y"])
    assert [op.kind for op in compared(model, ["y"], tmp_path, int8(26, *SHAPE)).ops] == ["reshape"]


@pytest.mark.parametrize("also_read", [False, True])
def test_padding_before_a_convolution_is_the_convolution_s(also_read: bool, tmp_path: Path) -> None:
    """Exporters write a stride of 2 with padding on one side in this way. A pad with another reader stays."""
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("around", np.array([[0, 0], [0, 1], [1, 2], [0, 0]], np.int32))
    model.constant("w", int8(27, 8, 3, 3, 4), 0.01)
    model.constant("b", np.arange(8, dtype=np.int32), 0.0005)
    model.tensor("p", (1, 7, 10, 4), 0.05, -3)
    model.tensor("y", (1, 3, 4, 8), 0.3, 7)
    model.op("PAD", ["x", "around"], ["p"])
    model.op("CONV_2D", ["p", "w", "b"], ["y"], "Conv2D", Padding=VALID, StrideH=2, StrideW=2)
    kinds = [op.kind for op in compared(model, ["y", "p"] if also_read else ["y"], tmp_path, int8(28, *SHAPE)).ops]
    assert kinds == (["pad", "conv2d"] if also_read else ["conv2d"])


@settings(max_examples=30)
@given(
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    zeros=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    scale=st.floats(0.001, 2.0),
    seed=st.integers(0, 2**16),
)
def test_random_convolutions(
    window: tuple[int, int],
    stride: int,
    dilation: int,
    zeros: tuple[int, int],
    scale: float,
    seed: int,
    tmp_path: Path,
) -> None:
    dilation = dilation if stride == 1 else 1
    model = Model()
    model.input("x", SHAPE, 0.05, zeros[0])
    scales = np.random.default_rng(seed).uniform(0.0005, 0.05, 5)
    model.constant("w", int8(seed, 5, *window, 4) | 1, scales)
    biases = np.random.default_rng(seed).integers(-5000, 5000, 5, np.int32)
    model.constant("b", biases, scales.astype(np.float32) * np.float32(0.05))
    model.tensor("y", (1, -(-6 // stride), -(-7 // stride), 5), scale, zeros[1])
    sizes = {"StrideH": stride, "StrideW": stride, "DilationHFactor": dilation, "DilationWFactor": dilation}
    model.op("CONV_2D", ["x", "w", "b"], ["y"], "Conv2D", Padding=SAME, **sizes)
    path, data = tmp_path / "model.tflite", int8(seed + 1, *SHAPE)
    path.write_bytes(model.bytes(["y"]))
    assert np.array_equal(run_reference(load_net_from_model(path), [data])[0], run_litert(path, [data])[0])


def test_a_mask_of_the_least_float_keeps_its_scale(tmp_path: Path) -> None:
    """Scores have the mask's scale as well, as converters give both operands of a choice the scale of the result."""
    model, shape, scale = Model(), (1, 4, 6, 6), 1.3e36
    model.input("x", shape, 0.1, 3)
    model.constant("one", np.array(127, np.int8), 1e-3, -128)
    model.constant("least", np.array(-128, np.int8), scale, 127)
    model.constant("later", np.triu(np.ones((1, 1, 6, 6), bool), 1))
    for name in ("scores", "masked"):
        model.tensor(name, shape, scale, 127)
    model.tensor("y", shape, 1 / 256, -128)
    model.op("MUL", ["x", "one"], ["scores"], "Mul")
    model.op("SELECT_V2", ["later", "least", "scores"], ["masked"], "SelectV2")
    model.op("SOFTMAX", ["masked"], ["y"], "Softmax", Beta=1.0)
    compared(model, ["y"], tmp_path, int8(1, *shape))
