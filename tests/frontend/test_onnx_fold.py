"""ONNX graphs as exporters write them, with sizes, constants and branches computed in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import run_onnx

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def numbers(name: str, *values: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def written(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    constants: Sequence[onnx.TensorProto],
    ends: tuple[Sequence[Any], Sequence[Any]],
    opset: int = 19,
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", *map(list, ends), initializer=list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.save(model, path)
    return model


OPEN = ("a", "b", "c", "d")
"""Open sizes."""


def tensor(name: str, shape: Sequence[Any] | None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def compared(path: Path, inputs: Sequence[np.ndarray], **options: Any) -> Net:
    """The net in float, after a check against ONNX's own evaluator."""
    net = load_model(path, in_float=True, **options).net
    wanted = evaluated(path, dict(zip(net.inputs, inputs, strict=True)))
    for ours, theirs in zip(run_reference(net, list(inputs)), wanted, strict=True):
        assert ours.shape == theirs.shape
        assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    return net


def evaluated(path: Path, inputs: dict[str, np.ndarray]) -> list[Any]:
    found: Any = ReferenceEvaluator(str(path)).run(None, inputs)
    return found


def constant(name: str, value: Any, dtype: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value, dtype), name)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(4).normal(0, 1, shape).astype(np.float32)


def test_a_pad_of_sizes_that_the_graph_computes(tmp_path: Path) -> None:
    """PyTorch's tracer computes a pad's amounts from the shape of the input, appends zeros and reverses the amounts."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape last", "width"),
        node("Mod", "width two", "odd"),
        node("Concat", "zero odd", "amounts", axis=0),
        node("Shape", "amounts", "count"),
        node("Sub", "rank count", "missing"),
        node("ConstantOfShape", "missing", "zeros", value=numbers("v", 0)),
        node("Concat", "amounts zeros", "flat", axis=0),
        node("Reshape", "flat pairs", "square"),
        node("Slice", "square minus_one least zero minus_one", "turned"),
        node("Transpose", "turned", "columns", perm=[1, 0]),
        node("Reshape", "columns minus_one", "pads"),
        node("Pad", "x pads", "y"),
    ]
    constants = [
        *(numbers(name, value) for name, value in (("last", 3), ("two", 2), ("zero", 0), ("rank", 8))),
        *(numbers("pairs", -1, 2), numbers("minus_one", -1), numbers("least", -(1 << 62))),
    ]
    written(tmp_path / "m.onnx", nodes, constants, ([tensor("x", [1, 2, 4, 5])], [tensor("y", OPEN)]))
    net = compared(tmp_path / "m.onnx", [noise(1, 2, 4, 5)])
    assert net.tensor(net.outputs[0]).shape == (1, 2, 4, 6)


def test_a_reshape_of_open_sizes_once_they_are_closed(tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "batch", start=0, end=1),
        node("Concat", "batch rest", "shape", axis=0),
        node("Reshape", "x shape", "flat"),
        node("Relu", "flat", "y"),
    ]
    ends = [tensor("x", ["n", 2, 3])], [tensor("y", OPEN[:2])]
    written(tmp_path / "m.onnx", nodes, [numbers("rest", -1)], ends)
    compared(tmp_path / "m.onnx", [noise(4, 2, 3)], input_shapes={"x": (4, 2, 3)})
    compared(tmp_path / "m.onnx", [noise(1, 2, 3)])


def test_an_input_without_a_shape_needs_one(tmp_path: Path) -> None:
    path, ends = tmp_path / "m.onnx", ([tensor("x", None)], [tensor("y", None)])
    written(path, [node("Relu", "x", "y")], [], ends)
    compared(path, [noise(1, 2, 3)], input_shapes={"x": (1, 2, 3)})
    with pytest.raises(NpukitError, match="input 'x' has no shape") as error:
        load_model(path, in_float=True)
    assert error.value.tries == ("say its shape: --input x:1x3x96x96",)


def branches(*kinds: str) -> dict[str, onnx.GraphProto]:
    """Two branches with equal names for their values and constants."""
    return {
        name: helper.make_graph(
            [node("Add", "x one", "part"), node(kind, "part", "made")],
            name,
            [],
            [tensor("made", [2, 3])],
            [constant("one", value, np.float32)],
        )
        for value, (name, kind) in enumerate(zip(("then_branch", "else_branch"), kinds, strict=True))
    }


@pytest.mark.parametrize("size", [2, 5])
def test_the_branch_that_a_shape_chooses(size: int, tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "shape", start=0, end=1),
        node("Equal", "shape size", "fits"),
        node("If", "fits", "z", **branches("Exp", "Neg")),
        node("Abs", "z", "y"),
    ]
    written(tmp_path / "m.onnx", nodes, [numbers("size", size)], ([tensor("x", [2, 3])], [tensor("y", [2, 3])]))
    net = compared(tmp_path / "m.onnx", [noise(2, 3)])
    assert ("exp" in str(net)) == (size == 2)


@pytest.mark.parametrize("opset", [7, 8, 19])
@pytest.mark.parametrize("which", [True, False])
def test_of_two_branches_a_condition_chooses_at_run_time(which: bool, opset: int, tmp_path: Path) -> None:
    """Before opset 9, branches are the only form of a choice."""
    ends = [tensor("c", [1], BOOL), tensor("x", [2, 3])], [tensor("y", [2, 3])]
    written(tmp_path / "m.onnx", [node("If", "c", "y", **branches("Exp", "Neg"))], [], ends, opset)
    compared(tmp_path / "m.onnx", [np.array([which]), noise(2, 3)])


@pytest.mark.parametrize("rate", [8000, 16000])
def test_an_input_that_is_fixed_chooses_its_branch(rate: int, tmp_path: Path) -> None:
    nodes = [node("Equal", "rate fast", "c"), node("If", "c", "y", **branches("Exp", "Neg"))]
    ends = [tensor("x", [2, 3]), tensor("rate", [], INT64)], [tensor("y", [2, 3])]
    written(tmp_path / "m.onnx", nodes, [constant("fast", 16000, np.int64)], ends)
    net = load_model(tmp_path / "m.onnx", input_shapes={"rate": float(rate)}, in_float=True).net
    assert len(net.inputs) == 1
    assert ("exp" in str(net)) == (rate == 16000)


def test_a_pad_of_no_size_is_left_out(tmp_path: Path) -> None:
    nodes = [node("Concat", "none x", "z", axis=0), node("Relu", "z", "y")]
    none = constant("none", np.zeros((0, 3)), np.float32)
    written(tmp_path / "m.onnx", nodes, [none], ([tensor("x", [2, 3])], [tensor("y", [2, 3])]))
    compared(tmp_path / "m.onnx", [noise(2, 3)])


def growing(trips: str) -> list[onnx.NodeProto]:
    """A loop that adds x to a sum at each step, ends after step 3, and returns all sums."""
    body = helper.make_graph(
        [node("Add", "sum x", "more"), node("Less", "i three", "go"), node("Identity", "more", "kept")],
        "body",
        [tensor("i", [], INT64), tensor("k", [], BOOL), tensor("sum", [2, 3])],
        [tensor("go", [], BOOL), tensor("more", [2, 3]), tensor("kept", [2, 3])],
        [constant("three", 3, np.int64)],
    )
    return [helper.make_node("Loop", [trips, "yes", "x"], ["last", "all"], body=body), node("Add", "last all", "y")]


@pytest.mark.parametrize("trips", [2, 9])
def test_a_loop_of_known_steps_is_unrolled(trips: int, tmp_path: Path) -> None:
    steps = min(trips, 4)
    ends = [tensor("x", [2, 3])], [tensor("y", [steps, 2, 3])]
    written(tmp_path / "m.onnx", growing("n"), [constant("n", trips, np.int64), constant("yes", True, bool)], ends)
    (want,) = run_onnx(tmp_path / "m.onnx", {"x": noise(2, 3)})
    (got,) = run_reference(load_model(tmp_path / "m.onnx", in_float=True).net, [noise(2, 3)])
    assert np.allclose(got, want, rtol=1e-6)


def test_a_loop_of_steps_that_frames_decide_is_refused(tmp_path: Path) -> None:
    ends = [tensor("n", [], INT64), tensor("x", [2, 3])], [tensor("y", ["steps", 2, 3])]
    written(tmp_path / "m.onnx", growing("n"), [constant("yes", True, bool)], ends)
    with pytest.raises(NpukitError, match="takes as many steps as frames decide"):
        load_model(tmp_path / "m.onnx", in_float=True)
    assert len(load_model(tmp_path / "m.onnx", input_shapes={"n": 2.0}, in_float=True).net.inputs) == 1


@pytest.mark.parametrize(("axis", "count", "largest"), [(-1, 1, 1), (-1, 3, 1), (1, 2, 0), (0, 2, 1)])
def test_the_largest_and_the_least_and_their_places(axis: int, count: int, largest: int, tmp_path: Path) -> None:
    data, shape = np.round(noise(3, 4, 5) * 2), [3, 4, 5]
    shape[axis] = count
    top = node("TopK", "x k", "values places", axis=axis, largest=largest)
    ends = [tensor("x", [3, 4, 5])], [tensor("y", shape), tensor("places", shape, TensorProto.INT64)]
    written(tmp_path / "m.onnx", [top, node("Relu", "values", "y")], [numbers("k", count)], ends)
    compared(tmp_path / "m.onnx", [data])


def test_a_top_of_more_than_there_are_is_refused(tmp_path: Path) -> None:
    ends = [tensor("x", [3, 4])], [tensor("y", [3, 9])]
    written(tmp_path / "m.onnx", [node("TopK", "x k", "y places")], [numbers("k", 9)], ends)
    with pytest.raises(NpukitError, match=r"TopK.*there is no top 9 along axis -1 of an input of shape \[3, 4\]"):
        load_model(tmp_path / "m.onnx", in_float=True)


def test_other_graphs_in_nodes_are_refused_by_name(tmp_path: Path) -> None:
    body = helper.make_graph(
        [node("Identity", "k", "go")], "body", [tensor("i", [], INT64), tensor("k", [], BOOL)], [tensor("go", [], BOOL)]
    )
    nodes = [node("Relu", "x", "y"), helper.make_node("Scan", ["n"], [], body=body, num_scan_inputs=1)]
    written(
        tmp_path / "m.onnx",
        nodes,
        [constant("n", 3, np.int64)],
        ([tensor("x", [2])], [tensor("y", [2])]),
    )
    with pytest.raises(NpukitError, match=r"node 1 \(Scan\) holds a graph"):
        load_model(tmp_path / "m.onnx", in_float=True)


def test_what_would_be_too_large_is_not_computed(tmp_path: Path) -> None:
    nodes = [node("ConstantOfShape", "huge", "many"), node("Add", "x many", "y")]
    written(tmp_path / "m.onnx", nodes, [numbers("huge", 1 << 40)], ([tensor("x", [1])], [tensor("y", OPEN[:1])]))
    with pytest.raises(NpukitError, match="elements"):
        load_model(tmp_path / "m.onnx", in_float=True)


def quantised(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """`nodes` from `a` to `b`, between int8 numbers with a common scale."""
    return [
        node("QuantizeLinear", "x scale zero", "qx"),
        node("DequantizeLinear", "qx scale zero", "a"),
        *nodes,
        node("QuantizeLinear", "b scale zero", "qy"),
        node("DequantizeLinear", "qy scale zero", "y"),
    ]


SCALE = [constant("scale", 0.03, np.float32), constant("zero", -5, np.int8)]


@pytest.mark.parametrize("indices", [2, -1, [0, 2], [2, 0, 0], [[-1, 0], [1, 1]]])
def test_gather_of_quantised_numbers_with_any_indices(indices: Any, tmp_path: Path) -> None:
    at = numpy_helper.from_array(np.array(indices, np.int64), "at")
    ends = [tensor("x", [2, 3, 4])], [tensor("y", OPEN[: 2 + np.ndim(indices)])]
    written(tmp_path / "m.onnx", quantised([node("Gather", "a at", "b", axis=1)]), [*SCALE, at], ends)
    net, data = load_model(tmp_path / "m.onnx").net, noise(2, 3, 4)
    wanted = evaluated(tmp_path / "m.onnx", {"x": data})[0]
    integers = np.clip(np.rint(data / np.float32(0.03)) - 5, -128, 127).astype(np.int8)
    assert np.array_equal((run_reference(net, [integers])[0] + np.float32(5)) * np.float32(0.03), wanted)


def test_slopes_that_the_importer_reshapes(tmp_path: Path) -> None:
    slope = numpy_helper.from_array(np.array([[0.25]], np.float32), "slope")
    ends = [tensor("x", [1, 3, 4])], [tensor("y", [1, 3, 4])]
    written(tmp_path / "m.onnx", quantised([node("PRelu", "a slope", "b")]), [*SCALE, slope], ends)
    net, data = load_model(tmp_path / "m.onnx").net, np.random.default_rng(1).integers(-128, 128, (1, 3, 4), np.int8)
    real = (data + 5.0) * 0.03
    wanted = np.clip(np.rint(np.where(real < 0, real / 4, real) / 0.03) - 5, -128, 127)
    assert np.max(np.abs(run_reference(net, [data])[0] - wanted)) <= 1


def test_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    """Exporters write large models in this way, and PyTorch's exporter all models."""
    weights = numpy_helper.from_array(noise(6, 5), "w")
    written(
        tmp_path / "whole.onnx", [node("MatMul", "x w", "y")], [weights], ([tensor("x", [2, 6])], [tensor("y", [2, 5])])
    )
    apart = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(onnx.load(tmp_path / "whole.onnx"), tmp_path / "m.onnx", **apart)
    assert (tmp_path / "weights.bin").stat().st_size >= 6 * 5 * 4
    compared(tmp_path / "m.onnx", [noise(2, 6)])
