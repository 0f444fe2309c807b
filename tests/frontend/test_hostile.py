"""Files of unknown origin: their claims are limited, their contents are read or refused, and no result is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import onnx
import pytest
import tflite
from onnx import TensorProto, helper
from onnx_models import Graph, saved
from tflite_models import Entry, Model, run_litert

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.frontend.tflite.file import read_tflite
from npukit.host.budget import LIMITS_VARIABLE
from npukit.net.reference import run_reference

SHAPE = (1, 6, 7, 4)
POOL: dict[str, Any] = {"StrideH": 1, "StrideW": 1, "FilterHeight": 1, "FilterWidth": 1}


def one_op(code: str, table: str = "", shape: tuple[int, ...] = SHAPE, **options: Any) -> Model:
    """A single op from x to y. `shape`: the shape of y."""
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("y", shape, 0.05, -3)
    model.op(code, ["x"], ["y"], table, **options)
    return model


def refused(model: Model, folder: Path, message: str, *outputs: str) -> NpukitError:
    path = folder / "model.tflite"
    path.write_bytes(model.bytes(outputs or ("y",)))
    return refused_file(path, message)


def refused_file(path: Path, message: str) -> NpukitError:
    with pytest.raises(NpukitError, match=message) as caught:
        load_net_from_model(path)
    assert "\n" not in caught.value.message
    return caught.value


def tiled(times: int) -> Model:
    model = one_op("TILE", "Tile", (1, 6, 7 * times, 4))
    model.constant("times", np.array([1, 1, times, 1], np.int32))
    model.ops[0][1].append("times")
    return model


def many_outputs() -> Model:
    model = Model()
    model.input("x", (3000, 2), 0.05, -3)
    names = [model.tensor(f"y{number}", (2,), 0.05, -3) for number in range(3000)]
    model.op("UNPACK", ["x"], names, "Unpack", Num=3000)
    return model


def named(length: int) -> Model:
    model = Model()
    model.input("x" * length, SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    model.op("RELU", ["x" * length], ["y"])
    return model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (one_op("RELU", shape=(1, 6000, 7000, 4)), "168,000,000 elements; npukit reads 33,554,432 at most"),
        (one_op("RELU", shape=(1,) * 40), "40 axes; npukit reads 16 at most"),
        (
            one_op("MAX_POOL_2D", "Pool2D", (1, 1, 7, 4), **{**POOL, "StrideH": 1 << 30}),
            "1,073,741,824 places along an axis",
        ),
        (one_op("MAX_POOL_2D", "Pool2D", **{**POOL, "FilterWidth": 1 << 20}), "1,048,576 places in a window"),
        (tiled(5000), "5,000 operands; npukit reads 2,048 at most"),
        (many_outputs(), "3,000 operands; npukit reads 2,048 at most"),
        (named(100_000), "100,000 bytes in a name; npukit reads 65,536 at most"),
    ],
)
def test_a_claim_beyond_a_limit_names_it(model: Model, message: str, tmp_path: Path) -> None:
    begin = process_time()
    error = refused(model, tmp_path, message, model.ops[0][2][0])
    assert process_time() - begin < 3
    assert LIMITS_VARIABLE in error.tries[0]


def test_limits_are_raised_by_one_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tiled(2100).bytes(["y"]))
    refused_file(path, "2,100 operands")
    monkeypatch.setenv(LIMITS_VARIABLE, "2")
    assert (1, 6, 14700, 4) in {each.shape for each in load_net_from_model(path).tensors.values()}
    monkeypatch.setenv(LIMITS_VARIABLE, "many")
    refused_file(path, f"{LIMITS_VARIABLE} is 'many', not a number above 0")


def test_tensors_that_share_a_buffer_take_its_bytes_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer gives each entry a separate buffer. Here all further entries name the first buffer."""
    add = tflite.TensorAddBuffer
    monkeypatch.setattr(tflite, "TensorAddBuffer", lambda builder, number: add(builder, min(number, 1)))
    model = Model()
    value = np.zeros((1 << 20,), np.int8)
    model.constant("w0", value, 0.1)
    for number in range(100):
        model.entries.append(Entry(f"w{number + 1}", value.shape, "int8", (0.1,), (0,), 0, None))
    read = read_tflite(model.bytes([]), "model.tflite")
    addresses = {tensor.value.__array_interface__["data"][0] for tensor in read.tensors if tensor.value is not None}
    assert len(read.tensors) == 101
    assert len(addresses) == 1
    model.entries += [Entry(f"v{number}", value.shape, "int8", (0.1,), (0,), 0, None) for number in range(500)]
    refused(model, tmp_path, "bytes in all its tensors; npukit reads 536,870,912 at most", "w0")


