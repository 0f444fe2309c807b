"""Low values that a function maps to a single number leave the range of int8; a few values do not make a plateau."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from float_models import node
from onnx import TensorProto, helper

from npukit.quantize.models import load_model


def lowest(kind: str, cases: np.ndarray, folder: Path) -> float:
    """The least real number of the input of a function, as quantised over the cases."""
    shape = cases.shape[1:]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([node(kind, "x", "y")], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "cases.npz", in0=cases.astype(np.float32))
    net = load_model(folder / "model.onnx", calibration=folder / "cases.npz").net
    given = net.tensor(net.inputs[0]).quantization
    assert given is not None
    return given.scale * (-128 - given.zero_point)


@pytest.mark.parametrize("rising", [False, True])
def test_a_hard_swish_reads_no_values_far_below_minus_three(rising: bool, tmp_path: Path) -> None:
    cases = np.linspace(-20, 6, 400).reshape(20, 1, 20)
    assert -3.3 < lowest("HardSwish", cases if rising else cases[::-1], tmp_path) < -2.9


@pytest.mark.parametrize("first", [-1.0, -5.0])
def test_two_values_are_no_plateau_of_a_sigmoid(first: float, tmp_path: Path) -> None:
    cases = np.array([[[first, 1.0]], [[-6.0 - first, 0.5]]])
    assert lowest("Sigmoid", cases, tmp_path) < -4.9
