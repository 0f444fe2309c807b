"""A faulty file raises a clear error at once. No file is touched except the model's own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tflite
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx_models import Graph, saved
from tflite_models import Model

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model

SHAPE = (1, 6, 7, 4)


def refused(path: Path, message: str) -> NpukitError:
    with pytest.raises(NpukitError, match=message) as caught:
        load_net_from_model(path)
    assert "\n" not in caught.value.message
    return caught.value


def tflite_file(folder: Path, model: Model, *outputs: str) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(model.bytes(outputs or ("y",)))
    return path


def pooled(**options: Any) -> Model:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    given = {"StrideH": 1, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 3, "Padding": tflite.Padding.SAME, **options}
    model.op("MAX_POOL_2D", ["x"], ["y"], "Pool2D", **given)
    return model


def test_no_such_file(tmp_path: Path) -> None:
    refused(tmp_path / "none.tflite", "cannot read .*none.tflite: No such file")
    refused(tmp_path, "cannot read .*: Is a directory")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.tflite", "model.tflite is not a TFLite model"),
        ("model.onnx", "model.onnx is (damaged, or )?no ONNX model"),
        ("model.h5", "model.h5 is not a model npukit knows"),
    ],
)
@pytest.mark.parametrize("data", [b"", b"hello", b"\x00" * 64, bytes(range(256))])
def test_not_a_model(name: str, message: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    refused(tmp_path / name, message)


def test_every_truncation_of_a_tflite_file(tmp_path: Path) -> None:
    data = pooled().bytes(["y"])
    for length in range(8, len(data), 7):
        (tmp_path / "cut.tflite").write_bytes(data[:length])
        with suppress(NpukitError):
            load_net_from_model(tmp_path / "cut.tflite")


@settings(max_examples=150)
@given(places=st.lists(st.tuples(st.integers(8, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_tflite_bytes(places: list[tuple[int, int]], tmp_path: Path) -> None:
    data = bytearray(pooled().bytes(["y"]))
    for place, value in places:
        data[8 + place % (len(data) - 8)] = value
    (tmp_path / "damaged.tflite").write_bytes(data)
    with suppress(NpukitError):
        load_net_from_model(tmp_path / "damaged.tflite")


@settings(max_examples=60)
@given(places=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_onnx_bytes(places: list[tuple[int, int]], tmp_path: Path) -> None:
    data = bytearray(relu_graph().model({"x": SHAPE}, "y").SerializeToString())
    for place, value in places:
        data[place % len(data)] = value
    (tmp_path / "damaged.onnx").write_bytes(data)
    with suppress(NpukitError):
        load_net_from_model(tmp_path / "damaged.onnx")


def relu_graph(scale: float = 0.1, source: str = "x") -> Graph:
    graph = Graph()
    graph.node("Relu", [graph.dequantized(source, scale, 0)], "r")
    graph.quantized("r", scale, 0, "y")
    return graph


def test_an_op_that_is_not_read(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    model.op("HASHTABLE_LOOKUP", ["x"], ["y"])
    error = refused(tflite_file(tmp_path, model), r"model.tflite: op 0 is HASHTABLE_LOOKUP, which npukit does not read")
    assert "CONV_2D" in error.tries[0]


def test_a_recurrent_layer_of_tflite_and_the_way_out(tmp_path: Path) -> None:
    model = Model()
    model.input("x", (1, 4, 5), 0.05)
    model.tensor("y", (1, 4, 6), 0.05, -3)
    model.op("BIDIRECTIONAL_SEQUENCE_LSTM", ["x"], ["y"])
    error = refused(tflite_file(tmp_path, model), "op 0 is BIDIRECTIONAL_SEQUENCE_LSTM, whose state has 16 bits")
    assert any("unroll=True" in way for way in error.tries)


@pytest.mark.parametrize("name", ["\x1b[2Jgone", "a" * 5000, "x\u202ey"])
def test_names_in_messages_are_plain(name: str, tmp_path: Path) -> None:
    error = refused(saved(relu_graph(0.0, name).model({name: SHAPE}, "y"), tmp_path), "scale is zero")
    assert error.message.isprintable()
    assert len(error.message) < 1100


def test_a_float_model_names_its_first_op_and_the_way_out(tmp_path: Path) -> None:
    model = Model()
    model.inputs.append(model.tensor("x", SHAPE, dtype="float32"))
    model.tensor("y", SHAPE, dtype="float32")
    model.op("LOGISTIC", ["x"], ["y"])
    error = refused(tflite_file(tmp_path, model), "model is a float model: its first op, sigmoid, has no int8")
    assert any("quantize_static" in way for way in error.tries)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scales_that_are_no_scales(scale: float, tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, scale, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    model.op("RELU", ["x"], ["y"])
    refused(tflite_file(tmp_path, model), "tensor 'x' has a scale that is zero, negative or not a number")
    refused(saved(relu_graph(scale).model({"x": SHAPE}, "y"), tmp_path), "scale is zero, negative or not a number")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, -6, 7, 4), "tensor 'x' has the impossible shape"),
        ((1, 2**20, 2**20, 4), "'x' of shape .* elements; npukit reads"),
    ],
)
def test_impossible_shapes(shape: tuple[int, ...], message: str, tmp_path: Path) -> None:
    model = Model()
    model.input("x", shape, 0.05, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    model.op("RELU", ["x"], ["y"])
    refused(tflite_file(tmp_path, model), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"StrideH": 0}, r"op 0 \(MAX_POOL_2D\): its stride is 0 x 1"),
        ({"FilterHeight": 0}, "op 0"),
        ({"FilterHeight": -5}, "op 0"),
        ({"FilterHeight": 2**30, "Padding": tflite.Padding.VALID}, "op 0|impossible|fit"),
    ],
)
def test_nonsense_options(options: dict[str, int], message: str, tmp_path: Path) -> None:
    refused(tflite_file(tmp_path, pooled(**options)), message)


def test_an_op_that_reads_what_comes_later(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, 0.05, -3)
    model.tensor("z", SHAPE, 0.05, -3)
    model.op("RELU", ["z"], ["y"])
    model.op("RELU", ["y"], ["z"])
    refused(tflite_file(tmp_path, model, "z"), r"op 0 \(RELU\) reads 'z' before anything writes it")


def test_a_cyclic_onnx_graph(tmp_path: Path) -> None:
    graph = Graph()
    graph.node("Add", ["x", "b"], "a")
    graph.node("Relu", ["a"], "b")
    graph.node("Identity", ["b"], "y")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(graph.nodes, "g", ends[:1], ends[1:]), ir_version=8)
    refused(saved(model, tmp_path), "not a valid ONNX model: .*topologically")


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "inner/../../secret.bin"])
def test_external_data_stays_in_the_folder(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\x00" * 64)
    refused(external_model(folder, location), "'w' keeps its data outside the model's folder")


def test_a_link_out_of_the_folder_is_outside_too(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"\x00" * 64)
    (folder / "weights.bin").symlink_to(tmp_path / "secret.bin")
    refused(external_model(folder, "weights.bin"), "'w' keeps its data outside the model's folder")


def test_external_data_that_is_missing(tmp_path: Path) -> None:
    refused(external_model(tmp_path, "weights.bin"), "the file 'weights.bin' with the data of 'w' is missing")


def external_model(folder: Path, location: str) -> Path:
    graph = relu_graph()
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[16], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    model = graph.model({"x": SHAPE}, "y")
    model.graph.initializer.append(tensor)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def test_external_data_in_the_folder_is_read(tmp_path: Path) -> None:
    path = saved(relu_graph().model({"x": SHAPE}, "y"), tmp_path)
    onnx.save(onnx.load(path), tmp_path / "split.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert (
        str(load_net_from_model(tmp_path / "split.onnx")).splitlines()[1:]
        == str(load_net_from_model(path)).splitlines()[1:]
    )


def test_open_shapes_are_asked_for_and_then_closed(tmp_path: Path) -> None:
    path = saved(relu_graph().model({"x": ("batch", "height", 7, 4)}, "y"), tmp_path)
    error = refused(path, r"input 'x' has the open shape 1x\?x7x4")
    assert "--input x:1x?x7x4" in error.tries[0]
    assert load_net_from_model(path, input_shapes={"x": (2, 6, 7, 4)}).tensor("x").shape == (2, 6, 7, 4)
    with pytest.raises(NpukitError, match=r"input 'x' is \?x\?x7x4, not 1x6x7x5"):
        load_net_from_model(path, input_shapes={"x": (1, 6, 7, 5)})
    with pytest.raises(NpukitError, match=r"model.onnx has no input 'z'"):
        load_net_from_model(path, input_shapes={"z": (1, 6, 7, 5)})


def test_an_open_batch_is_one_unless_it_is_given(tmp_path: Path) -> None:
    model = Model()
    model.input("x", (-1, 6, 7, 4), 0.05, -3)
    model.tensor("y", (-1, 6, 7, 4), 0.03, -3)
    model.op("RELU", ["x"], ["y"])
    path = tflite_file(tmp_path, model)
    assert load_net_from_model(path).tensor("x").shape == (1, 6, 7, 4)
    assert load_net_from_model(path, input_shapes={"x": (3, 6, 7, 4)}).tensor("x").shape == (3, 6, 7, 4)


def test_an_onnx_op_that_is_not_read(tmp_path: Path) -> None:
    graph = relu_graph()
    model = graph.model({"x": SHAPE}, "y")
    model.graph.node.append(helper.make_node("Frobnicate", ["y"], ["z"], domain="my.company"))
    model.opset_import.append(helper.make_opsetid("my.company", 1))
    refused(saved(model, tmp_path), r"node 3 .* is Frobnicate of my\.company, which npukit does not read")


def test_a_hostile_name_harms_nobody(tmp_path: Path) -> None:
    model = Model()
    model.input("*/ int x; /*\n\x00../..", SHAPE, 0.05, -3)
    model.tensor("y", SHAPE, 0.03, -3)
    model.op("RELU", ["*/ int x; /*\n\x00../.."], ["y"])
    net = load_net_from_model(tflite_file(tmp_path, model))
    assert len(str(net).splitlines()) == 5
    assert net.inputs == ("input_int_x",)


def test_too_large_a_constant_is_not_believed(tmp_path: Path) -> None:
    model = Model()
    model.input("x", SHAPE, 0.05, -3)
    model.constant("w", np.zeros((4, 4), np.int8), 0.1)
    object.__setattr__(model.entries[-1], "shape", (4, 400))
    model.tensor("y", (1, 6, 7, 4), 0.05, -3)
    model.op("FULLY_CONNECTED", ["x", "w", ""], ["y"], "FullyConnected")
    refused(tflite_file(tmp_path, model), r"damaged: .*a constant of shape \[4, 400\] has 16 bytes")


def test_keras_files_are_told_how_to_be_converted(tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_bytes(b"PK")
    with pytest.raises(NpukitError, match="is not a model npukit knows") as raised:
        load_net_from_model(tmp_path / "model.keras")
    assert "from_keras_model" in raised.value.tries[0]
