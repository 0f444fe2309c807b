"""TFLite ops without a kernel in npukit: in float against LiteRT, in int8 against real numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from tflite_models import Model, both_directions, lstm_model, rnn_model, run_litert

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.net.reference import evaluate, run_reference
from npukit.quantize.models import load_model

SHAPE = (2, 3, 4)


def real_input(model: Model, name: str, shape: tuple[int, ...] = SHAPE) -> str:
    model.inputs.append(name)
    return model.tensor(name, shape, dtype="float32")


def in_float(
    model: Model, folder: Path, *inputs: np.ndarray, kernels: str = "BUILTIN_REF", outputs: Sequence[str] = ("y",)
) -> None:
    """Checks the outputs against LiteRT's, up to the last digits of functions."""
    path = folder / "model.tflite"
    path.write_bytes(model.bytes(outputs))
    results = run_reference(load_model(path, in_float=True).net, list(inputs))
    for got, expected in zip(results, run_litert(path, inputs, kernels), strict=True):
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def reals(seed: int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-4, 4, shape).astype(np.float32)


REAL = {"CEIL": np.ceil, "COS": np.cos, "FLOOR": np.floor, "ROUND": np.rint, "SIGN": np.sign, "SIN": np.sin}


def test_functions(tmp_path: Path) -> None:
    model, path, data = Model(), tmp_path / "model.tflite", reals(1)
    real_input(model, "x")
    for code in REAL:
        model.op(code, ["x"], [model.tensor(code, SHAPE, dtype="float32")])
    path.write_bytes(model.bytes(list(REAL)))
    for function, got in zip(REAL.values(), run_reference(load_model(path, in_float=True).net, [data]), strict=True):
        np.testing.assert_allclose(got, function(data), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("code", "table"), [("POW", "Pow"), ("ADD_N", "AddN"), ("FLOOR_DIV", "FloorDiv"), ("FLOOR_MOD", "FloorMod")]
)
def test_two_operands(code: str, table: str, tmp_path: Path) -> None:
    model = Model()
    names = [real_input(model, name) for name in "ab"]
    model.op(code, names, [model.tensor("y", SHAPE, dtype="float32")], table)
    in_float(model, tmp_path, np.abs(reals(2)), reals(3))


@pytest.mark.parametrize(("code", "table"), [("MAXIMUM", "MaximumMinimum"), ("MINIMUM", "MaximumMinimum")])
def test_the_extreme_of_a_single_number_is_limited(code: str, table: str, tmp_path: Path) -> None:
    """TVM's C for a running maximum must not keep the value before the first step."""
    model = Model()
    names = [real_input(model, "x", (4, 1)), model.constant("axis", np.array([1], np.int32))]
    model.op(f"REDUCE_{code[:3]}", names, [model.tensor("m", (4,), dtype="float32")], "Reducer")
    model.constant("zero", np.zeros(1, np.float32))
    model.op(code, ["m", "zero"], [model.tensor("y", (4,), dtype="float32")], table)
    in_float(model, tmp_path, np.array([[-2], [3], [0.5], [-1]], np.float32))


@pytest.mark.parametrize("length", [3, 200])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(exclusive: bool, reverse: bool, length: int, tmp_path: Path) -> None:
    model, shape = Model(), (2, length, 4)
    names = [real_input(model, "x", shape), model.constant("axis", np.array(1, np.int32))]
    options = {"Exclusive": exclusive, "Reverse": reverse}
    model.op("CUMSUM", names, [model.tensor("y", shape, dtype="float32")], "Cumsum", **options)
    in_float(model, tmp_path, np.round(reals(4, shape)))


def test_angles_of_points(tmp_path: Path) -> None:
    model, values = Model(), np.array([-2, -0.5, 0, 0.5, 3], np.float32)
    names = [real_input(model, name, (5, 5)) for name in "ab"]
    model.op("ATAN2", names, [model.tensor("y", (5, 5), dtype="float32")])
    in_float(model, tmp_path, *map(np.ascontiguousarray, np.meshgrid(values, values)))


