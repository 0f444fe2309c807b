"""The evidence of a run by op: outcomes by class of networks, and the kinds of npukit's ops for a lone op of a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any, TypeAlias
from zipfile import ZipFile

import onnx

from npukit.frontend.tflite.file import read_tflite
from npukit.net.net import Net

OfOps: TypeAlias = dict[str, dict[str, Any]]
"""Facts of each op, by format and name."""
ENDS = frozenset(("QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"))
CONVERTED = frozenset(("reshape", "transpose", "requantize", "quantize", "dequantize"))
"""Kinds that the import adds around others."""


def ops_of(form: str, data: bytes) -> tuple[str, ...]:
    """The names of the ops in a file, without those that only quantise for others."""
    names = sorted({"tflite": _of_tflite, "onnx": _of_onnx, "pytorch": _of_pytorch}[form](data))
    return tuple(name for name in names if name not in ENDS) or tuple(names)


def _of_tflite(data: bytes) -> set[str]:
    return {op.kind for op in read_tflite(data, "model").ops}


def _of_onnx(data: bytes) -> set[str]:
    return {node.op_type for node in onnx.load_from_string(data).graph.node}


def _of_pytorch(data: bytes) -> set[str]:
    """Operators without namespace and overload: `torch.ops.aten.conv2d.default` is `conv2d`."""
    with ZipFile(BytesIO(data)) as file:
        (place,) = (name for name in file.namelist() if name.endswith("models/model.json"))
        nodes = json.loads(file.read(place))["graph_module"]["graph"]["nodes"]
    return {node["target"].split(".")[3] for node in nodes if node["target"].startswith("torch.ops.aten.")}


def kinds_of(net: Net) -> tuple[str, ...]:
    found = {op.kind for op in net.ops}
    return tuple(sorted(found - CONVERTED or found))


def by_class(found: Iterable[tuple[str, str, Sequence[str]]]) -> OfOps:
    """Numbers of networks with an op by format, op, class and outcome. `found`: name, outcome and ops of networks."""
    counts: OfOps = {}
    for name, outcome, ops in found:
        form, label, _ = name.split("/")
        for op in ops:
            told = counts.setdefault(form, {}).setdefault(op, {}).setdefault(label, {})
            told[outcome] = told.get(outcome, 0) + 1
    return counts


def of_lone_ops(found: Iterable[tuple[str, Sequence[str], Sequence[str]]]) -> OfOps:
    """The kinds of each op in int8 networks without other ops. `found`: name, ops and kinds of networks."""
    kinds: OfOps = {}
    for name, ops, made in found:
        form, label, _ = name.split("/")
        if len(ops) == 1 and ("int8" in label or label == "calibrated"):
            of_op = kinds.setdefault(form, {})
            of_op[ops[0]] = sorted({*of_op.get(ops[0], ()), *made})
    return kinds


def text(figures: Mapping[str, Any]) -> str:
    """JSON with a line for each op."""
    whole = json.dumps({**figures, "ops": "OPS", "kinds": "KINDS"}, indent=1, ensure_ascii=False)
    for key in ("ops", "kinds"):
        whole = whole.replace(f'"{key.upper()}"', _lines(figures[key]))
    return whole + "\n"


def _lines(formats: Mapping[str, Mapping[str, Any]]) -> str:
    parts = (
        f'  "{form}": {{\n'
        + ",\n".join(f'   "{op}": {json.dumps(told, sort_keys=True)}' for op, told in sorted(ops.items()))
        + "\n  }"
        for form, ops in formats.items()
    )
    return "{\n" + ",\n".join(parts) + "\n }"
