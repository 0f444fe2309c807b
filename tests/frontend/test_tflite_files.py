"""TFLite files as written by converters of different ages and settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import flexbuffers
from tflite_models import LSTM_SCALES, LSTM_UNITS, LSTM_WIDTH, Model, int8_lstm, ring, run_litert

from npukit.errors import NpukitError
from npukit.frontend.models import load_net_from_model
from npukit.net.ops import TvmCode
from npukit.net.reference import evaluate, run_reference
from npukit.quantize.models import load_model

VALID = tflite.Padding.VALID


def convolution(bias_axis: int) -> bytes:
    """A convolution with scales by channel. `bias_axis`: the axis that its converter states for the bias."""
    model, random = Model(), np.random.default_rng(5)
    scales = random.uniform(0.001, 0.01, 4).astype(np.float32)
    model.input("x", (1, 5, 5, 3), 0.05, -3)
    model.constant("w", random.integers(-128, 128, (4, 3, 3, 3), np.int8), scales)
    biases = random.integers(-2000, 2000, 4, np.int32)
    model.constant("b", biases, scales * np.float32(0.05), axis=bias_axis)
    model.tensor("y", (1, 3, 3, 4), 0.06, 7)
    model.op("CONV_2D", ["x", "w", "b"], ["y"], "Conv2D", Padding=VALID, StrideH=1, StrideW=1)
    return model.bytes(["y"])


@pytest.mark.parametrize("axis", [1, 3])
def test_scales_of_a_bias_lie_along_its_one_axis_whatever_the_file_says(axis: int, tmp_path: Path) -> None:
    data, results = np.random.default_rng(6).integers(-128, 128, (1, 5, 5, 3), np.int8), []
    for stated in (0, axis):
        (tmp_path / "model.tflite").write_bytes(convolution(stated))
        results += run_reference(load_net_from_model(tmp_path / "model.tflite"), [data])
    assert np.array_equal(*results)


def test_variables_go_from_frame_to_frame(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(ring(begins=5).bytes(["all"]))
    interpreter, net = litert(path), load_model(path).net
    (state,) = net.states
    assert (net.inputs, state.begins) == (("x",), 5)
    values, random = None, np.random.default_rng(1)
    for _ in range(3):
        frame = random.integers(-128, 128, (1, 1, 3), np.int8)
        values = evaluate(net, [frame], values)
        assert np.array_equal(values[net.outputs[0]], answer(interpreter, frame))


def test_a_variable_that_nothing_changes_is_a_constant(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(ring(begins=-7, changes=False).bytes(["all"]))
    frame, loaded = np.array([[[1, 2, 3]]], np.int8), load_model(path)
    assert not loaded.net.states
    assert np.array_equal(run_reference(loaded.net, [frame])[0], answer(litert(path), frame))


def branched() -> Model:
    """Two functions of x in branches, selected by the first input."""
    model = Model()
    model.inputs += [model.tensor(name, shape, dtype=dtype) for name, shape, dtype in ENDS]
    graphs = []
    for code in ("EXP", "NEG"):
        graph = Model()
        graph.inputs.append(graph.tensor("given", (2, 3), dtype="float32"))
        graph.tensor("made", (2, 3), dtype="float32")
        graph.op(code, ["given"], ["made"])
        graphs.append(model.subgraph(graph, ["made"]))
    model.tensor("y", (2, 3), dtype="float32")
    model.op("IF", ["which", "x"], ["y"], "If", ThenSubgraphIndex=graphs[0], ElseSubgraphIndex=graphs[1])
    return model


ENDS = (("which", (1,), "bool"), ("x", (2, 3), "float32"))


@pytest.mark.parametrize("which", [True, False])
def test_of_two_branches_the_condition_chooses(which: bool, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(branched().bytes(["y"]))
    inputs = [np.array([which]), np.random.default_rng(2).normal(0, 1, (2, 3)).astype(np.float32)]
    net = load_model(path, in_float=True).net
    assert np.allclose(run_reference(net, inputs)[0], answer(litert(path), *inputs), rtol=1e-6)


def test_an_input_that_is_fixed_is_no_input_of_the_network(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(branched().bytes(["y"]))
    given = np.random.default_rng(2).normal(0, 1, (2, 3)).astype(np.float32)
    net = load_model(path, input_shapes={"which": 1.0}, in_float=True).net
    assert np.allclose(run_reference(net, [given])[0], answer(litert(path), np.array([True]), given), rtol=1e-6)


def test_a_branch_that_takes_other_inputs_is_named(tmp_path: Path) -> None:
    model = branched()
    model.graphs[0][0].entries[0] = replace(model.graphs[0][0].entries[0], shape=(3, 2))
    (tmp_path / "model.tflite").write_bytes(model.bytes(["y"]))
    with pytest.raises(NpukitError, match=r"op 0 \(IF\) gives its subgraph other inputs than that takes"):
        load_model(tmp_path / "model.tflite")


def test_branches_within_branches_are_bounded(tmp_path: Path) -> None:
    model = branched()
    for graph, _ in model.graphs:
        graph.entries.append(replace(model.entries[0], name="again"))
        graph.inputs.append("again")
        graph.ops[:] = [
            ("IF", ["again", "given", "again"], ["made"], "If", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})
        ]
    model.ops[0] = ("IF", ["which", "x", "which"], *model.ops[0][2:])
    (tmp_path / "model.tflite").write_bytes(model.bytes(["y"]))
    with pytest.raises(NpukitError, match="branches lie more than 8 deep"):
        load_model(tmp_path / "model.tflite")


def half_precision() -> Model:
    """Weights in float16, as written by the converter, and a transposed convolution."""
    model, random = Model(), np.random.default_rng(9)
    model.inputs.append(model.tensor("x", (1, 4, 5, 3), dtype="float32"))
    for name, shape in (("w", (2, 3, 3, 3)), ("b", (2,))):
        model.constant(f"{name}16", random.normal(0, 1, shape).astype(np.float16))
        model.tensor(name, shape, dtype="float32")
        model.op("DEQUANTIZE", [f"{name}16"], [name])
    model.constant("size", np.array([1, 8, 10, 2], np.int32))
    model.tensor("y", (1, 8, 10, 2), dtype="float32")
    options = {"Padding": tflite.Padding.SAME, "StrideH": 2, "StrideW": 2}
    model.op("TRANSPOSE_CONV", ["size", "w", "x", "b"], ["y"], "TransposeConv", **options)
    return model


def test_weights_in_half_precision(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(half_precision().bytes(["y"]))
    data = np.random.default_rng(2).normal(0, 1, (1, 4, 5, 3)).astype(np.float32)
    net = load_model(path, in_float=True).net
    wanted = answer(litert(path), data)
    assert np.allclose(run_reference(net, [data])[0], wanted, rtol=1e-4, atol=1e-5)
    np.savez(tmp_path / "samples.npz", in0=data[None])
    quantised = load_model(path, calibration=tmp_path / "samples.npz").net
    assert "transpose_conv2d" in {op.kind for op in quantised.ops}
    before, after = (quantised.tensor(name).quantization for name in (quantised.inputs[0], quantised.outputs[0]))
    assert before
    assert after
    given = np.clip(np.rint(data / before.scale) + before.zero_point, -128, 127).astype(np.int8)
    got = (run_reference(quantised, [given])[0].astype(np.float32) - after.zero_point) * after.scale
    assert np.abs(got - wanted).max() < 0.05 * np.abs(wanted).max()


def sixteen_bits(code: str) -> tuple[Model, tuple[int, ...]]:
    """An op on 16-bit activations with 8-bit weights and 64-bit biases."""
    model, random, shape = Model(), np.random.default_rng(7), (1, 5, 6, 4)
    model.inputs.append(model.tensor("x", shape, 0.0003, dtype="int16"))
    model.tensor("y", shape, 0.0002, dtype="int16")
    if code == "CONV_2D":
        scales = random.uniform(0.001, 0.004, 4).astype(np.float32)
        model.constant("w", random.integers(-127, 128, (4, 3, 3, 4), np.int8), scales)
        model.constant("b", random.integers(-90000, 90000, 4, np.int64), scales * np.float32(0.0003))
        model.op(code, ["x", "w", "b"], ["y"], "Conv2D", Padding=tflite.Padding.SAME, StrideH=1, StrideW=1)
    elif code == "MUL":
        model.inputs.append(model.tensor("z", shape, 0.00004, dtype="int16"))
        model.op(code, ["x", "z"], ["y"], "Mul")
    elif code == "QUANTIZE":
        model.tensor("q", shape, 0.07, 3)
        model.op(code, ["x"], ["q"])
        model.op(code, ["q"], ["y"])
    else:
        model.op(code, ["x"], ["y"], "LeakyRelu" if code == "LEAKY_RELU" else "")
    return model, shape


@pytest.mark.parametrize("code", ["CONV_2D", "MUL", "QUANTIZE", "LEAKY_RELU"])
def test_activations_of_sixteen_bits(code: str, tmp_path: Path) -> None:
    path, (model, shape) = tmp_path / "model.tflite", sixteen_bits(code)
    path.write_bytes(model.bytes(["y"]))
    data = [np.random.default_rng(seed).integers(-(1 << 15), 1 << 15, shape, np.int16) for seed in range(2)]
    inputs = data[: len(model.inputs)]
    got, wanted = run_reference(load_net_from_model(path), inputs)[0], answer(litert(path), *inputs)
    assert got.dtype == wanted.dtype == np.int16
    assert np.abs(got.astype(int) - wanted).max() <= 1
    assert np.unique(wanted).size > 30


def test_sixteen_bits_are_moved_as_they_are(tmp_path: Path) -> None:
    """A reshape needs no op; a transposition and a slice are moves. Unchanged values are not computed."""
    model = Model()
    model.inputs.append(model.tensor("x", (1, 5, 6), 0.0003, dtype="int16"))
    for name, shape in (("t", (1, 6, 5)), ("r", (6, 5)), ("y", (3, 5))):
        model.tensor(name, shape, 0.0003, dtype="int16")
    model.constant("axes", np.array([0, 2, 1], np.int32))
    model.constant("shape", np.array([6, 5], np.int32))
    model.constant("begin", np.array([2, 0], np.int32))
    model.constant("size", np.array([3, 5], np.int32))
    model.op("TRANSPOSE", ["x", "axes"], ["t"])
    model.op("RESHAPE", ["t", "shape"], ["r"])
    model.op("SLICE", ["r", "begin", "size"], ["y"])
    path, data = tmp_path / "model.tflite", np.arange(-15, 15, dtype=np.int16).reshape(1, 5, 6)
    path.write_bytes(model.bytes(["y"]))
    net = load_net_from_model(path)
    assert not [op.name for op in net.ops if isinstance(op.attributes, TvmCode)]
    np.testing.assert_array_equal(run_reference(net, [data])[0], answer(litert(path), data))


STEPS = 7
IN, OUT, CELL = LSTM_SCALES


@pytest.mark.parametrize("steps", [STEPS, 1])
def test_an_int8_lstm_keeps_its_state_in_the_types_of_its_tensors(steps: int, tmp_path: Path) -> None:
    """The state lasts over a frame's sequence, or from frame to frame if a frame is a single step."""
    model, real = int8_lstm(steps)
    (tmp_path / "model.tflite").write_bytes(model.bytes(["y"]))
    data = np.random.default_rng(8).integers(-128, 128, (1, STEPS, LSTM_WIDTH), np.int8)
    net, values, found = load_model(tmp_path / "model.tflite").net, None, []
    assert [net.tensor(state.input).dtype for state in net.states] == (["int8", "int16"] if steps == 1 else [])
    for begin in range(0, STEPS, steps):
        values = evaluate(net, [data[:, begin : begin + steps]], values)
        found.append(values[net.outputs[0]])
    got = np.concatenate(found, axis=1)
    hidden, cell, wanted = np.zeros(LSTM_UNITS), np.zeros(LSTM_UNITS), []
    for frame in (data[0] + 4.0) * IN:
        gates = [real[gate] @ frame + real[4 + gate] @ hidden + real[8 + gate] for gate in range(4)]
        taken, kept, given = (1 / (1 + np.exp(-gates[gate])) for gate in (0, 1, 3))
        cell = np.rint((taken * np.tanh(gates[2]) + kept * cell) / CELL) * CELL
        hidden = np.clip(np.rint(given * np.tanh(cell) / OUT), -128, 127) * OUT
        wanted.append(hidden / OUT)
    assert np.abs(got[0] - np.array(wanted)).max() <= 1
    assert np.unique(got).size > 15


