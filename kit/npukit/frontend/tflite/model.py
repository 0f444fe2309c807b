"""A TFLite model as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from npukit.errors import NpukitError
from npukit.frontend.states import StatePair
from npukit.frontend.tflite.fields import OpOptions
from npukit.net.limits import OPERANDS
from npukit.net.tensor import Quantization

CUSTOM = "custom op"
"""The beginning of the kind of an op that is none of TFLite's own."""


def custom_kind(name: str) -> str:
    """The kind of the custom op of this name."""
    return f"{CUSTOM} {name!r}"


def name_of(kind: str) -> str:
    """The name of a custom op; empty of TFLite's own."""
    return kind.removeprefix(CUSTOM).strip(" '") if kind.startswith(CUSTOM) else ""


@dataclass(frozen=True)
class TfliteTensor:
    """A tensor's declaration; `value` is that of a constant. `has_shape`: the shape is stated, if only in part.

    `open`: the shape with 0 for the sizes that are open; those in `shape` are what they are taken for by default.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    value: np.ndarray | None = None
    quantization: Quantization | None = None
    has_shape: bool = True
    open: tuple[int, ...] = ()


@dataclass(frozen=True)
class TfliteOp:
    """An op as the file has it; `options` are those of the table that it comes with, `custom` a custom op's bytes.

    A convolution that others dilate has `dilation` and `padding` (top, left, bottom, right) beside its options.
    """

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: OpOptions
    custom: bytes = b""
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)


def options_of(op: TfliteOp) -> dict[str, Any]:
    """The numbers among the options of a custom op by name, which are a map of flexbuffers; none if they are not."""
    try:
        return dict(_numbers(flexbuffers.GetRoot(op.custom).AsMap)) if op.custom else {}
    except Exception:  # whatever damaged bytes raise in there
        return {}


def _numbers(options: Any) -> Iterator[tuple[str, Any]]:
    """Whatever else there is is not decoded: a few bytes can claim to be vectors of any length."""
    OPERANDS.check(len(options), "a custom op")
    for place in range(len(options)):
        value = options.Values[place]
        if value.IsBool or value.IsNumeric:
            yield options.Keys[place].AsKey, value.Value


@dataclass(frozen=True)
class TfliteModel:
    """A graph; `states`, by tensors, are the last of its inputs and outputs."""

    tensors: tuple[TfliteTensor, ...]
    ops: tuple[TfliteOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[StatePair, ...] = ()


def check_numbers(model: TfliteModel) -> None:
    """An error if a graph names tensors that it has not."""
    for index in (*model.inputs, *model.outputs):
        if not 0 <= index < len(model.tensors):
            raise ValueError(f"the model's inputs or outputs name tensor {index}, which is not there")
    for op in model.ops:
        for index in (*op.inputs, *op.outputs):
            if not -1 <= index < len(model.tensors):
                raise ValueError(f"op {op.index} names tensor {index}, which is not there")


def check_references(model: TfliteModel, file: str) -> None:
    """Each op reads what is there already: constants, inputs, results of earlier ops. Each tensor is written once."""
    known = {index for index, tensor in enumerate(model.tensors) if tensor.value is not None}
    for index in model.inputs:
        _define(model, known, index, f"{file}: an input")
    for op in model.ops:
        _check_op(model, op, known, f"{file}: op {op.index} ({op.kind})")
    unknown = [index for index in model.outputs if index not in known]
    if unknown:
        raise NpukitError(f"{file}: nothing writes the model's output {unknown[0]}")


def _check_op(model: TfliteModel, op: TfliteOp, known: set[int], place: str) -> None:
    missing = [model.tensors[index].name for index in op.inputs if index >= 0 and index not in known]
    if missing:
        raise NpukitError(f"{place} reads {missing[0]!r} before anything writes it")
    for index in op.outputs:
        if index >= 0:
            _define(model, known, index, place)


def _define(model: TfliteModel, known: set[int], index: int, place: str) -> None:
    if index in known:
        raise NpukitError(f"{place} writes tensor {model.tensors[index].name!r}, which has its value already")
    known.add(index)
