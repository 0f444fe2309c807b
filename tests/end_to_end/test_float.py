"""Float networks, and networks with float parts: bit for bit equal to the reference, on the emulator and on QEMU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from end_to_end.builds import DIGITS, build
from helpers import first_of, need
from npukit import api
from oracles.onnx_runtime import Session

FEATURES = 12


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


def transformer(path: Path, length: int = 8) -> None:
    """Attention and a feed-forward layer, with norms."""
    random = np.random.default_rng(5)
    shapes = {**dict.fromkeys("qkvo", (FEATURES, FEATURES)), "u": (FEATURES, 24), "d": (24, FEATURES)}
    constants = {name: random.standard_normal(shape) / np.sqrt(shape[0]) for name, shape in shapes.items()}
    constants |= {name: 1 + random.standard_normal(FEATURES) / 9 for name in ("s1", "b1", "s2", "b2")}
    constants["root"] = np.array(1 / np.sqrt(FEATURES))
    nodes = [
        *(node("MatMul", f"x {name}", f"x{name}") for name in "qkv"),
        node("Transpose", "xk", "xkt", perm=[0, 2, 1]),
        node("MatMul", "xq xkt", "raw"),
        node("Mul", "raw root", "scaled"),
        node("Softmax", "scaled", "shares"),
        node("MatMul", "shares xv", "mixed"),
        node("MatMul", "mixed o", "attended"),
        node("Add", "attended x", "sum1"),
        node("LayerNormalization", "sum1 s1 b1", "norm1"),
        node("MatMul", "norm1 u", "up"),
        node("Gelu", "up", "active"),
        node("MatMul", "active d", "down"),
        node("Add", "down norm1", "sum2"),
        node("LayerNormalization", "sum2 s2 b2", "y"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, length, FEATURES)) for name in "xy"]
    values = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "transformer", ends[:1], ends[1:], values)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def proved(folder: Path) -> None:
    found = api.validate(folder)
    assert found.passed, found.mismatches


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", first_of(["pe-mesh", "mps2-an386"]))
def test_a_float_network(board: str, tmp_path: Path) -> None:
    if board == "mps2-an386":
        need("qemu-system-arm")
    build(DIGITS / "digits_float.onnx", tmp_path / "out", board, in_float=True, pes=4)
    proved(tmp_path / "out")
    digits = np.load(DIGITS / "digits.npz")["float0"][:5].astype(np.float32)
    np.savez(tmp_path / "inputs.npz", in0=digits)
    (got,) = api.run(tmp_path / "out", inputs=tmp_path / "inputs.npz")
    session = Session(DIGITS / "digits_float.onnx")
    expected = np.stack([session.run({"image": each.reshape(1, 1, 8, 8)})[0] for each in digits])
    np.testing.assert_allclose(got.reshape(expected.shape), expected, atol=1e-6)


@pytest.mark.exhaustive
def test_pes_share_a_transformer_in_float(tmp_path: Path) -> None:
    """PEs share rows of softmax and norms too, whose work memory does not fit the stack."""
    transformer(tmp_path / "transformer.onnx", length=40)
    built = build(tmp_path / "transformer.onnx", tmp_path / "out", in_float=True, pes=4)
    shared = {op["op"]: op["pes"] for op in built.manifest.summary["ops"] if op["op"] != "reshape"}
    assert {len(pes) for pes in shared.values()} == {4}, shared
    proved(tmp_path / "out")


@pytest.mark.exhaustive
def test_a_transformer_with_norms(tmp_path: Path) -> None:
    transformer(tmp_path / "transformer.onnx")
    samples = np.random.default_rng(6).standard_normal((60, 1, 8, FEATURES)).astype(np.float32)
    np.savez(tmp_path / "samples.npz", in0=samples)
    built = build(
        tmp_path / "transformer.onnx", tmp_path / "out", calibration=tmp_path / "samples.npz", pes=1, target_db=0
    )
    kinds = [op["op"] for op in built.manifest.summary["ops"]]
    assert kinds.count("norm") == 2
    assert {"dense", "matmul", "softmax", "lookup", "add"} <= set(" ".join(kinds).split())
    assert min(layer["sqnr_db"] for layer in built.manifest.summary["quantization"]) > 20
    proved(tmp_path / "out")