def test_what_no_reader_takes_must_say_nothing(tmp_path: Path) -> None:
    refused(one_op("ABS", "Gather", Axis=1), tmp_path, r"op 0 \(ABS\): its options are GatherOptions, which set Axis")
    model = one_op("RELU")
    model.ops[0][1].append("x")
    refused(model, tmp_path, r"op 0 \(RELU\): it has 2 inputs; npukit does not read number 1")
    assert load(one_op("ABS", "Gather"), tmp_path).ops


def load(model: Model, folder: Path) -> Any:
    (folder / "model.tflite").write_bytes(model.bytes(["y"]))
    return load_net_from_model(folder / "model.tflite")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (one_op("MAX_POOL_2D", "Pool2D", **POOL, Padding=-1), "its Padding is -1, which TFLite does not define"),
        (one_op("MAX_POOL_2D", "Pool2D", **POOL, FusedActivationFunction=77), "its FusedActivationFunction is 77"),
        (one_op("SOFTMAX", "Softmax", Beta=float("nan")), "its Beta is nan"),
        (one_op("SOFTMAX", "Softmax", Beta=float("inf")), "its Beta is inf"),
        (one_op("LEAKY_RELU", "LeakyRelu", Alpha=float("nan")), "its Alpha is nan"),
        (one_op("RELU", shape=(1, 6, 7, 5)), r"'y' is declared as \[1, 6, 7, 5\], but is \[1, 6, 7, 4\]"),
        (one_op("SPACE_TO_DEPTH", "SpaceToDepth", BlockSize=0), "op 0"),
    ],
)
def test_what_makes_no_sense_is_refused(model: Model, message: str, tmp_path: Path) -> None:
    refused(model, tmp_path, message)


