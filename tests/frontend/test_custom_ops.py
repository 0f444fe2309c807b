"""Custom ops with C from the user: read from a model, computed equally in the sandbox and on the emulated device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from flatbuffers import flexbuffers
from onnx import TensorProto, helper

from frontend.tflite_models import Model
from npukit import Options, api
from npukit.errors import NpukitError
from npukit.net.ops import TvmCode
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

HALVED = """
/* Every other number, as far as `most` from zero. */
for (int32_t at = 0; at < output_size; ++at) {
    const int32_t value = p0[2 * at]; // the even ones
    output[at] = (int8_t)(value > most ? most : value < -most ? -most : value);
}
"""
SUM = """
int32_t sum = 0;
for (int32_t at = 0; at < p0_size; ++at) {
    sum += p0[at];
}
output[0] = sum;
"""
SCALED = """
for (int32_t at = 0; at < output_size; ++at) {
    output[at] = factor * p0[at] + p1[at % p1_size];
}
"""


def halving(folder: Path) -> Path:
    """An int8 ReLU followed by a custom op with two results."""
    model, path = Model(), folder / "halving.tflite"
    model.input("x", (1, 12), 0.5, -3)
    model.tensor("r", (1, 12), 0.5, -3)
    model.op("RELU", ["x"], ["r"])
    model.tensor("y", (1, 6), 0.5, -3)
    model.tensor("sum", (1,), dtype="int32")
    model.custom("Halve", ["r"], ["y", "sum"], bytes(flexbuffers.Dumps({"most": 40})))
    path.write_bytes(model.bytes(["y", "sum"]))
    return path


def scaling(folder: Path) -> Path:
    """A float ONNX model with a node of another domain."""
    nodes = [
        helper.make_node("Scaled", ["x", "w"], ["y"], domain="own", factor=2.5),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 6]) for name in ("x", "y", "z")]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, -2.0, 0.5])
    graph = helper.make_graph(nodes, "scaling", ends[:1], ends[2:], [weights], value_info=ends[1:2])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / "scaling.onnx")
    return folder / "scaling.onnx"


def test_a_custom_op_is_what_its_c_says(tmp_path: Path) -> None:
    given = np.random.default_rng(1).integers(-128, 128, (1, 12), np.int8)
    net = load_model(halving(tmp_path), custom={"Halve": HALVED, "Halve:1": SUM}).net
    half, total = run_reference(net, [given])
    after = np.maximum(given, -3)
    assert np.array_equal(half, np.clip(after[:, ::2], -40, 40))
    assert total == after.sum()
    assert [op.attributes.cycles for op in net.ops if isinstance(op.attributes, TvmCode)] == [10 * (12 + 6), 10 * 13]


def test_a_custom_op_of_onnx_knows_its_attributes(tmp_path: Path) -> None:
    given = np.random.default_rng(2).normal(0, 1, (1, 6)).astype(np.float32)
    net = load_model(scaling(tmp_path), custom={"Scaled": SCALED}, in_float=True).net
    (got,) = run_reference(net, [given])
    want = np.float32(2.5) * given + np.array([1, -2, 0.5, 1, -2, 0.5], np.float32)
    assert np.array_equal(got, np.maximum(want, 0))


@pytest.mark.exhaustive
def test_a_custom_op_on_the_device(tmp_path: Path) -> None:
    options = Options(pes=1, custom=(("Halve", HALVED), ("Halve:1", SUM)))
    built = api.build(halving(tmp_path), output=tmp_path / "out", options=options)
    assert not api.validate(built.folder).mismatches


@pytest.mark.parametrize(
    ("custom", "message"),
    [
        ({}, "custom op 'Halve', which npukit does not read"),
        ({"Halve": HALVED}, "there is no C for its result 1"),
        ({"Halved": HALVED}, "halving.tflite has no op 'Halved'"),
        ({"Halve": "#include <stdio.h>\n", "Halve:1": SUM}, "its code is not plain C arithmetic"),
        ({"Halve": "output[0] = (int8_t)strange;", "Halve:1": SUM}, "strange"),
    ],
)
def test_a_custom_op_without_sound_c_is_refused(custom: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=message) as raised:
        run_reference(load_model(halving(tmp_path), custom=custom).net, [np.zeros((1, 12), np.int8)])
    assert custom or any("--custom Halve=FILE.c" in line for line in raised.value.tries)


def test_calibration_does_not_run_a_custom_op(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", in0=np.zeros((3, 1, 6), np.float32))
    with pytest.raises(NpukitError, match="has ops that are given as C"):
        load_model(scaling(tmp_path), custom={"Scaled": SCALED}, calibration=tmp_path / "data.npz")
