"""Small float ONNX models, quantised by npukit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npukit.net.reference import run_reference
from npukit.quantize.models import Loaded, load_model
from npukit.quantize.scales import quantised
from oracles.onnx_runtime import Session

CASES = 100


def weights(*shape: int, seed: int = 11) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def node(kind: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """A node whose input names are separated by spaces."""
    return helper.make_node(kind, inputs.split(), output.split(), **attributes)


def saved(folder: Path, shape: tuple[int, ...], nodes: list[onnx.NodeProto], **constants: np.ndarray) -> Path:
    """A model from `x` to `y`."""
    values = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, size) for name, size in (("x", shape), ("y", None))
    ]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


@dataclass(frozen=True)
class Compared:
    """A quantised model, and the closeness of the outputs to ONNX Runtime's in float."""

    loaded: Loaded
    sqnr_db: float

    @property
    def kinds(self) -> list[str]:
        return [op.kind for op in self.loaded.net.ops if op.kind not in ("reshape", "transpose")]


def calibrated(path: Path, shape: tuple[int, ...]) -> Compared:
    """Calibrates with noise and compares on other noise."""
    noise = np.random.default_rng(5).standard_normal((2 * CASES, *shape)).astype(np.float32)
    data = path.parent / "calibration.npz"
    np.savez(data, in0=noise[:CASES])
    loaded = load_model(path, calibration=data)
    session = Session(path)
    expected = np.stack([session.run({"x": case})[0] for case in noise[CASES:]])
    error = expected - _reals(loaded, noise[CASES:])
    return Compared(loaded, float(10 * np.log10(np.sum(expected**2) / np.sum(error**2))))


def _reals(loaded: Loaded, inputs: np.ndarray) -> np.ndarray:
    net = loaded.net
    taken, given = (net.tensor(name).quantization for name in (net.inputs[0], net.outputs[0]))
    assert taken is not None
    assert given is not None
    (integers,) = run_reference(net, [quantised(inputs, taken)])
    return (integers.astype(np.float64) - given.zero_point) * given.scale
