"""A TFLite model as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from npukit.errors import NpukitError
from npukit.frontend.shapes import StatePair
from npukit.frontend.tflite.fields import OpOptions
from npukit.net.limits import OPERANDS
from npukit.net.tensor import Quantization

COMPLEX = "complex64"
"""Type of complex numbers. Their emitted values are float32 pairs on an additional last axis."""
CUSTOM = "custom op"
"""Prefix of the kinds of custom ops."""


def custom_kind(name: str) -> str:
    """The kind of a custom op, from its name."""
    return f"{CUSTOM} {name!r}"


def name_of(kind: str) -> str:
    """The name of a custom op; empty for a builtin op."""
    return kind.removeprefix(CUSTOM).strip(" '") if kind.startswith(CUSTOM) else ""


@dataclass(frozen=True)
class TfliteTensor:
    """A tensor's declaration. `value`: a constant's value; `has_shape`: the shape is stated, at least in part. `open`:
    the shape with 0 for open sizes. `shape` holds their default values."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    value: np.ndarray | None = None
    quantization: Quantization | None = None
    has_shape: bool = True
    open: tuple[int, ...] = ()


@dataclass(frozen=True)
class TfliteOp:
    """An op of the file. `options`: the table of options; `custom`: the bytes of a custom op's options. A convolution
    inside dilating ops also has `dilation` and `padding` (top, left, bottom, right)."""

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: OpOptions
    custom: bytes = b""
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)


def options_of(op: TfliteOp) -> dict[str, Any]:
    """The numeric options of a custom op by name, from a flexbuffers map; empty if the bytes are no map. Other values
    are not decoded: a few bytes can claim to be vectors of any length."""
    try:
        options: Any = flexbuffers.GetRoot(op.custom).AsMap
        OPERANDS.check(len(options), "a custom op")
        pairs = [(options.Keys[place].AsKey, options.Values[place]) for place in range(len(options))]
        return {name: value.Value for name, value in pairs if value.IsBool or value.IsNumeric}
    except Exception:  # damaged bytes may raise any exception
        return {}


@dataclass(frozen=True)
class TfliteModel:
    """A graph. `states` refer to tensors, which are the last of the inputs and outputs. `remarks`: for the user."""

    tensors: tuple[TfliteTensor, ...]
    ops: tuple[TfliteOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    states: tuple[StatePair, ...] = ()
    remarks: tuple[str, ...] = ()


def check_numbers(model: TfliteModel) -> None:
    """Raises an error if a graph refers to a tensor that does not exist."""
    for index in (*model.inputs, *model.outputs):
        if not 0 <= index < len(model.tensors):
            raise ValueError(f"the model's inputs or outputs name tensor {index}, which is not there")
    for op in model.ops:
        for index in (*op.inputs, *op.outputs):
            if not -1 <= index < len(model.tensors):
                raise ValueError(f"op {op.index} names tensor {index}, which is not there")


def check_references(model: TfliteModel, file: str) -> None:
    """Checks that each op reads only constants, inputs and earlier results, and that each tensor is written once."""
    known = {index for index, tensor in enumerate(model.tensors) if tensor.value is not None}
    empty = {index for index in known if 0 in model.tensors[index].shape}

    def define(index: int, place: str) -> None:
        if index in known - empty:
            raise NpukitError(f"{place} writes tensor {model.tensors[index].name!r}, which has its value already")
        known.add(index)

    for index in model.inputs:
        define(index, f"{file}: an input")
    for op in model.ops:
        place = f"{file}: op {op.index} ({op.kind})"
        missing = [model.tensors[index].name for index in op.inputs if index >= 0 and index not in known]
        if missing:
            raise NpukitError(f"{place} reads {missing[0]!r} before anything writes it")
        for index in dict.fromkeys(op.outputs):  # a converter gives results that nothing reads the same tensor
            if index >= 0:
                define(index, place)
    unknown = [index for index in model.outputs if index not in known]
    if unknown:
        raise NpukitError(f"{file}: nothing writes the model's output {unknown[0]}")