def four_bits() -> Model:
    """A dense layer with 4-bit weights."""
    model, random = Model(), np.random.default_rng(7)
    model.input("x", (3, 10), 0.05, -3)
    model.halves("w", random.integers(-7, 8, (5, 10), np.int8), 0.1)
    model.constant("b", random.integers(-300, 300, 5, np.int32), 0.05 * 0.1)
    model.tensor("y", (3, 5), 0.2, 4)
    model.op("FULLY_CONNECTED", ["x", "w", "b"], ["y"], "FullyConnected")
    return model


def test_weights_of_four_bits(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(four_bits().bytes(["y"]))
    data = np.random.default_rng(2).integers(-128, 128, (3, 10), np.int8)
    got, wanted = run_reference(load_net_from_model(path), [data])[0], answer(litert(path), data)
    assert np.abs(got.astype(int) - wanted).max() <= 1, "LiteRT rounds dense layers once, npukit twice"
    assert np.unique(wanted).size > 8


def test_weights_with_a_scale_for_each_block(tmp_path: Path) -> None:
    model, random, path = Model(), np.random.default_rng(7), tmp_path / "model.tflite"
    weights, scales = random.integers(-7, 8, (5, 64), np.int8), random.uniform(0.1, 0.5, (5, 2)).astype(np.float16)
    model.inputs.append(model.tensor("x", (1, 64), dtype="float32"))
    model.op("FULLY_CONNECTED", ["x", model.in_blocks("w", weights, scales, 32), ""], ["y"], "FullyConnected")
    model.tensor("y", (1, 5), dtype="float32")
    path.write_bytes(model.bytes(["y"]))
    data = random.normal(0, 1, (1, 64)).astype(np.float32)
    (got,) = run_reference(load_model(path, in_float=True).net, [data])
    wanted = data @ (weights * np.repeat(scales.astype(np.float32), 32, 1)).T
    assert np.allclose(got, wanted, rtol=1e-5, atol=1e-4)
    assert np.allclose(answer(litert(path, "BUILTIN"), data), wanted, atol=0.3), "LiteRT quantises the data"


def test_a_small_code_of_an_op_may_stand_in_the_newer_field_alone(tmp_path: Path) -> None:
    """AI Edge Quantizer writes DEQUANTIZE so."""
    path, model = tmp_path / "model.tflite", Model()
    model.input("x", (3, 10), 0.05, -3)
    model.tensor("y", (3, 10), dtype="float32")
    model.op("DEQUANTIZE", ["x"], ["y"])
    data = bytearray(model.bytes(["y"]))
    code: Any = tflite.Model.GetRootAs(data).OperatorCodes(0)
    data[code._tab.Pos + code._tab.Offset(4)] = 0
    path.write_bytes(data)
    values = np.random.default_rng(2).integers(-128, 128, (3, 10), np.int8)
    (got,) = run_reference(load_net_from_model(path), [values])
    assert np.array_equal(got, values)


def litert(path: Path, kernels: str = "BUILTIN_REF") -> Any:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT, an oracle, is not installed")
    made = interpreter.Interpreter(
        str(path), experimental_op_resolver_type=interpreter.OpResolverType[kernels], num_threads=1
    )
    made.allocate_tensors()
    return made


def answer(interpreter: Any, *inputs: np.ndarray) -> np.ndarray:
    """The first output for the next frame."""
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def counting(*, known: bool = True) -> Model:
    """A loop that adds four steps of x to a sum. The first step may be an input."""
    model, condition, body = Model(), Model(), Model()
    ends = (("step", (), "int32"), ("sum", (1, 3), "float32"), ("all", (4, 1, 3), "float32"))
    for graph in (condition, body):
        graph.inputs += [graph.tensor(name, shape, dtype=dtype) for name, shape, dtype in ends]
    condition.constant("four", np.array(4, np.int32))
    condition.tensor("goes on", (), dtype="bool")
    condition.op("LESS", ["step", "four"], ["goes on"], "Less")
    body.constant("one", np.array(1, np.int32))
    for name, shape, dtype in (("part", (1, 3), "float32"), ("more", (1, 3), "float32"), ("next", (), "int32")):
        body.tensor(name, shape, dtype=dtype)
    body.op("GATHER", ["all", "step"], ["part"], "Gather", Axis=0)
    body.op("ADD", ["sum", "part"], ["more"], "Add")
    body.op("ADD", ["step", "one"], ["next"], "Add")
    model.inputs.append(model.tensor("x", (4, 1, 3), dtype="float32"))
    if known:
        model.constant("zero", np.array(0, np.int32))
    else:
        model.inputs.append(model.tensor("zero", (), dtype="int32"))
    model.constant("nothing", np.zeros((1, 3), np.float32))
    graphs = model.subgraph(condition, ["goes on"]), model.subgraph(body, ["next", "more", "all"])
    results = [model.tensor(f"{name} behind", shape, dtype=dtype) for name, shape, dtype in ends]
    options = {"CondSubgraphIndex": graphs[0], "BodySubgraphIndex": graphs[1]}
    model.op("WHILE", ["zero", "nothing", "x"], results, "While", **options)
    model.tensor("y", (1, 3), dtype="float32")
    model.op("NEG", ["sum behind"], ["y"])
    return model


def test_a_loop_whose_steps_are_known_is_unrolled(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(counting().bytes(["y"]))
    given = np.random.default_rng(2).normal(0, 1, (4, 1, 3)).astype(np.float32)
    net = load_model(path, in_float=True).net
    assert np.allclose(run_reference(net, [given])[0], answer(litert(path), given), rtol=1e-6)


def test_a_loop_whose_steps_frames_decide_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(counting(known=False).bytes(["y"]))
    with pytest.raises(
        NpukitError, match=r"op 0 \(WHILE\) goes on for as long as a condition holds that frames decide"
    ):
        load_model(path, in_float=True)


def filtered(folder: Path) -> Path:
    """A filter of four over sound of any length. The file states a length of one by default."""
    model = Model()
    model.inputs.append(model.tensor("sound", (1, 1, 1, 1), dtype="float32"))
    model.constant("w", np.ones((1, 1, 4, 1), np.float32))
    model.tensor("y", (1, 1, 1, 1), dtype="float32")
    model.signatures |= {"sound": (-1, 1, -1, 1), "y": (-1, 1, -1, 1)}
    model.op("CONV_2D", ["sound", "w"], ["y"], "Conv2D", Padding=VALID, StrideH=1, StrideW=1)
    (folder / "model.tflite").write_bytes(model.bytes(["y"]))
    return folder / "model.tflite"


def test_open_sizes_are_those_that_are_given(tmp_path: Path) -> None:
    net = load_model(filtered(tmp_path), input_shapes={"sound": (1, 1, 10, 1)}, in_float=True).net
    assert net.tensor(net.outputs[0]).shape == (1, 1, 7, 1)


def test_open_sizes_are_named_where_the_default_does_not_do(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="impossible shape") as raised:
        load_model(filtered(tmp_path), in_float=True)
    assert "--input sound:1x1x?x1" in raised.value.tries[0]


def test_a_choice_between_integers_of_different_scales_is_refused(tmp_path: Path) -> None:
    """TFLite's kernel copies integers regardless of their scales in the file."""
    model = Model()
    model.inputs.append(model.tensor("which", (2, 3), dtype="bool"))
    for name, scale in (("a", 0.05), ("b", 0.2)):
        model.input(name, (2, 3), scale)
    model.tensor("y", (2, 3), 0.05)
    model.op("SELECT_V2", ["which", "a", "b"], ["y"], "SelectV2")
    (tmp_path / "model.tflite").write_bytes(model.bytes(["y"]))
    with pytest.raises(NpukitError, match=r"\('b'\) and steps of .* \('y'\): SELECT\w* copies them"):
        load_model(tmp_path / "model.tflite")


def test_declared_sizes_do_not_bind_in_a_model_of_open_sizes(tmp_path: Path) -> None:
    """AI Edge Quantizer adds tensors with the converter's default sizes, and does not mark them as open."""
    model = Model()
    model.inputs.append(model.tensor("x", (1, 4), dtype="float32"))
    model.constant("twice", np.array([2, 1], np.int32))
    model.op("TILE", ["x", "twice"], [model.tensor("both", (1, 4), dtype="float32")], "Tile")
    model.op("QUANTIZE", ["both"], [model.tensor("y", (1, 4), 0.05)])
    model.signatures |= {"x": (-1, 4), "both": (-1, 4)}
    (tmp_path / "model.tflite").write_bytes(model.bytes(["y"]))
    net = load_model(tmp_path / "model.tflite").net
    assert net.tensor(net.outputs[0]).shape == (2, 4)


def test_depthwise_weights_behind_a_dequantize(tmp_path: Path) -> None:
    """Weight-only quantisation."""
    model, random = Model(), np.random.default_rng(3)
    model.inputs.append(model.tensor("x", (1, 6, 5, 4), dtype="float32"))
    model.constant("w", random.integers(-127, 128, (1, 3, 3, 4)).astype(np.int8), [0.01, 0.02, 0.03, 0.04], axis=3)
    model.op("DEQUANTIZE", ["w"], [model.tensor("real", (1, 3, 3, 4), dtype="float32")])
    options = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DepthMultiplier": 1}
    options |= {"DilationHFactor": 1, "DilationWFactor": 1}
    result = model.tensor("y", (1, 4, 3, 4), dtype="float32")
    model.op("DEPTHWISE_CONV_2D", ["x", "real"], [result], "DepthwiseConv2D", **options)
    path, data = tmp_path / "model.tflite", random.normal(0, 1, (1, 6, 5, 4)).astype(np.float32)
    path.write_bytes(model.bytes(["y"]))
    np.savez(tmp_path / "samples.npz", in0=random.normal(0, 1, (20, 1, 6, 5, 4)).astype(np.float32))
    (got,), (wanted,) = run_reference(load_model(path, in_float=True).net, [data]), run_litert(path, [data])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert [op.kind for op in load_model(path, calibration=tmp_path / "samples.npz").net.ops] == ["depthwise_conv2d"]


def test_a_composite_op_is_the_graph_that_computes_it(tmp_path: Path) -> None:
    """As LiteRT's converter of PyTorch writes norms and attention. Two ops share a graph."""
    model, inner = Model(), Model()
    for name, tensor in (("a", inner), ("x", model)):
        tensor.inputs.append(tensor.tensor(name, (2, 3), dtype="float32"))
    inner.constant("half", np.array(0.5, np.float32))
    inner.op("MUL", ["a", "half"], [inner.tensor("b", (2, 3), dtype="float32")], "Mul")
    inner.op("EXP", ["b"], [inner.tensor("c", (2, 3), dtype="float32")])
    graph = model.subgraph(inner, ["c"])
    for source, made in (("x", "m"), ("m", "y")):
        model.tensor(made, (2, 3), dtype="float32")
        options = {"Name": "odml.halved", "DecompositionSubgraphIndex": graph}
        options |= {"CompositeAttributes": bytes(flexbuffers.Dumps({}))}
        model.op("STABLEHLO_COMPOSITE", [source], [made], "StableHLOComposite", **options)
    path, data = tmp_path / "model.tflite", np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    path.write_bytes(model.bytes(["y"]))
    (got,) = run_reference(load_model(path, in_float=True).net, [data])
    np.testing.assert_allclose(got, np.exp(np.exp(data / 2) / 2), rtol=1e-6)
    np.testing.assert_allclose(got, run_litert(path, [data])[0], rtol=1e-6)
