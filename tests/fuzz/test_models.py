"""Some damaged files; `python -m fuzz.models` takes any number."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuzz.models.driver import NOT_JUDGED, Fault, run
from fuzz.models.oracles import CEIL_MODE, compared
from fuzz.models.seeds import quantised_ends
from npukit.frontend.models import load_net_from_model
from oracles.onnx_runtime import evaluated

SHAPES = {"x": [1, 1, 6, 6], "y": ["n", "c", "h", "w"]}
FILES = {"tflite": 100, "onnx_example": 30}


@pytest.mark.exhaustive
@pytest.mark.parametrize("parser", FILES)
def test_damaged_files_are_read_or_refused(parser: str) -> None:
    taken = count(1)
    found = list(run(parser, 10_000_000, lambda: next(taken) <= FILES[parser]))
    assert not [each for each in found if isinstance(each, Fault)]
    assert len(found) == FILES[parser]
    assert found.count("refused") > FILES[parser] // 4
    assert found.count("equal") > (FILES[parser] // 20 if parser == "tflite" else -1)


def test_pools_in_ceil_mode_that_no_oracle_has_right_are_not_judged(tmp_path: Path) -> None:
    pool = {"kernel_shape": [1, 4], "strides": [1, 5], "pads": [1, 0, 0, 1], "count_include_pad": 1}
    path = _one_op(tmp_path, "AveragePool", **pool, ceil_mode=1)
    assert _verdict(path) == f"{NOT_JUDGED}: {CEIL_MODE}"
    assert _verdict(_one_op(tmp_path, "AveragePool", **pool)) == "equal"


def test_the_evaluator_saturates_numbers_that_are_no_int32_once_they_are_scaled() -> None:
    constants = {"s": np.array([1e-9, 1.0], np.float32), "z": np.array([3, 3], np.int8)}
    x, y = (helper.make_tensor_value_info(*end, [2, 2]) for end in (("x", TensorProto.FLOAT), ("y", TensorProto.INT8)))
    node = helper.make_node("QuantizeLinear", ["x", *constants], ["y"])
    stored = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph([node], "g", [x], [y], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    (found,) = evaluated(model, {"x": np.array([[100, 100], [-100, -100]], np.float32)})
    np.testing.assert_array_equal(found, [[127, 103], [-128, -97]])


def _one_op(folder: Path, kind: str, **attributes: Any) -> Path:
    """A model with a single op, with int8 inputs and outputs."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items())
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], **attributes)], "g", [x], [y])
    path = folder / f"{kind}.onnx"
    path.write_bytes(
        quantised_ends(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9))
    )
    return path


def _verdict(path: Path) -> str:
    return compared(load_net_from_model(path), path, np.random.default_rng(1))
