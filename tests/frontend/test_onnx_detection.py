"""ONNX's NonMaxSuppression: the rows of ONNX Runtime, then rows of -1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from npukit.errors import NpukitError
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from oracles.onnx_runtime import run_onnx

IMAGES, CLASSES, BOXES = 2, 3, 40


def suppression(limits: dict[str, Any], *, by_centre: int = 0) -> onnx.ModelProto:
    """The op alone, with the given limits as constants and the rest omitted."""
    names = ["most", "common", "threshold"]
    kinds = [TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT]
    given = [helper.make_tensor(n, k, [1], [limits[n]]) for n, k in zip(names, kinds, strict=True) if n in limits]
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", *limits], ["chosen"], center_point_box=by_centre)
    shapes = {"boxes": [IMAGES, BOXES, 4], "scores": [IMAGES, CLASSES, BOXES]}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    result = helper.make_tensor_value_info("chosen", TensorProto.INT64, ["rows", 3])
    graph = helper.make_graph([node], "suppression", ends, [result], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("by_centre", [0, 1])
@pytest.mark.parametrize(
    "limits",
    [{"most": 5, "common": 0.4, "threshold": 0.3}, {"most": 100, "common": 0.2}, {"most": 3}],
    ids=["all", "two", "one"],
)
def test_equal_to_onnx_runtime(limits: dict[str, Any], by_centre: int, tmp_path: Path) -> None:
    model = suppression(limits, by_centre=by_centre)
    onnx.save(model, tmp_path / "model.onnx")
    net, random = load_model(tmp_path / "model.onnx", in_float=True).net, np.random.default_rng(by_centre)
    boxes = random.uniform(0, 1, (IMAGES, BOXES, 4)).astype(np.float32)
    scores = (random.integers(0, 40, (IMAGES, CLASSES, BOXES)) / 40).astype(np.float32)
    (got,) = run_reference(net, [boxes, scores])
    (want,) = run_onnx(tmp_path / "model.onnx", {"boxes": boxes, "scores": scores})
    assert len(want) > IMAGES * CLASSES
    assert np.array_equal(got[: len(want)], want)
    assert (got[len(want) :] == -1).all()


def test_no_boxes_at_all_are_refused(tmp_path: Path) -> None:
    onnx.save(suppression({}), tmp_path / "model.onnx")
    with pytest.raises(NpukitError, match="it takes no box of any class"):
        load_model(tmp_path / "model.onnx", in_float=True)
