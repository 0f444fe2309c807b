"""Ops of TFLite Micro that LiteRT lacks or rounds otherwise: equal to TFLite Micro to the last bit, frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from frontend.tflite_models import Model, int8_lstm, run_micro
from npukit.errors import NpukitError
from npukit.net.reference import evaluate, run_reference
from npukit.quantize.models import load_model

RELU = tflite.ActivationFunctionType.RELU


def svdf(state: str, rank: int, *, activation: int = RELU) -> Model:
    """An SVDF over five frames, with two filters for each unit if the rank is 2."""
    model, random, units, length, given = Model(), np.random.default_rng(rank), 3, 5, 7
    wide, filters = state == "int16", units * rank
    model.input("x", (1, given), 0.03, 5)
    model.constant("features", random.integers(-127, 128, (filters, given), np.int8), 0.003)
    frames = random.integers(-20000, 20000, (filters, length)).astype("int16" if wide else "int8")
    frames_scale, held, zero = (0.0001, 0.0007, 0) if wide else (0.02, 0.06, -9)
    model.constant("frames", frames, frames_scale)
    model.constant("bias", random.integers(-3000, 3000, units, np.int32), frames_scale * held)
    model.variable("kept", (1, filters * length), state, held, zero)
    model.tensor("y", (1, units), 0.05, -128)
    inputs = ["x", "features", "frames", "bias", "kept"]
    model.op("SVDF", inputs, ["y"], "SVDF", Rank=rank, FusedActivationFunction=activation)
    return model


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("state", ["int8", "int16"])
def test_svdf_remembers_as_many_frames_as_it_filters(state: str, rank: int, tmp_path: Path) -> None:
    data = svdf(state, rank).bytes(["y"])
    random = np.random.default_rng(3)
    frames = [[random.integers(-128, 128, (1, 7), np.int8)] for _ in range(8)]
    (tmp_path / "model.tflite").write_bytes(data)
    net, before = load_model(tmp_path / "model.tflite").net, None
    for frame, (want,) in zip(frames, run_micro(data, frames), strict=True):
        before = evaluate(net, frame, before)
        assert np.array_equal(before[net.outputs[0]], want)


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch": 2},
        {"batch": 3, "time_major": True},
        {"clip": 0.7, "zero": 3},
        {"cell": 2.0**-10},
        {"cell": 2.0**-14},
    ],
    ids=str,
)
def test_an_lstm_in_integers(options: dict[str, Any], steps: int, tmp_path: Path) -> None:
    """Whole sequences start anew in each frame; single steps continue from frame to frame."""
    data, random = int8_lstm(steps, **options)[0].bytes(["y"]), np.random.default_rng(steps)
    (tmp_path / "model.tflite").write_bytes(data)
    net, before = load_model(tmp_path / "model.tflite").net, None
    frames = [[random.integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)] for _ in range(3)]
    wanted = run_micro(data, frames) if steps == 1 else [run_micro(data, [frame])[0] for frame in frames]
    for frame, (want,) in zip(frames, wanted, strict=True):
        before = evaluate(net, frame, before if steps == 1 else None)
        assert np.array_equal(before[net.outputs[0]], want)
    assert np.unique(wanted[0][0]).size > (3 if steps == 1 else 12)
    assert sum(op.kind == "sums" for op in net.ops) == 2 * steps


def test_svdf_of_integers_has_no_activation_but_relu(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(
        svdf("int8", 1, activation=tflite.ActivationFunctionType.RELU6).bytes(["y"])
    )
    with pytest.raises(NpukitError, match="its activation is not ReLU"):
        load_model(tmp_path / "model.tflite")


@pytest.mark.parametrize(
    ("before", "after"),
    [("int8", "int16"), ("int8", "int32"), ("int16", "int8"), ("int16", "int16"), ("int16", "int32")],
)
def test_integers_of_another_width(before: str, after: str, tmp_path: Path) -> None:
    model, random = Model(), np.random.default_rng(4)
    zeros = {"int8": 5, "int16": 0, "int32": 0}
    model.inputs.append(model.tensor("x", (3, 50), 0.003, zeros[before], dtype=before))
    model.tensor("y", (3, 50), 0.0017, zeros[after], dtype=after)
    model.op("QUANTIZE", ["x"], ["y"], "Quantize")
    data, limits = model.bytes(["y"]), np.iinfo(before)
    (tmp_path / "model.tflite").write_bytes(data)
    given = random.integers(limits.min, limits.max + 1, (3, 50)).astype(before)
    (got,) = run_reference(load_model(tmp_path / "model.tflite").net, [given])
    assert np.array_equal(got, run_micro(data, [[given]])[0][0])


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_int8(exclusive: bool, reverse: bool, tmp_path: Path) -> None:
    """npukit rounds twice. TFLite Micro begins at the zero point, and exceeds int32 after 16 numbers."""
    model, random, shape = Model(), np.random.default_rng(4), (40, 8, 3)
    model.inputs.append(model.tensor("x", shape, 0.03, 0))
    model.tensor("y", shape, 0.11, -20)
    names = ["x", model.constant("axis", np.array(1, np.int32))]
    model.op("CUMSUM", names, ["y"], "Cumsum", Exclusive=exclusive, Reverse=reverse)
    data, given = model.bytes(["y"]), random.integers(-128, 128, shape).astype(np.int8)
    (tmp_path / "model.tflite").write_bytes(data)
    (got,) = run_reference(load_model(tmp_path / "model.tflite").net, [given])
    differences = got.astype(int) - run_micro(data, [[given]])[0][0]
    assert np.abs(differences).max() <= 1


class Wide:
    """A model of a single op on 16-bit activations."""

    def __init__(self, seed: int) -> None:
        self.model, self.random = Model(), np.random.default_rng(seed)
        self.given: list[np.ndarray] = []

    def input(self, shape: tuple[int, ...], scale: float) -> str:
        name = self.model.tensor(f"x{len(self.given)}", shape, scale, dtype="int16")
        self.model.inputs.append(name)
        self.given.append(self.random.integers(-32768, 32768, shape).astype(np.int16))
        return name

    def output(self, shape: tuple[int, ...], scale: float) -> str:
        return self.model.tensor("y", shape, scale, dtype="int16")

    def weights(self, shape: tuple[int, ...], axis: int) -> str:
        scales = self.random.uniform(0.001, 0.02, shape[axis]).astype(np.float32)
        return self.model.constant("w", self.random.integers(-127, 128, shape).astype(np.int8), scales, axis=axis)

    def bias(self, size: int, dtype: str, scale: float = 1.0) -> str:
        return self.model.constant("b", self.random.integers(-(1 << 20), 1 << 20, size).astype(dtype), scale)


RELU6 = tflite.ActivationFunctionType.RELU6
STRIDED = {"Padding": tflite.Padding.SAME, "StrideH": 2, "StrideW": 1}
WINDOW = {**STRIDED, "FilterHeight": 3, "FilterWidth": 2}


def convolution(wide: Wide) -> None:
    names = [wide.input((1, 7, 6, 4), 0.0007), wide.weights((5, 3, 3, 4), 0), wide.bias(5, "int64")]
    dilated = {"DilationHFactor": 2, "FusedActivationFunction": RELU}
    wide.model.op("CONV_2D", names, [wide.output((1, 4, 6, 5), 0.002)], "Conv2D", **STRIDED, **dilated)


def depthwise(wide: Wide) -> None:
    names = [wide.input((1, 7, 6, 3), 0.0007), wide.weights((1, 3, 3, 6), 3), wide.bias(6, "int64")]
    options = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1, "DepthMultiplier": 2}
    wide.model.op("DEPTHWISE_CONV_2D", names, [wide.output((1, 5, 4, 6), 0.0004)], "DepthwiseConv2D", **options)


def transposed(size: tuple[int, int], padding: int, strides: tuple[int, int] = (2, 3), images: int = 1) -> Any:
    def made(wide: Wide) -> None:
        shape = wide.model.constant("size", np.array([images, *size, 5], np.int32))
        names = [shape, wide.weights((5, 3, 4, 6), 0), wide.input((images, 4, 3, 6), 0.0007), wide.bias(5, "int64")]
        options = {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}
        wide.model.op("TRANSPOSE_CONV", names, [wide.output((images, *size, 5), 0.002)], "TransposeConv", **options)

    return made


def dense(bias: str) -> Callable[[Wide], None]:
    def made(wide: Wide) -> None:
        weights = wide.model.constant("w", wide.random.integers(-127, 128, (5, 40), np.int8), 0.004)
        names = [wide.input((2, 40), 0.0007), weights, wide.bias(5, bias, 0.0007 * 0.004)]
        wide.model.op("FULLY_CONNECTED", names, [wide.output((2, 5), 0.01)], "FullyConnected")

    return made


def long_dense(wide: Wide) -> None:
    """Sums of bytes that may exceed 32 bits."""
    weights = wide.model.constant("w", wide.random.integers(120, 128, (1, 70000), np.int8), 0.004)
    names = [wide.input((1, 70000), 0.0007), weights, wide.bias(1, "int64", 0.0007 * 0.004)]
    wide.model.op("FULLY_CONNECTED", names, [wide.output((1, 1), 0.1)], "FullyConnected")


def far_scales(largest: float) -> Callable[[Wide], None]:
    """A bias of more than 32 bits, and channels with sums of other magnitudes."""

    def made(wide: Wide) -> None:
        scales = np.array([0.004, 0.02, 1e-6, largest], np.float32)
        weights = wide.model.constant("w", wide.random.integers(-127, 128, (4, 1, 1, 9), np.int8), scales, axis=0)
        bias = wide.model.constant("b", np.array([1 << 33, -(1 << 31), 7, 0]), 1.0)
        names, options = [wide.input((1, 5, 5, 9), 0.0007), weights, bias], {**STRIDED, "Padding": tflite.Padding.VALID}
        wide.model.op("CONV_2D", names, [wide.output((1, 3, 5, 4), 200.0)], "Conv2D", **options)

    return made


def binary(code: str) -> Callable[[Wide], None]:
    def made(wide: Wide) -> None:
        names = [wide.input((2, 5, 30), 0.0007), wide.input((2, 1, 30), 0.0003)]
        wide.model.op(code, names, [wide.output((2, 5, 30), 0.0009)], code.capitalize(), FusedActivationFunction=RELU6)

    return made


def many_differences(wide: Wide) -> None:
    """Enough differences to include some that a factor in single precision would round otherwise."""
    names = [wide.input((2, 70, 90), 0.00097), wide.input((2, 70, 90), 0.00023)]
    wide.model.op("SUB", names, [wide.output((2, 70, 90), 0.0011)], "Sub")


def pool(code: str) -> Callable[[Wide], None]:
    def made(wide: Wide) -> None:
        wide.model.op(code, [wide.input((1, 7, 6, 3), 0.0007)], [wide.output((1, 4, 6, 3), 0.0007)], "Pool2D", **WINDOW)

    return made


def pool_of_single_pixels(wide: Wide) -> None:
    """A store and a later load of the same element, with a maximum and a minimum in a single block of C."""
    options = {**STRIDED, "FilterHeight": 1, "FilterWidth": 1, "FusedActivationFunction": RELU6}
    wide.model.op(
        "MAX_POOL_2D", [wide.input((1, 7, 6, 3), 0.0007)], [wide.output((1, 4, 6, 3), 0.0007)], "Pool2D", **options
    )


def function(code: str, given: float, result: float, table: str = "", **options: float) -> Callable[[Wide], None]:
    def made(wide: Wide) -> None:
        wide.model.op(code, [wide.input((3, 300), given)], [wide.output((3, 300), result)], table, **options)

    return made


WIDE = {
    "add": binary("ADD"),
    "average_pool": pool("AVERAGE_POOL_2D"),
    "conv_2d": convolution,
    "conv_2d_of_far_scales": far_scales(0.03),
    "conv_2d_of_farther_scales": far_scales(2000.0),
    "dense_int32": dense("int32"),
    "dense_int64": dense("int64"),
    "dense_long": long_dense,
    "depthwise": depthwise,
    "leaky_relu": function("LEAKY_RELU", 0.0007, 0.0004, "LeakyRelu", Alpha=0.3),
    "logistic": function("LOGISTIC", 0.0003, 1 / 32768),
    "logistic_of_a_power_of_two": function("LOGISTIC", 1 / 4096, 1 / 32768),
    "max_pool": pool("MAX_POOL_2D"),
    "max_pool_of_single_pixels": pool_of_single_pixels,
    "mul": binary("MUL"),
    "relu": function("RELU", 0.0007, 0.0003),
    "relu6": function("RELU6", 0.0007, 0.0007),
    "softmax": function("SOFTMAX", 0.0002, 1 / 32768, "Softmax", Beta=0.7),
    "sub": binary("SUB"),
    "sub_of_many": many_differences,
    "transposed": transposed((8, 9), tflite.Padding.SAME),
    "transposed_far": transposed((9, 13), tflite.Padding.VALID, (2, 4)),
    "transposed_images": transposed((9, 10), tflite.Padding.VALID, (2, 2), 2),
    "transposed_dense": transposed((4, 3), tflite.Padding.SAME, (1, 1)),
    "tanh": function("TANH", 0.0001, 1 / 32768),
    "tanh_of_a_power_of_two": function("TANH", 1 / 2048, 1 / 32768),
}


@pytest.mark.parametrize("maker", WIDE)
def test_activations_of_16_bits(maker: str, tmp_path: Path) -> None:
    wide = Wide(len(maker))
    WIDE[maker](wide)
    data = wide.model.bytes(["y"])
    (tmp_path / "model.tflite").write_bytes(data)
    net = load_model(tmp_path / "model.tflite").net
    assert np.array_equal(run_reference(net, wide.given)[0], run_micro(data, [wide.given])[0][0])
    summed = maker.startswith(("conv", "dense", "depthwise", "transposed")) and maker != "dense_long"
    assert sum(op.kind == "sums" for op in net.ops) == 2 * summed


def test_a_softmax_of_int8_gives_16_bits_with_a_zero_point(tmp_path: Path) -> None:
    model = Model()
    model.input("x", (1, 6), 0.07, 2)
    model.tensor("y", (1, 6), 2.0**-16, -(1 << 15), dtype="int16")
    model.op("SOFTMAX", ["x"], ["y"], "Softmax", Beta=1.0)
    (tmp_path / "model.tflite").write_bytes(data := model.bytes(["y"]))
    frame = [np.random.default_rng(5).integers(-128, 128, (1, 6), np.int8)]
    (got,) = run_reference(load_model(tmp_path / "model.tflite").net, frame)
    ((want,),) = run_micro(data, [frame])
    assert np.array_equal(got, want)