def test_what_only_moves_keeps_its_scale(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("axes", np.array([0, 2, 1, 3], np.int32))
    model.tensor("y", (1, 7, 6, 4), 0.1, -3)
    model.op("TRANSPOSE", ["x", "axes"], ["y"], "Transpose")
    refused(model, tmp_path, r"op 0 \(TRANSPOSE\): the file says of the same integers.* \('x'\) and .* \('y'\)")


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("scales", [(0.05, 0.05, 0.1), (0.05, 0.1, 0.05), (0.1, 0.05, 0.05)])
def test_what_compares_integers_keeps_their_scale(
    kind: str, constant: bool, scales: tuple[float, float, float], tmp_path: Path
) -> None:
    model = Model()
    model.input("x", SHAPE, scales[0], -3)
    if constant:
        model.constant("z", np.zeros(SHAPE, np.int8), scales[1], -3)
    else:
        model.input("z", SHAPE, scales[1], -3)
    model.tensor("y", SHAPE, scales[2], -3)
    model.op(kind, ["x", "z"], ["y"], "MaximumMinimum")
    refused(model, tmp_path, rf"op 0 \({kind}\): the file says of the same integers")


def test_the_largest_keep_their_scale(tmp_path: Path) -> None:
    def largest(scale: float) -> Model:
        model = Model()
        model.input("x", (2, 8), 0.05, -3)
        model.constant("count", np.array(3, np.int32))
        model.tensor("y", (2, 3), scale, -3)
        model.tensor("places", (2, 3), dtype="int32")
        model.op("TOPK_V2", ["x", "count"], ["y", "places"], "TopKV2")
        return model

    refused(largest(0.1), tmp_path, r"op 0 \(TOPK_V2\): the file says of the same integers", "y", "places")
    assert load(largest(0.05), tmp_path).ops


def test_int8_weights_have_no_zero_point(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("w", np.ones((5, 1, 1, 4), np.int8), 0.1, 4)
    model.tensor("y", (1, 6, 7, 5), 0.1, -3)
    model.op("CONV_2D", ["x", "w"], ["y"], "Conv2D", StrideH=1, StrideW=1)
    refused(model, tmp_path, "its int8 weights have a zero point other than 0")


def test_activations_of_16_bits_have_no_zero_point(tmp_path: Path) -> None:
    """TFLite requires 0, but the kernels do not check."""
    model = Model()
    model.inputs.append(model.tensor("x", (1, 8), 0.05, -3, dtype="int16"))
    model.constant("w", np.ones((6, 8), np.int8), 0.1, 0)
    model.tensor("y", (1, 6), 0.1, 2)
    model.op("FULLY_CONNECTED", ["x", "w"], ["y"], "FullyConnected")
    refused(model, tmp_path, "'x' has 16 bits and a zero point other than 0")


def test_resizing_in_two_ways_at_once(tmp_path: Path) -> None:
    model = one_op("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighbor", AlignCorners=True, HalfPixelCenters=True)
    model.constant("size", np.array([6, 7], np.int32))
    model.ops[0][1].append("size")
    refused(model, tmp_path, "aligns corners and takes half pixels")


@pytest.mark.parametrize("target", ["x", "w"])
def test_a_tensor_is_written_once(target: str, tmp_path: Path) -> None:
    model = one_op("RELU")
    model.constant("w", np.zeros(SHAPE, np.int8), 0.05, -3)
    model.ops[0][2][0] = target
    refused(model, tmp_path, f"writes tensor '{target}', which has its value already")


def test_a_strided_slice_with_offsets_equals_litert(tmp_path: Path) -> None:
    model = one_op("STRIDED_SLICE", "StridedSlice", (1, 2, 2, 4), Offset=True)
    for name, values in (("begin", [0, 1, 2, 0]), ("end", [1, 3, 4, 4]), ("steps", [1, 2, 2, 1])):
        model.constant(name, np.array(values, np.int32))
        model.ops[0][1].append(name)
    net = load(model, tmp_path)
    data = np.random.default_rng(1).integers(-128, 128, SHAPE).astype(np.int8)
    (theirs,) = run_litert(tmp_path / "model.tflite", [data])
    np.testing.assert_array_equal(run_reference(net, [data])[0], theirs)


# Scales at the ends of floating point


def quantised_pair(kind: str, scales: tuple[float, float, float]) -> Graph:
    graph = Graph()
    graph.node(kind, [graph.dequantized("x", scales[0], 0), graph.dequantized("z", scales[1], 0)], "r")
    graph.quantized("r", scales[2], 0, "y")
    return graph


@pytest.mark.parametrize("kind", ["Add", "Sub"])
@pytest.mark.parametrize("scales", [(0.05, 3e38, 0.1), (3e38, 3e38, 3e38), (0.1, 0.1, 1e-38), (1.0, 1.0, 1e-6)])
def test_sums_of_scales_far_apart_are_refused(kind: str, scales: tuple[float, float, float], tmp_path: Path) -> None:
    path = saved(quantised_pair(kind, scales).model({"x": (4,), "z": (4,)}, "y"), tmp_path)
    refused_file(path, "its scales .* are too far apart to add|beyond what single precision computes with")


@pytest.mark.parametrize("exponent", [9, 14, 15, 17, 30, 40, 100])
@pytest.mark.parametrize("kind", ["Conv", "Gemm", "MatMul", "Mul"])
def test_huge_factors_saturate(kind: str, exponent: int, tmp_path: Path) -> None:
    """Sums of integers, so large in the output's scale that all except 0 saturate."""
    graph, random = Graph(), np.random.default_rng(exponent)
    shape = {"Conv": (1, 3, 5, 5), "Mul": (2, 6)}.get(kind, (2, 6))
    weights = random.integers(-2, 3, {"Conv": (4, 3, 3, 3), "Mul": (2, 6)}.get(kind, (6, 5))).astype(np.int8)
    graph.constant("w", weights)
    real = graph.dequantized("w", 2.0 ** (exponent // 2), 0)
    graph.node(kind, [graph.dequantized("x", 2.0 ** (exponent - exponent // 2), 0), real], "r")
    graph.quantized("r", 1.0, 0, "y")
    net = load_net_from_model(saved(graph.model({"x": shape}, "y"), tmp_path))
    data = random.integers(-2, 3, shape).astype(np.int8)
    (ours,) = run_reference(net, [data])
    np.testing.assert_array_equal(ours, np.clip(exact(kind, data, weights) * 2**exponent, -128, 127).astype(np.int8))


def exact(kind: str, data: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The op on integers of unlimited size."""
    if kind == "Conv":
        windows = np.lib.stride_tricks.sliding_window_view(data.astype(object), (3, 3), axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows.astype(float), weights.astype(float)).astype(int).astype(object)
    first, second = data.astype(object), weights.astype(object)
    return first * second if kind == "Mul" else first @ second


def test_sums_that_leave_32_bits_are_refused(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("w", np.full((70_000, 1), 127, np.int8))
    graph.node("MatMul", [graph.dequantized("x", 0.1, -128), graph.dequantized("w", 0.1, 0)], "r")
    graph.quantized("r", 1.0, 0, "y")
    path = saved(graph.model({"x": (1, 70_000)}, "y"), tmp_path)
    refused_file(path, "can reach 2,266,950,000, beyond the 32 bits")


# ONNX


def relu(scale: float = 0.1) -> Graph:
    graph = Graph()
    graph.node("Relu", [graph.dequantized("x", scale, 0)], "r")
    graph.quantized("r", scale, 0, "y")
    return graph


def changed(change: Callable[[onnx.ModelProto], Any], folder: Path, graph: Graph | None = None) -> Path:
    model = (graph or relu()).model({"x": SHAPE}, "y")
    change(model)
    return saved(model, folder)


def test_limits_of_onnx(tmp_path: Path) -> None:
    def many_nodes(model: onnx.ModelProto) -> None:
        model.graph.node.extend(helper.make_node("Relu", ["r"], [f"r{number}"]) for number in range(11_000))

    def large_constant(model: onnx.ModelProto) -> None:
        model.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.INT8, dims=[1 << 30]))

    def expanded(model: onnx.ModelProto) -> None:
        shape = helper.make_tensor("s", TensorProto.INT64, [2], [1 << 20, 1 << 20])
        model.graph.initializer.append(shape)
        model.graph.node.append(helper.make_node("ConstantOfShape", ["s"], ["huge"]))

    refused_file(changed(many_nodes, tmp_path), "11,003 ops; npukit reads 10,000 at most")
    refused_file(changed(large_constant, tmp_path), "1,073,741,824 elements; npukit reads 33,554,432 at most")
    refused_file(changed(expanded, tmp_path), "'huge' of shape .* elements; npukit reads 33,554,432 at most")


@pytest.mark.exhaustive
def test_fields_are_counted_before_they_are_parsed(tmp_path: Path) -> None:
    graph = onnx.GraphProto(name="g").SerializeToString() + b"\x0a\x00" * (1 << 20)
    length = bytes(
        [len(graph) & 127 | 128, len(graph) >> 7 & 127 | 128, len(graph) >> 14 & 127 | 128, len(graph) >> 21]
    )
    (tmp_path / "model.onnx").write_bytes(b"\x3a" + length + graph)
    refused_file(tmp_path / "model.onnx", r"fields; npukit reads 1,048,576 at most")


@pytest.mark.parametrize("shape", [[1, 6, 7, 5], [42, 4]])
def test_onnx_results_are_as_declared(shape: list[int], tmp_path: Path) -> None:
    def declare(model: onnx.ModelProto) -> None:
        model.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, shape))

    refused_file(changed(declare, tmp_path), f"'r' is declared as {re.escape(str(shape))}, but is")


def test_an_onnx_attribute_that_nobody_reads_is_at_its_default(tmp_path: Path) -> None:
    graph = Graph()
    graph.constant("w", np.ones((4, 6, 3, 3), np.int8))
    graph.node("Conv", [graph.dequantized("x", 0.1, 0), graph.dequantized("w", 0.1, 0)], "r", kernel_shape=[5, 5])
    graph.quantized("r", 0.1, 0, "y")
    refused_file(changed(lambda _: None, tmp_path, graph), r"attribute kernel_shape is \(5, 5\), not \(3, 3\)")


def test_a_split_into_fewer_parts_than_it_has_outputs(tmp_path: Path) -> None:
    """ONNX's shape inference would end the process."""
    graph = Graph()
    graph.nodes.append(helper.make_node("Split", [graph.dequantized("x", 0.1, 0)], ["a", "b"], axis=3))
    for name in "ab":
        graph.quantized(name, 0.1, 0, f"{name}_q")
    model = graph.model({"x": SHAPE}, "a_q")
    model.opset_import[0].version = 18
    model.graph.node[1].attribute.append(helper.make_attribute("num_outputs", 1))
    refused_file(saved(model, tmp_path), "its attribute num_outputs is 1, not 2")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "a\0b"}, "outside the model's folder"),
        ({"location": "a" * 5000}, "its external data cannot be read: File name too long"),
        ({"location": "/etc/hostname"}, "outside the model's folder"),
        ({"location": "../model.onnx"}, "outside the model's folder"),
        ({"location": "model.onnx", "offset": "-1"}, "its external data cannot be read"),
        ({"location": "model.onnx", "offset": "1000000"}, "are not all in the file 'model.onnx'"),
        ({"location": "model.onnx", "length": "99999999999"}, "are not all in the file 'model.onnx'"),
    ],
)
def test_external_data_that_lead_nowhere(entries: dict[str, str], message: str, tmp_path: Path) -> None:
    def add(model: onnx.ModelProto) -> None:
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[16], data_location=TensorProto.EXTERNAL)
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        model.graph.initializer.append(tensor)

    refused_file(changed(add, tmp_path), message)