@pytest.mark.parametrize("radius", [1, 3, 9])
def test_channels_divided_by_their_neighbours(radius: int, tmp_path: Path) -> None:
    """LiteRT's reference kernel leaves out the last neighbour."""
    model, shape = Model(), (1, 2, 3, 8)
    names, options = [real_input(model, "x", shape)], {"Radius": radius, "Bias": 2.0, "Alpha": 0.3, "Beta": 0.75}
    result = [model.tensor("y", shape, dtype="float32")]
    model.op("LOCAL_RESPONSE_NORMALIZATION", names, result, "LocalResponseNormalization", **options)
    in_float(model, tmp_path, reals(6, shape), kernels="BUILTIN")


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize(("indices", "parts"), [([[5], [1], [5]], (3, 2)), ([[[1, 0]], [[4, 1]]], (2, 1))])
def test_values_at_places(indices: Any, parts: tuple[int, ...], fixed: bool, dtype: str, tmp_path: Path) -> None:
    """Values of the same place add up."""
    model, places = Model(), np.array(indices, np.int32)
    if fixed:
        model.constant("i", places)
    else:
        model.inputs.append(model.tensor("i", places.shape, dtype="int32"))
    model.inputs.append(model.tensor("x", parts, dtype=dtype))
    model.constant("shape", np.array([6, 2], np.int32))
    model.op("SCATTER_ND", ["i", "x", "shape"], [model.tensor("z", (6, 2), dtype=dtype)])
    model.op("CAST", ["z"], [model.tensor("y", (6, 2), dtype="float32")], "Cast")
    in_float(model, tmp_path, *([] if fixed else [places]), np.round(reals(7, parts)).astype(dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64"])
def test_integers_backwards(dtype: str, tmp_path: Path) -> None:
    model = Model(inputs=["x"])
    model.tensor("x", SHAPE, dtype=dtype)
    for name, values in (("begin", [-1, -1, 0]), ("end", [-9, -9, 4]), ("steps", [-1, -2, 3])):
        model.constant(name, np.array(values, np.int32))
    model.op(
        "STRIDED_SLICE", ["x", "begin", "end", "steps"], [model.tensor("y", (2, 2, 2), dtype=dtype)], "StridedSlice"
    )
    path, data = tmp_path / "model.tflite", np.random.default_rng(1).integers(0, 2, SHAPE).astype(dtype)
    path.write_bytes(model.bytes(["y"]))
    np.testing.assert_array_equal(run_reference(load_model(path).net, [data])[0], run_litert(path, [data])[0])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_place_of_the_largest_of_int16(dtype: str, tmp_path: Path) -> None:
    """No runtime of TFLite has a kernel."""
    model, result = Model(inputs=["x"]), (SHAPE[0], SHAPE[2])
    model.tensor("x", SHAPE, 0.01, dtype="int16")
    model.constant("axis", np.array(1, np.int32))
    kind = tflite.TensorType.INT32 if dtype == "int32" else tflite.TensorType.INT64
    model.op("ARG_MAX", ["x", "axis"], [model.tensor("y", result, dtype=dtype)], "ArgMax", OutputType=kind)
    path, data = tmp_path / "model.tflite", np.random.default_rng(1).integers(-9000, 9000, SHAPE).astype(np.int16)
    path.write_bytes(model.bytes(["y"]))
    np.testing.assert_array_equal(run_reference(load_model(path).net, [data])[0], data.argmax(1))


def test_sums_of_segments(tmp_path: Path) -> None:
    model = Model()
    names = [real_input(model, "x", (5, 3)), model.constant("s", np.array([0, 0, 1, 2, 2], np.int32))]
    model.op("SEGMENT_SUM", names, [model.tensor("y", (3, 3), dtype="float32")])
    in_float(model, tmp_path, reals(8, (5, 3)), kernels="BUILTIN")


@pytest.mark.parametrize(("padding", "sides"), [(tflite.Padding.SAME, (6, 3, 3)), (tflite.Padding.VALID, (7, 4, 5))])
def test_a_transposed_convolution_of_volumes(padding: int, sides: tuple[int, int, int], tmp_path: Path) -> None:
    model, result = Model(), (1, *sides, 2)
    names = [model.constant("shape", np.array(result, np.int32)), model.constant("w", reals(9, (3, 2, 3, 2, 4)))]
    names.append(real_input(model, "x", (1, 3, 3, 3, 4)))
    options = {"Padding": padding, "StrideD": 2, "StrideH": 1, "StrideW": 1}
    model.op("CONV_3D_TRANSPOSE", names, [model.tensor("y", result, dtype="float32")], "Conv3D", **options)
    in_float(model, tmp_path, reals(10, (1, 3, 3, 3, 4)))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_rows(axis: int, tmp_path: Path) -> None:
    model, result = Model(), {0: (7, 2, 3), 1: (2, 7, 3), -1: (2, 3, 7)}[axis]
    model.inputs.append(model.tensor("x", (2, 3), dtype="int32"))
    for name, value in (("depth", np.array(7, np.int32)), ("on", np.float32(2.5)), ("off", np.float32(-1))):
        model.constant(name, np.array(value))
    names = ["x", "depth", "on", "off"]
    model.op("ONE_HOT", names, [model.tensor("y", result, dtype="float32")], "OneHot", Axis=axis)
    in_float(model, tmp_path, np.array([[0, 6, 3], [9, -1, 2]], np.int32))


@pytest.mark.parametrize(("code", "keeps"), [("REDUCE_ANY", True), ("REDUCE_ALL", False)])
def test_truths_over_an_axis(code: str, keeps: bool, tmp_path: Path) -> None:
    model, result = Model(), (2, 1, 4) if keeps else (2, 4)
    real_input(model, "x")
    model.constant("zero", np.zeros(1, np.float32))
    model.constant("axis", np.array([1], np.int32))
    model.op("GREATER", ["x", "zero"], [model.tensor("above", SHAPE, dtype="bool")], "Greater")
    model.op(code, ["above", "axis"], [model.tensor("found", result, dtype="bool")], "Reducer", KeepDims=keeps)
    model.op("CAST", ["found"], [model.tensor("y", result, dtype="float32")], "Cast")
    in_float(model, tmp_path, reals(5))


@pytest.mark.parametrize("places", [(2, 3), (2, 2, 2)])
def test_places_of_each_batch(places: tuple[int, ...], tmp_path: Path) -> None:
    model, result = Model(), (*places, 4)
    model.inputs.append(model.tensor("at", places, dtype="int32"))
    real_input(model, "x")
    model.op("GATHER", ["x", "at"], [model.tensor("y", result, dtype="float32")], "Gather", Axis=1, BatchDims=1)
    at = np.random.default_rng(8).integers(0, 3, places, np.int32)
    in_float(model, tmp_path, at, reals(6))


@pytest.mark.parametrize("padding", [tflite.Padding.SAME, tflite.Padding.VALID])
def test_a_convolution_of_volumes(padding: int, tmp_path: Path) -> None:
    model, sides = Model(), (3, 3, 4) if padding == tflite.Padding.SAME else (2, 2, 2)
    real_input(model, "x", (1, 5, 6, 4, 2))
    model.constant("w", reals(2, (3, 3, 3, 2, 5)))
    model.constant("b", reals(3, (5,)))
    options = {"Padding": padding, "StrideD": 2, "StrideH": 2, "StrideW": 1}
    options |= {f"Dilation{axis}Factor": 1 for axis in "DHW"}
    model.op("CONV_3D", ["x", "w", "b"], [model.tensor("y", (1, *sides, 5), dtype="float32")], "Conv3D", **options)
    in_float(model, tmp_path, reals(1, (1, 5, 6, 4, 2)))


@pytest.mark.parametrize("version", [4, 5])
def test_boxes_of_little_overlap(version: int, tmp_path: Path) -> None:
    """Results beyond the count are 0."""
    model, random = Model(), np.random.default_rng(7)
    corners = random.uniform(0, 1, (20, 2, 2)).astype(np.float32)
    boxes = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
    names = [real_input(model, "boxes", (20, 4)), real_input(model, "scores", (20,))]
    for name, value in (("most", np.int32(12)), ("common", np.float32(0.2)), ("least", np.float32(0.5))):
        names.append(model.constant(name, np.array(value)))
    results = {"places": ((12,), "int32"), "kept": ((12,), "float32"), "count": ((), "int32")}
    if version == 4:
        del results["kept"]
    else:
        names.append(model.constant("soft", np.array(0, np.float32)))
    outputs = [model.tensor(name, shape, dtype=dtype) for name, (shape, dtype) in results.items()]
    model.op(f"NON_MAX_SUPPRESSION_V{version}", names, outputs)
    path, inputs = tmp_path / "model.tflite", [boxes, random.uniform(0, 1, 20).astype(np.float32)]
    path.write_bytes(model.bytes(outputs))
    found = run_reference(load_model(path, in_float=True).net, inputs)
    for got, wanted in zip(found, run_litert(path, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert 0 < found[-1] < 12


def test_parts_of_no_elements(tmp_path: Path) -> None:
    model = Model()
    real_input(model, "x")
    model.constant("sizes", np.array([0, 3, 0], np.int32))
    model.constant("axis", np.array(1, np.int32))
    model.constant("none", np.zeros((2, 0, 4), np.float32))
    parts = [model.tensor(name, (2, size, 4), dtype="float32") for name, size in (("a", 0), ("b", 3), ("c", 0))]
    model.op("SPLIT_V", ["x", "sizes", "axis"], parts, "SplitV", NumSplits=3)
    joined = ["none", *parts, "b"]
    model.op("CONCATENATION", joined, [model.tensor("y", (2, 6, 4), dtype="float32")], "Concatenation", Axis=1)
    in_float(model, tmp_path, reals(1))


@pytest.mark.parametrize("quantised", [False, True])
def test_a_constant_output(quantised: bool, tmp_path: Path) -> None:
    """As the anchors of a detector."""
    model, path = Model(), tmp_path / "model.tflite"
    real_input(model, "x")
    model.op("RELU", ["x"], [model.tensor("y", SHAPE, dtype="float32")])
    anchors = model.constant("anchors", reals(2, (5, 4)))
    path.write_bytes(model.bytes([anchors, "y"]))
    np.savez(tmp_path / "samples.npz", in0=reals(3, (20, *SHAPE)))
    samples = tmp_path / "samples.npz" if quantised else None
    net = load_model(path, calibration=samples, in_float=not quantised).net
    values = [each.astype(np.int8) if quantised else each for each in [np.round(reals(1))]]
    assert np.array_equal(run_reference(net, values)[0], reals(2, (5, 4)))


@pytest.mark.parametrize("code", ["FLOOR_DIV", "FLOOR_MOD"])
def test_divisions_of_whole_numbers_go_down(code: str, tmp_path: Path) -> None:
    model, random = Model(), np.random.default_rng(6)
    names = [model.tensor(name, (40,), dtype="int32") for name in "ab"]
    model.inputs += names
    model.op(code, names, [model.tensor("y", (40,), dtype="int32")])
    path, inputs = (
        tmp_path / "model.tflite",
        [random.integers(-50, 50, 40, np.int32), -random.integers(1, 9, 40, np.int32)],
    )
    path.write_bytes(model.bytes(["y"]))
    assert np.array_equal(run_reference(load_net_from_model(path), inputs), run_litert(path, inputs))


def test_what_shapes_say_is_folded(tmp_path: Path) -> None:
    """Exporters leave ranks, fills and ranges of integers in models."""
    model = Model()
    real_input(model, "x")
    for name, value in (("begin", 1), ("step", 1), ("none", 0), ("axis", 2)):
        model.constant(name, np.array(value, np.int32))
    model.constant("one", np.array([1], np.int32))
    for name, shape in (("rank", ()), ("axes", (2,)), ("count", (1,))):
        model.tensor(name, shape, dtype="int32")
    model.op("RANK", ["x"], ["rank"])
    model.op("RANGE", ["begin", "rank", "step"], ["axes"])
    model.op("REDUCE_PROD", ["x", "axes"], [model.tensor("products", (2,), dtype="float32")], "Reducer")
    model.op("FILL", ["one", "axis"], ["count"])
    model.op("TILE", ["products", "count"], [model.tensor("twice", (4,), dtype="float32")])
    model.op("ZEROS_LIKE", ["twice"], [model.tensor("zeros", (4,), dtype="float32")])
    model.op("ADD", ["twice", "zeros"], [model.tensor("y", (4,), dtype="float32")], "Add")
    in_float(model, tmp_path, reals(7))


def test_an_embedding(tmp_path: Path) -> None:
    model = Model()
    model.inputs.append(model.tensor("indices", (5,), dtype="int32"))
    model.constant("table", reals(5, (7, 4)))
    model.op("EMBEDDING_LOOKUP", ["indices", "table"], [model.tensor("y", (5, 4), dtype="float32")])
    in_float(model, tmp_path, np.array([0, 6, 3, 3, 1], np.int32))


def test_places_that_come_from_outside(tmp_path: Path) -> None:
    model = Model()
    real_input(model, "x")
    model.inputs.append(model.tensor("indices", (2, 2), dtype="int32"))
    model.op("GATHER_ND", ["x", "indices"], [model.tensor("y", (2, 4), dtype="float32")], "GatherNd")
    in_float(model, tmp_path, reals(10), np.array([[1, 2], [0, 1]], np.int32))


@pytest.mark.parametrize("code", ["COMPLEX_ABS", "IMAG", "REAL"])
@pytest.mark.parametrize(("shape", "lengths"), [((3, 1, 12), (1, 16)), ((8, 16), (8, 8)), ((2, 4, 8), (4, 8))])
def test_a_fourier_transform(code: str, shape: tuple[int, ...], lengths: tuple[int, int], tmp_path: Path) -> None:
    """Data are cut, or go on with zeros. Between the transform and its parts a reshape removes an axis."""
    model, found = Model(), (*shape[:-2], lengths[0], lengths[1] // 2 + 1)
    real_input(model, "x", shape)
    model.constant("lengths", np.array(lengths, np.int32))
    model.op("RFFT2D", ["x", "lengths"], [model.tensor("pairs", found, dtype="complex64")], "Rfft2d")
    flat = (*found[:-2], found[-2] * found[-1])
    model.constant("shape", np.array(flat, np.int32))
    model.op("RESHAPE", ["pairs", "shape"], [model.tensor("flat", flat, dtype="complex64")])
    model.op(code, ["flat"], [model.tensor("y", flat, dtype="float32")])
    in_float(model, tmp_path, reals(11, shape))


@pytest.mark.parametrize(("code", "result"), [("NEG", "y"), ("", "pairs")])
def test_other_uses_of_complex_numbers_are_refused(code: str, result: str, tmp_path: Path) -> None:
    model, path = Model(), tmp_path / "model.tflite"
    real_input(model, "x", (1, 8))
    model.constant("lengths", np.array([1, 8], np.int32))
    model.op("RFFT2D", ["x", "lengths"], [model.tensor("pairs", (1, 5), dtype="complex64")], "Rfft2d")
    if code:
        model.op(code, ["pairs"], [model.tensor("y", (1, 5), dtype="complex64")])
    path.write_bytes(model.bytes([result]))
    with pytest.raises(NpukitError, match="'pairs' has complex numbers"):
        load_model(path, in_float=True)


@pytest.mark.parametrize("time_major", [False, True])
def test_an_lstm(time_major: bool, tmp_path: Path) -> None:
    model, shape = lstm_model(time_major=time_major, clip=0.3)
    in_float(model, tmp_path, reals(11, shape))


@pytest.mark.parametrize("time_major", [False, True])
def test_an_lstm_of_one_step_goes_on_from_frame_to_frame(time_major: bool, tmp_path: Path) -> None:
    """LiteRT never resets variable tensors."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT, an oracle, is not installed")
    model, shape = lstm_model(time_major=time_major, steps=1)
    path, values = tmp_path / "model.tflite", None
    path.write_bytes(model.bytes(["y"]))
    net, oracle = load_model(path, in_float=True).net, interpreter.Interpreter(str(path))
    oracle.allocate_tensors()
    assert len(net.states) == 2
    for seed in range(4):
        frame = reals(seed, shape)
        oracle.set_tensor(oracle.get_input_details()[0]["index"], frame)
        oracle.invoke()
        values = evaluate(net, [frame], values)
        wanted = oracle.get_tensor(oracle.get_output_details()[0]["index"])
        np.testing.assert_allclose(values[net.outputs[0]], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("merged", "time_major"), [(True, False), (False, True)])
@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_a_layer_in_both_directions(kind: str, merged: bool, time_major: bool, tmp_path: Path) -> None:
    model = both_directions(kind, merged=merged, time_major=time_major)
    in_float(model, tmp_path, reals(11, model.entries[0].shape), outputs=["y"] if merged else ["y", "z"])


def test_an_auxiliary_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(both_directions("LSTM", merged=True, auxiliary=True).bytes(["y"]))
    with pytest.raises(NpukitError, match="it has an auxiliary input"):
        load_model(path, in_float=True)


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "TANH"])
def test_a_plain_recurrent_layer(activation: str, tmp_path: Path) -> None:
    model = rnn_model(getattr(tflite.ActivationFunctionType, activation))
    in_float(model, tmp_path, reals(11, (2, 4, 5)))


@pytest.mark.parametrize(("steps", "count"), [(5, 1), (1, 0)])
def test_the_user_is_told_of_a_state_that_begins_anew(steps: int, count: int, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(lstm_model(steps=steps)[0].bytes(["y"]))
    remarks = load_model(path, in_float=True).remarks
    assert len(remarks) == count
    assert all("its state is zero at the begin of each frame" in remark for remark in remarks)


@pytest.mark.parametrize(
    ("place", "shape", "said"),
    [(9, (3,), "peepholes"), (16, (2, 3), "a projection"), (20, (3,), "it normalises its gates")],
)
def test_an_lstm_with_more_is_refused(place: int, shape: tuple[int, ...], said: str, tmp_path: Path) -> None:
    model, path = lstm_model()[0], tmp_path / "model.tflite"
    model.ops[0][1][place] = model.constant("more", reals(12, shape))
    path.write_bytes(model.bytes(["y"]))
    with pytest.raises(NpukitError, match=said):
        load_model(path, in_float=True)


@pytest.mark.parametrize(
    ("code", "logical"), [("GREATER_EQUAL", "LOGICAL_AND"), ("LESS", "LOGICAL_OR"), ("NOT_EQUAL", "LOGICAL_AND")]
)
def test_choices(code: str, logical: str, tmp_path: Path) -> None:
    """Selects the first operand where a comparison and a negated comparison combine to true, else the second."""
    model, table = Model(), "".join(part.capitalize() for part in code.split("_"))
    first, second = (real_input(model, name) for name in "ab")
    for name in ("below", "never", "above", "taken"):
        model.tensor(name, SHAPE, dtype="bool")
    model.op(code, [first, second], ["below"], table)
    model.op("LESS", [second, model.constant("limit", np.full(SHAPE, 1, np.float32))], ["never"], "Less")
    model.op("LOGICAL_NOT", ["never"], ["above"], "LogicalNot")
    model.op(logical, ["below", "above"], ["taken"], "".join(part.capitalize() for part in logical.split("_")))
    model.op("SELECT", ["taken", first, second], [model.tensor("y", SHAPE, dtype="float32")], "Select")
    in_float(model, tmp_path, np.round(reals(6)), np.round(reals(7)))


def in_int8(code: str, table: str, constant: Any, shape: tuple[int, ...], folder: Path) -> tuple[np.ndarray, ...]:
    """The real numbers of the input and of the result."""
    model = Model()
    model.input("x", (1, 3, 4), 0.05, -3)
    model.constant("c", np.array(constant, np.int32))
    model.op(code, ["x", "c"], [model.tensor("y", shape, 0.1, 5)], table)
    path, data = folder / "model.tflite", np.random.default_rng(8).integers(-128, 128, (1, 3, 4), np.int8)
    path.write_bytes(model.bytes(["y"]))
    (got,) = run_reference(load_net_from_model(path), [data])
    return (data + 3.0) * 0.05, (got - 5.0) * 0.1


def test_sums_are_rounded_from_real_numbers(tmp_path: Path) -> None:
    """LiteRT's own sums wrap around on overflow."""
    data, got = in_int8("SUM", "Reducer", [1], (1, 4), tmp_path)
    assert np.abs(got - np.clip(data.sum(axis=1), -13.3, 12.2)).max() <= 0.0501


def test_broadcasts(tmp_path: Path) -> None:
    data, got = in_int8("BROADCAST_TO", "BroadcastTo", [2, 3, 4], (2, 3, 4), tmp_path)
    assert np.abs(got - np.broadcast_to(data, got.shape)).max() <= 0.0501


def test_log_softmax_is_rounded_from_real_numbers(tmp_path: Path) -> None:
    """LiteRT's own results are up to 4 off near -16."""
    model, path = Model(), tmp_path / "model.tflite"
    model.input("x", (40, 9), 0.1, -3)
    model.op("LOG_SOFTMAX", ["x"], [model.tensor("y", (40, 9), 1 / 16, 127)], "LogSoftmax")
    path.write_bytes(model.bytes(["y"]))
    data = np.random.default_rng(9).integers(-128, 128, (40, 9), np.int8)
    (got,) = run_reference(load_net_from_model(path), [data])
    real = (data + 3.0) * 0.1
    real = real - np.log(np.exp(real).sum(axis=1, keepdims=True))
    assert np.abs(got - np.clip(real * 16 + 127, -128, 127)).max() <= 0.5 + 1e-3
