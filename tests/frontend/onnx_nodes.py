"""ONNX's own backend node tests through npukit: float ones are quantised with their own inputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from npukit.errors import NpukitError
from npukit.frontend.names import NAMES
from npukit.frontend.qoperator import RULES
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised

CLAIMED = {"BatchNormalization", *(name for names in NAMES.values() for name in names.onnx)} - {"QuantizeLinear"}
"""A float input that is quantised at once leaves nothing to compute."""

ON_INTEGERS = {"DequantizeLinear", "ArgMax", *RULES}
"""Ops of models that are quantised already, and so on int8 and uint8; all others are quantised here."""
TYPES = (np.float32, np.int8, np.uint8)
ALL_VARY = ("Add", "Concat", "Div", "MatMul", "Max", "Min", "Mul", "Sub")
"""Ops whose float inputs are all activations; of any other only the first is, and the rest are constants."""

LISTED = Path(__file__).with_name("onnx_node_failures.txt")

LEAST_DB = 20
"""Signal over error that int8 must reach; 8 bits of noise give 30 and more."""


@dataclass(frozen=True)
class NodeTest:
    name: str
    kind: str
    model: onnx.ModelProto
    inputs: tuple[np.ndarray, ...]
    output: np.ndarray


def claimed_tests() -> Iterator[NodeTest]:
    """Those of one node of a kind that npukit claims, on types that it claims."""
    with warnings.catch_warnings(action="ignore"):
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    for case in cases:
        model: Any = case.model
        if model is not None and case.data_sets and _is_claimed(model, case.data_sets[0]):
            yield _node_test(case.name, model, *case.data_sets[0])


def _is_claimed(model: onnx.ModelProto, data: Any) -> bool:
    """One node, whose first input and only output are of a type that is computed."""
    if len(model.graph.node) != 1 or model.graph.node[0].op_type not in CLAIMED or len(data[1]) != 1:
        return False
    first, result = data[0][0], data[1][0]
    kind = model.graph.node[0].op_type
    whole = (np.int64,) if kind == "ArgMax" else ()
    arrays = isinstance(first, np.ndarray) and isinstance(result, np.ndarray)
    types = TYPES if kind in ON_INTEGERS else TYPES[:1]
    return arrays and min(first.size, result.size) > 0 and first.dtype in types and result.dtype in (*TYPES, *whole)


def _node_test(name: str, model: onnx.ModelProto, inputs: Any, outputs: Any) -> NodeTest:
    kind = model.graph.node[0].op_type
    varies = [index == 0 or (kind in ALL_VARY and array.dtype in TYPES) for index, array in enumerate(inputs)]
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for index in reversed(range(len(inputs))):
        if not varies[index]:
            given = fixed.graph.input[index].name
            fixed.graph.initializer.append(numpy_helper.from_array(np.asarray(inputs[index]), given))
            del fixed.graph.input[index]
    varying = tuple(array for array, kept in zip(inputs, varies, strict=True) if kept)
    return NodeTest(name, kind, fixed, varying, outputs[0])


def verdict(test: NodeTest) -> str:
    """Empty if the test passes, else why it does not."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.onnx"
        onnx.save(test.model, path)
        try:
            return _compared(test, *_computed(test, path))
        except NpukitError as error:
            return error.message.removeprefix("model.onnx ").removeprefix("model: ")


def _computed(test: NodeTest, path: Path) -> tuple[Net, np.ndarray]:
    if test.inputs[0].dtype != np.float32:
        net = load_model(path).net
        return net, run_reference(net, list(test.inputs))[0]
    data = path.parent / "calibration.npz"
    arrays: dict[str, Any] = {f"in{index}": array[None] for index, array in enumerate(test.inputs)}
    np.savez(data, **arrays)
    net = load_model(path, calibration=data).net
    integers = [_as_integers(net, *pair) for pair in zip(net.inputs, test.inputs, strict=True)]
    return net, run_reference(net, integers)[0]


def _as_integers(net: Net, name: str, array: np.ndarray) -> np.ndarray:
    quantization = net.tensor(name).quantization
    return array if quantization is None else quantised(array, quantization)


def _compared(test: NodeTest, net: Net, got: np.ndarray) -> str:
    given, expected = net.tensor(net.outputs[0]).quantization, test.output
    if got.shape != expected.shape:
        return f"its output has shape {list(got.shape)}, not {list(expected.shape)}"
    if expected.dtype != np.float32:
        worst = int(np.abs(got.astype(int) - expected).max())
        return "" if worst <= (expected.dtype != np.int64) else f"its output is {worst} off"
    assert given is not None
    real = (got.astype(np.float64) - given.zero_point) * given.scale
    error, signal = np.sum(np.square(real - expected)), np.sum(np.square(expected, dtype=np.float64))
    sqnr = 10 * np.log10(max(signal, 1e-12) / max(error, 1e-12))
    return "" if sqnr >= LEAST_DB or error < 1e-6 else f"signal over error is only {sqnr:.0f} dB"


def listed() -> dict[str, str]:
    """The reason by the name of each test that does not pass."""
    lines = LISTED.read_text().splitlines()
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines)}
