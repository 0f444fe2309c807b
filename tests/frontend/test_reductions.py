"""Extremes and sums over axes in integers: pools and means, equal to the definition or at most 1 from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from frontend.test_onnx_ops import compared, int8, one
from npukit.net.tensor import Quantization

SHAPE = (1, 6, 4, 300)


def spread(*shape: int) -> np.ndarray:
    """Random numbers, with maxima and means that differ by place along every axis."""
    random = np.random.default_rng(1)
    places = (
        random.integers(-20, 20, [size if axis == own else 1 for own, size in enumerate(shape)])
        for axis in range(len(shape))
    )
    return (int8(1, *shape) // 4 + sum(places)).astype(np.int8)


@pytest.mark.parametrize("axes", [[1], [2, 3], [3], [1, 3]])
@pytest.mark.parametrize("keeps", [0, 1])
@pytest.mark.parametrize(
    ("kind", "made"), [("ReduceMax", "max_pool"), ("ReduceMin", "max_pool"), ("ReduceMean", "mean")]
)
def test_reductions_are_integer_ops(kind: str, made: str, axes: list[int], keeps: int, tmp_path: Path) -> None:
    graph = one(kind, axes=axes, keepdims=keeps)
    graph.quantized("r", 0.04, 9, "y")
    kinds = {op.kind for op in compared(graph, tmp_path, x=spread(*SHAPE)).ops}
    assert made in kinds <= {made, "reshape", "transpose", "lookup"}


def test_a_mean_of_nothing_but_rounding_saturates(tmp_path: Path) -> None:
    """The mean of a normalised row is zero in float. Its scale is as small as the errors of a quantiser's samples."""
    graph = one("ReduceMean", axes=[3], keepdims=1)
    graph.quantized("r", 1e-9, 3, "m")
    graph.node("Sub", ["x_real", graph.dequantized("m", 1e-9, 3)], "s")
    graph.quantized("s", 0.04, 9, "y")
    assert "mean" in {op.kind for op in compared(graph, tmp_path, x=spread(*SHAPE)).ops}


@pytest.mark.parametrize("axes", [[1], [2, 3], [3]])
def test_a_sum_is_a_mean_of_another_scale(axes: list[int], tmp_path: Path) -> None:
    graph = one("ReduceSum", (), keepdims=0)
    graph.nodes[-1].input.append(graph.constant("axes", np.array(axes, np.int64)))
    graph.quantized("r", 2.9, -7, "y")
    net = compared(graph, tmp_path, x=spread(1, 6, 4, 30))
    assert {op.kind for op in net.ops} <= {"mean", "reshape", "transpose"}
    assert net.tensor(net.outputs[0]).quantization == Quantization((float(np.float32(2.9)),), (-7,))
