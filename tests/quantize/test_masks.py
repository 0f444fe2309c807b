"""Attention with masks of the least float or minus infinity, quantised by npukit: close to ONNX Runtime in float."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from float_models import node
from onnx import TensorProto, helper, numpy_helper

from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised
from oracles.onnx_runtime import Session

TOKENS, WIDTH, CASES = 6, 8, 40
LEAST, NOWHERE = np.float32(np.finfo(np.float32).min), np.float32(-np.inf)
LATER = np.triu(np.ones((1, TOKENS, TOKENS), bool), 1)
PADDED = [
    node("Cast", "present", "p", to=TensorProto.FLOAT),
    node("Unsqueeze", "p axis", "row"),
    node("Sub", "one row", "absent"),
]
ADDED = node("Add", "s m", "a")
CONSTANTS = {"axis": np.array([1]), "one": np.float32(1), "zero": np.float32(0), "least": LEAST, "nowhere": NOWHERE}

MASKS: dict[str, tuple[list[onnx.NodeProto], dict[str, Any]]] = {
    "constant": ([ADDED], {"m": np.where(LATER, LEAST, 0).astype(np.float32)}),
    "minus infinity": ([ADDED], {"m": np.where(LATER, NOWHERE, 0).astype(np.float32)}),
    "of padding": ([*PADDED, node("Mul", "absent least", "m"), ADDED], {}),
    "chosen": (
        [*PADDED, node("Cast", "absent", "b", to=TensorProto.BOOL), node("Where", "b nowhere zero", "m"), ADDED],
        {},
    ),
    "added twice": (
        [
            *PADDED,
            node("Mul", "absent least", "p2"),
            node("Add", "p2 later", "m2"),
            node("Max", "m2 least", "m"),
            ADDED,
        ],
        {"later": np.where(LATER, LEAST, 0).astype(np.float32)},
    ),
    "limited": (
        [node("Add", "s m", "t"), node("Max", "t least", "a")],
        {"m": np.where(LATER, LEAST, 0).astype(np.float32)},
    ),
    "scaled after": (
        [node("Add", "s m", "t"), node("Mul", "t half", "h"), node("Reshape", "h shape", "a")],
        {"m": np.where(LATER, -1e4, 0).astype(np.float32), "half": np.float32(2), "shape": np.array([1, 6, 6])},
    ),
    "without not-a-number": (
        [ADDED],
        {"m": np.where(LATER, NOWHERE, 0).astype(np.float32)},
    ),
}


def attention(mask: list[onnx.NodeProto], constants: dict[str, Any], tail: list[onnx.NodeProto]) -> bytes:
    """A model from `x` and `present`, ones for the tokens there, to `y`."""
    nodes = [node("Transpose", "x", "k", perm=[0, 2, 1]), node("MatMul", "x k", "s"), *mask]
    nodes += [node("Softmax", "a", "w", axis=-1), *tail, node("MatMul", f"{'w' if not tail else 'z'} x", "y")]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, TOKENS, WIDTH)),
        helper.make_tensor_value_info("present", TensorProto.INT64, (1, TOKENS)),
    ]
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, TOKENS, WIDTH))]
    values = [numpy_helper.from_array(np.asarray(value), name) for name, value in (CONSTANTS | constants).items()]
    graph = helper.make_graph(nodes, "graph", ends, results, values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("name", MASKS)
def test_attention(name: str, tmp_path: Path) -> None:
    tail = [node("IsNaN", "w", "n"), node("Where", "n zero w", "z")] if name == "without not-a-number" else []
    path, random = tmp_path / "model.onnx", np.random.default_rng(5)
    path.write_bytes(attention(*MASKS[name], tail))
    x = random.standard_normal((2 * CASES, 1, TOKENS, WIDTH)).astype(np.float32)
    present = (np.arange(TOKENS) < random.integers(2, TOKENS + 1, (2 * CASES, 1, 1))).astype(np.int64)
    np.savez(tmp_path / "data.npz", in0=x[:CASES], in1=present[:CASES])
    loaded = load_model(path, calibration=tmp_path / "data.npz")
    session = Session(path)
    expected = np.stack(
        [session.run({"x": a, "present": b})[0] for a, b in zip(x[CASES:], present[CASES:], strict=True)]
    )
    taken, given = (loaded.net.tensor(name).quantization for name in (loaded.net.inputs[0], loaded.net.outputs[0]))
    assert taken is not None
    assert given is not None
    (integers,) = run_reference(loaded.net, [quantised(x[CASES:], taken), present[CASES:]])
    error = expected - (integers.astype(np.float64) - given.zero_point) * given.scale
    assert 10 * np.log10(np.sum(expected**2) / np.sum(error**2)) > 30
    assert loaded.report is not None
    assert min(layer.sqnr_db for layer in loaded.report.layers) > 25
