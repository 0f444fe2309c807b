"""ONNX's own backend node tests as nets. Float tests are quantised with their own inputs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from npukit.errors import NpukitError
from npukit.frontend.onnx.qoperator import RULES
from npukit.net.net import Net
from npukit.net.ops.table import SPECS
from npukit.quantize.models import load_model
from npukit.quantize.scales import quantised

CLAIMED = {name for spec in SPECS.values() for name in spec.names.onnx} - {"QuantizeLinear"}
"""Ops in the tests. QuantizeLinear is left out: if a float input is quantised at once, nothing remains to compute."""

IN_INTEGERS = {"ConvInteger", "MatMulInteger"}
"""Exact ops."""
ON_INTEGERS = {"DequantizeLinear", "ArgMax", *IN_INTEGERS, *RULES}
"""Ops of quantised models, on int8 and uint8."""
IN_FLOAT = {"DynamicQuantizeLinear"}
"""Ops of models quantised at run time, including models with scales for blocks. All others are quantised here."""
TYPES = (np.float32, np.int8, np.uint8)
WHOLE = {"ArgMax": (np.int64,), **dict.fromkeys(IN_INTEGERS, (np.int32,))}
"""Additional types of an op's result."""
ALL_VARY = ("Add", "Concat", "Div", "MatMul", "Max", "Min", "Mul", "Sub")
"""Ops whose float inputs are all activations. For other ops, inputs after the first are constants."""

LISTED = Path(__file__).with_name("onnx_node_failures.txt")

LEAST_DB = 20
"""Least signal-to-error ratio of int8 in decibels. Eight bits of noise give 30 and more."""


@dataclass(frozen=True)
class NodeTest:
    name: str
    kind: str
    model: onnx.ModelProto
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...]

    @property
    def in_float(self) -> bool:
        blocks = any(attribute.name == "block_size" for attribute in self.model.graph.node[0].attribute)
        return self.kind in IN_FLOAT or blocks

    @property
    def on_integers(self) -> bool:
        return self.inputs[0].dtype != np.float32


@dataclass(frozen=True)
class Imported:
    """A test as a net, and the net's inputs."""

    test: NodeTest
    net: Net
    inputs: tuple[np.ndarray, ...]


def claimed_tests() -> Iterator[NodeTest]:
    """Tests of a single node whose kind and types npukit claims to support."""
    with warnings.catch_warnings(action="ignore"):
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    for case in cases:
        model: Any = case.model
        if model is not None and case.data_sets and _is_claimed(model, case.data_sets[0]):
            yield _node_test(case.name, model, *case.data_sets[0])


def _is_claimed(model: onnx.ModelProto, data: Any) -> bool:
    """True for a single node with supported types of its first input and its outputs. Infinities have no int8 form."""
    if len(model.graph.node) != 1 or model.graph.node[0].op_type not in CLAIMED or not data[0]:
        return False
    kind, first, results = model.graph.node[0].op_type, data[0][0], data[1]
    if not all(isinstance(array, (np.ndarray, np.generic)) and array.size for array in (first, *results)):
        return False
    if first.dtype == np.float32 and not np.isfinite(first).all():
        return False
    types = TYPES if kind in ON_INTEGERS else TYPES[:1]
    given = (*TYPES, *WHOLE.get(kind, ()))
    return first.dtype in types and all(result.dtype in given for result in results)


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
    return NodeTest(name, kind, fixed, varying, tuple(map(np.asarray, outputs)))


def imported(test: NodeTest) -> Imported:
    """The net of a test. Raises NpukitError if npukit does not read the model."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "model.onnx"
        onnx.save(test.model, path)
        net = _loaded(test, path)
    integers = (_as_integers(net, *pair) for pair in zip(net.inputs, test.inputs, strict=True))
    return Imported(test, net, tuple(integers))


def _loaded(test: NodeTest, path: Path) -> Net:
    if test.on_integers or test.in_float:
        return load_model(path, in_float=test.in_float).net
    data = path.parent / "calibration.npz"
    arrays: dict[str, Any] = {f"in{index}": array[None] for index, array in enumerate(test.inputs)}
    np.savez(data, **arrays)
    return load_model(path, calibration=data).net


def said(error: NpukitError) -> str:
    """The message of a failed import, without the parts common to all models."""
    named = re.sub(r"^model.onnx:? (node 0 \(.*?\):? )?|^model: ", "", error.message)
    return named.removeprefix("cannot be imported: ")


def _as_integers(net: Net, name: str, array: np.ndarray) -> np.ndarray:
    quantization = net.tensor(name).quantization
    return quantised(array, quantization) if quantization and array.dtype == np.float32 else array


def verdict(given: Imported, outputs: Sequence[np.ndarray]) -> str:
    """An empty string if the outputs equal the test's, else the difference."""
    pairs = zip(given.net.outputs, outputs, given.test.outputs, strict=True)
    exact = given.test.kind in IN_INTEGERS
    return next(filter(None, (_compared(given.net, *pair, exact=exact) for pair in pairs)), "")


def _compared(net: Net, name: str, got: np.ndarray, expected: np.ndarray, *, exact: bool) -> str:
    if got.shape != expected.shape:
        return f"its output has shape {list(got.shape)}, not {list(expected.shape)}"
    if expected.dtype != np.float32:
        worst = int(np.abs(got.astype(int) - expected).max())
        return "" if worst <= (expected.dtype != np.int64 and not exact) else f"its output is {worst} off"
    given = net.tensor(name).quantization
    real = got.astype(np.float64) if given is None else (got.astype(np.float64) - given.zero_point) * given.scale
    finite = np.isfinite(expected)  # scores behind a mask are infinite, and saturate
    error, signal = np.sum(np.square((real - expected)[finite])), np.sum(np.square(expected[finite], dtype=np.float64))
    sqnr = 10 * np.log10(max(signal, 1e-12) / max(error, 1e-12))
    return "" if sqnr >= LEAST_DB or error < 1e-6 else f"signal over error is only {sqnr:.0f} dB"


def listed() -> dict[str, str]:
    """The known failures: reasons by test."""
    lines = LISTED.read_text().splitlines()
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines)}
