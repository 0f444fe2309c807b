"""Dynamic range quantisation: int8 weights on float data, against LiteRT's hybrid kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from frontend.tflite_models import Model, run_litert
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.frontend.tflite.file import read_tflite
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
RANDOM = np.random.default_rng(5)
WINDOW = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def of_floats(*shape: int) -> Model:
    model = Model()
    model.inputs.append(model.tensor("x", shape, dtype="float32"))
    return model


def weights(model: Model, shape: tuple[int, ...], axis: int | None) -> str:
    """int8 weights with a scale for each index of `axis`, or with a single scale."""
    count = 1 if axis is None else shape[axis]
    whole = RANDOM.integers(-127, 128, shape).astype(np.int8)
    return model.constant("w", whole, RANDOM.uniform(0.01, 0.02, count).astype(np.float32), axis=axis or 0)


def layer(
    folder: Path,
    given: tuple[int, ...],
    shape: tuple[int, ...],
    result: tuple[int, ...],
    op: tuple[str, str],
    **more: Any,
) -> Path:
    """A model of one layer. `more`: `axis` of the scales, `limited` data, and options."""
    model, (code, table), axis = of_floats(*given), op, more.pop("axis", None)
    source, limited = "x", more.pop("limited", False)
    if limited:
        source = model.tensor("limited", given, dtype="float32")
        model.op("RELU", ["x"], [source])
    held = weights(model, shape, axis)
    bias = model.constant("b", RANDOM.normal(0, 1, result[-1]).astype(np.float32))
    inputs = [source, held, bias] if code != "BATCH_MATMUL" else [source, held]
    model.op(code, inputs, [model.tensor("y", result, dtype="float32")], table, **more)
    (folder / "model.tflite").write_bytes(model.bytes(["y"]))
    return folder / "model.tflite"


def compared(path: Path, *shape: int) -> Net:
    """The network, equal to LiteRT's but for the last digits."""
    net, data = load_model(path).net, RANDOM.normal(0.2, 1, shape).astype(np.float32)
    (got,), (wanted,) = run_reference(net, [data]), run_litert(path, [data])
    assert 20 * np.log10(np.linalg.norm(wanted) / np.linalg.norm(got - wanted)) > 80
    assert {net.tensor(name).dtype for name in net.constants if name.startswith("sums")} == {"int8"}
    return net


DENSE, PRODUCT = ("FULLY_CONNECTED", "FullyConnected"), ("BATCH_MATMUL", "BatchMatMul")


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("limited", [False, True])
def test_a_dense_layer_quantises_each_row(asymmetric: bool, axis: int | None, limited: bool, tmp_path: Path) -> None:
    more = {"axis": axis, "limited": limited, "AsymmetricQuantizeInputs": asymmetric}
    net = compared(layer(tmp_path, (3, 24), (9, 24), (3, 9), DENSE, **more), 3, 24)
    assert "sums" in [op.kind for op in net.ops]


@pytest.mark.parametrize("turned", [False, True])
def test_a_product_with_a_matrix(turned: bool, tmp_path: Path) -> None:
    shape = (1, 7, 20) if turned else (1, 20, 7)
    compared(layer(tmp_path, (1, 5, 20), shape, (1, 5, 7), PRODUCT, AdjX=False, AdjY=turned), 1, 5, 20)


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_a_convolution_quantises_each_image(axis: int | None, limited: bool, padding: int, tmp_path: Path) -> None:
    sides = (7, 6) if padding == SAME else (5, 4)
    more = {"axis": axis, "limited": limited, "Padding": padding, **WINDOW}
    path = layer(tmp_path, (2, 7, 6, 5), (8, 3, 3, 5), (2, *sides, 8), ("CONV_2D", "Conv2D"), **more)
    compared(path, 2, 7, 6, 5)


@pytest.mark.parametrize("limited", [False, True])
def test_a_depthwise_convolution(limited: bool, tmp_path: Path) -> None:
    more = {"axis": 3, "limited": limited, "Padding": SAME, "DepthMultiplier": 1, **WINDOW}
    op = "DEPTHWISE_CONV_2D", "DepthwiseConv2D"
    compared(layer(tmp_path, (1, 7, 6, 5), (1, 3, 3, 5), (1, 7, 6, 5), op, **more), 1, 7, 6, 5)


def test_calibration_keeps_the_integers(tmp_path: Path) -> None:
    """Weights of a single scale, whose channels do not all reach 127."""
    path = layer(tmp_path, (3, 24), (9, 24), (3, 9), DENSE)
    np.savez(tmp_path / "samples.npz", in0=RANDOM.normal(0, 1, (20, 3, 24)).astype(np.float32))
    net = load_model(path, calibration=tmp_path / "samples.npz").net
    (op,) = net.ops
    given = net.tensor(op.inputs[1]).quantization
    assert given is not None
    stored = next(each for each in read_tflite(path.read_bytes(), "model").tensors if each.dtype == "int8")
    assert stored.value is not None
    assert stored.quantization is not None
    np.testing.assert_allclose(
        net.constants[op.inputs[1]] * np.array(given.scales)[:, None],
        stored.value * stored.quantization.scale,
        rtol=1e-5,
    )


def test_the_sums_are_on_the_array(tmp_path: Path) -> None:
    path = layer(tmp_path, (4, 64), (32, 64), (4, 32), DENSE, axis=0)
    net = assign_engines(load_model(path).net, engines_of(load_board("pe-mesh")))
    assert [op.engine for op in net.ops if op.kind == "sums"] == ["mac_array"]


def rows_of_a_table(folder: Path) -> Path:
    """An embedding as Keras writes it: rows of an int8 table, then floats."""
    model = Model()
    model.inputs.append(model.tensor("x", (1, 6), dtype="int32"))
    model.constant("table", RANDOM.integers(-127, 128, (40, 8)).astype(np.int8), 0.02)
    model.op("GATHER", ["table", "x"], [model.tensor("rows", (1, 6, 8), 0.02)], "Gather")
    model.op("DEQUANTIZE", ["rows"], [model.tensor("real", (1, 6, 8), dtype="float32")])
    model.constant("axis", np.array([1], np.int32))
    model.op("MEAN", ["real", "axis"], [model.tensor("mean", (1, 8), dtype="float32")], "Reducer")
    model.op(
        "FULLY_CONNECTED", ["mean", weights(model, (5, 8), 0)], [model.tensor("y", (1, 5), dtype="float32")], DENSE[1]
    )
    (folder / "model.tflite").write_bytes(model.bytes(["y"]))
    return folder / "model.tflite"


def test_an_int8_table_stays_int8(tmp_path: Path) -> None:
    path, places = rows_of_a_table(tmp_path), np.array([[3, 39, 0, 7, 7, 1]], np.int32)
    net = load_model(path).net
    (got,), (wanted,) = run_reference(net, [places]), run_litert(path, [places])
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
    assert max(value.nbytes for value in net.constants.values()) == 40 * 8
    np.savez(tmp_path / "samples.npz", in0=RANDOM.integers(0, 40, (20, 1, 6)).astype(np.int32))
    quantised = load_model(path, calibration=tmp_path / "samples.npz").net
    assert "dense" in [op.kind for op in quantised.ops]
