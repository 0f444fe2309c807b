"""Deformable convolutions of ONNX: close to ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import Session


@pytest.mark.parametrize(
    ("group", "parts", "given", "options"),
    [
        (1, 1, {"b", "m"}, {"pads": [1, 1, 1, 1]}),
        (2, 2, {"m"}, {"pads": [0, 1, 1, 0], "strides": [2, 1], "dilations": [1, 2]}),
        (1, 4, {"b"}, {}),
        (1, 1, set[str](), {}),
    ],
)
def test_near_onnx_runtime(group: int, parts: int, given: set[str], options: dict[str, Any], tmp_path: Path) -> None:
    """Offsets reach beyond the data."""
    random, side = np.random.default_rng(3), (9, 8)
    pads, steps, gaps = (options.get(key, [each] * 4) for key, each in (("pads", 0), ("strides", 1), ("dilations", 1)))
    made = [(side[at] + pads[at] + pads[at + 2] - gaps[at] * 2 - 1) // steps[at] + 1 for at in (0, 1)]
    shapes = {"x": (2, 4, *side), "w": (6, 4 // group, 3, 3), "o": (2, parts * 18, *made)}
    shapes |= {"b": (6,), "m": (2, parts * 9, *made)}
    values = {name: (2 * random.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    names = [name if name in {"x", "w", "o"} | given else "" for name in "xwobm"]
    node = helper.make_node("DeformConv", names, ["y"], group=group, offset_group=parts, **options)
    fed = [name for name in ("x", "o", "m") if name in names]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in fed]
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 6, *made))]
    held = [numpy_helper.from_array(values[name], name) for name in ("w", "b") if name in names]
    graph, path = helper.make_graph([node], "graph", ends, result, held), tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)
    inputs = {name: values[name] for name in fed}
    (got,) = run_reference(load_model(path, in_float=True).net, list(inputs.values()))
    np.testing.assert_allclose(got, Session(path).run(inputs)[0], rtol=1e-4, atol=1e-4)
