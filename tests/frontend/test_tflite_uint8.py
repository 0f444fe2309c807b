"""Older TFLite files, uint8 throughout: equal to LiteRT's reference kernels, with int8 arithmetic inside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite
from tflite_models import Model, run_litert

from npukit.frontend.models import load_net_from_model
from npukit.net.net import Net
from npukit.net.reference import run_reference

SHAPE = (1, 6, 7, 4)
STEPS = {"StrideH": 1, "StrideW": 1, "Padding": tflite.Padding.SAME}


def uint8(seed: int, *shape: int, low: int = 0, high: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.uint8)


def model_of(shape: tuple[int, ...] = SHAPE) -> Model:
    model = Model()
    model.inputs.append(model.tensor("x", shape, 0.05, 125, dtype="uint8"))
    return model


def compared(model: Model, folder: Path, data: np.ndarray, within: int = 0) -> Net:
    path = folder / "model.tflite"
    path.write_bytes(model.bytes(["y"]))
    net = load_net_from_model(path)
    (got,), (expected,) = run_reference(net, [data]), run_litert(path, [data])
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert np.abs(got.astype(int) - expected).max() <= within
    assert np.unique(expected).size > 4, "the example must say something"
    return net


@pytest.mark.parametrize(("zero", "low", "high"), [(128, 0, 256), (120, 0, 248), (30, 0, 158), (90, 0, 256)])
def test_weights_about_any_zero_point(zero: int, low: int, high: int, tmp_path: Path) -> None:
    """Weights become int8 around their zero point. Input channels whose weights do not fit are used twice."""
    model = model_of()
    model.constant("w", uint8(1, 5, 3, 3, 4, low=low, high=high), 0.004, zero)
    model.constant("b", np.arange(5, dtype=np.int32) * 300, 0.05 * 0.004)
    model.tensor("c", (1, 6, 7, 5), 0.06, 110, dtype="uint8")
    model.constant("d", uint8(2, 1, 3, 3, 5, low=low, high=high), 0.006, zero)
    model.constant("e", np.arange(5, dtype=np.int32) * -200, 0.06 * 0.006)
    model.tensor("y", (1, 6, 7, 5), 0.07, 131, dtype="uint8")
    model.op("CONV_2D", ["x", "w", "b"], ["c"], "Conv2D", **STEPS)
    relu6 = tflite.ActivationFunctionType.RELU6
    options = {**STEPS, "DepthMultiplier": 1, "FusedActivationFunction": relu6}
    model.op("DEPTHWISE_CONV_2D", ["c", "d", "e"], ["y"], "DepthwiseConv2D", **options)
    net = compared(model, tmp_path, uint8(3, *SHAPE))
    kinds = {op.kind for op in net.ops}
    assert kinds - {"slice", "concat"} <= {"requantize", "conv2d", "depthwise_conv2d"}
    assert ("concat" in kinds) == (zero == 90)


def test_weights_of_a_dense_layer_that_int8_cannot_hold(tmp_path: Path) -> None:
    model = model_of((2, 9))
    model.constant("w", uint8(4, 6, 9), 0.01, 90)
    model.constant("b", np.arange(6, dtype=np.int32) * 50, 0.05 * 0.01)
    model.tensor("y", (2, 6), 0.2, 120, dtype="uint8")
    model.op("FULLY_CONNECTED", ["x", "w", "b"], ["y"], "FullyConnected")
    net = compared(model, tmp_path, uint8(5, 2, 9))
    assert [op.kind for op in net.ops] == ["requantize", "slice", "concat", "dense", "requantize"]


def test_a_sum_a_pool_and_a_softmax(tmp_path: Path) -> None:
    """LiteRT's uint8 softmax rounds otherwise: at most 1 apart."""
    model = model_of()
    model.tensor("s", SHAPE, 0.09, 120, dtype="uint8")
    model.tensor("m", (1, 3, 3, 4), 0.09, 120, dtype="uint8")
    model.tensor("f", (1, 36), 0.09, 120, dtype="uint8")
    model.tensor("y", (1, 36), 1 / 256, 0, dtype="uint8")
    pool = {"StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2, "Padding": tflite.Padding.VALID}
    model.op("ADD", ["x", "x"], ["s"], "Add")
    model.op("MAX_POOL_2D", ["s"], ["m"], "Pool2D", **pool)
    model.constant("shape", np.array([1, 36], np.int32))
    model.op("RESHAPE", ["m", "shape"], ["f"])
    model.op("SOFTMAX", ["f"], ["y"], "Softmax", Beta=1.0)
    compared(model, tmp_path, uint8(6, *SHAPE), within=1)
