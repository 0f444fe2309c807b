"""Reads a TFLite flatbuffer into plain values; whatever is wrong with the bytes is one NpukitError."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tflite

from npukit.errors import NpukitError
from npukit.net.check import LARGEST_TENSOR
from npukit.net.tensor import Quantization

DAMAGE = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, KeyError)
"""What reading damaged bytes raises from within flatbuffers and numpy."""


OPEN = -1
"""A size that is left open; it is 0 in a TfliteTensor."""

DTYPES = {
    tflite.TensorType.FLOAT32: "float32",
    tflite.TensorType.INT8: "int8",
    tflite.TensorType.UINT8: "uint8",
    tflite.TensorType.INT16: "int16",
    tflite.TensorType.INT32: "int32",
    tflite.TensorType.INT64: "int64",
    tflite.TensorType.BOOL: "bool",
}


@dataclass(frozen=True)
class TfliteTensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    value: np.ndarray | None = None
    quantization: Quantization | None = None


@dataclass(frozen=True)
class TfliteOp:
    """`options` holds the fields of the op's options table by their names in the schema's accessors."""

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class TfliteModel:
    tensors: tuple[TfliteTensor, ...]
    ops: tuple[TfliteOp, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def is_tflite(data: bytes) -> bool:
    return data[4:8] == b"TFL3"


def read_tflite(data: bytes, name: str) -> TfliteModel:
    """The model's first subgraph. `name` is what errors call the file."""
    if not is_tflite(data):
        raise NpukitError(f"{name} is not a TFLite model: its identifier is not TFL3")
    try:
        return _read(data, name)
    except DAMAGE as fault:
        raise NpukitError(
            f"{name} is damaged: it cannot be read as a TFLite model ({fault})",
            tries=["download or export the file again"],
        ) from fault


def _read(data: bytes, name: str) -> TfliteModel:
    model: Any = tflite.Model.GetRootAs(data)
    if model.SubgraphsLength() != 1:
        raise NpukitError(f"{name} has {model.SubgraphsLength()} subgraphs; npukit reads models with one")
    graph: Any = model.Subgraphs(0)
    codes = [_kind(code) for code in _items(data, model.OperatorCodesLength, model.OperatorCodes)]
    tensors = tuple(_tensor(data, model, tensor, name) for tensor in _items(data, graph.TensorsLength, graph.Tensors))
    ops = tuple(_op(index, op, codes) for index, op in enumerate(_items(data, graph.OperatorsLength, graph.Operators)))
    read = TfliteModel(tensors, ops, _indices(graph.InputsAsNumpy()), _indices(graph.OutputsAsNumpy()))
    _check_references(read, name)
    return read


def _items(data: bytes, length: Callable[[], int], item: Callable[[int], Any]) -> Iterator[Any]:
    """A vector of tables; a vector longer than the file is damage, not a reason to loop."""
    if length() > len(data):
        raise ValueError("a vector is longer than the file")
    return (item(index) for index in range(length()))


def _indices(vector: Any) -> tuple[int, ...]:
    return () if isinstance(vector, int) else tuple(int(index) for index in vector)


def _kind(code: Any) -> str:
    """The builtin's name, or the custom op's own."""
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if number == tflite.BuiltinOperator.CUSTOM:
        return f"custom op {code.CustomCode().decode(errors='replace')!r}"
    return _BUILTINS.get(number, f"builtin {number}")


_BUILTINS = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
_OPTIONS = {number: name for name, number in vars(tflite.BuiltinOptions).items() if isinstance(number, int)}


def _op(index: int, op: Any, codes: list[str]) -> TfliteOp:
    code = op.OpcodeIndex()
    if code >= len(codes):
        raise ValueError(f"operator {index} has no operator code")
    return TfliteOp(index, codes[code], _indices(op.InputsAsNumpy()), _indices(op.OutputsAsNumpy()), _options(op))


def _options(op: Any) -> dict[str, Any]:
    table, kind = op.BuiltinOptions(), _OPTIONS.get(op.BuiltinOptionsType(), "NONE")
    if table is None or kind == "NONE":
        return {}
    options = getattr(tflite, kind)()
    options.Init(table.Bytes, table.Pos)
    return {name: getattr(options, name)() for name in _fields(type(options))}


def _fields(options: type) -> Iterator[str]:
    """The accessors without arguments: scalars, and vectors as numpy arrays."""
    for name, member in vars(options).items():
        code = getattr(member, "__code__", None)
        if name[0].isupper() and code is not None and code.co_argcount == 1:
            yield name


def _tensor(data: bytes, model: Any, tensor: Any, file: str) -> TfliteTensor:
    name = (tensor.Name() or b"").decode(errors="replace")
    shape = tuple(0 if size == OPEN else size for size in _indices(tensor.ShapeAsNumpy()))
    if any(size < 0 for size in shape) or prod(shape) > LARGEST_TENSOR:
        raise NpukitError(f"{file}: tensor {name!r} has the impossible shape {list(shape)}")
    dtype = DTYPES.get(tensor.Type(), f"type {tensor.Type()}")
    quantization = _quantization(tensor.Quantization(), name, shape, file)
    return TfliteTensor(name, shape, dtype, _value(data, model, tensor, shape, dtype), quantization)


def _value(data: bytes, model: Any, tensor: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
    """A constant's; a variable, which an op keeps its state in, is zero before each frame."""
    if tensor.Buffer() >= model.BuffersLength():
        raise ValueError("a tensor names a buffer that is not there")
    if tensor.IsVariable() and dtype in DTYPES.values():
        return np.zeros(shape, dtype)
    buffer = model.Buffers(tensor.Buffer())
    raw = _raw(data, buffer)
    if tensor.Buffer() == 0 or dtype not in DTYPES.values() or (not raw and prod(shape)):
        return None
    if len(raw) != prod(shape) * np.dtype(dtype).itemsize:
        raise ValueError(f"a constant of shape {list(shape)} has {len(raw)} bytes")
    return np.frombuffer(raw, dtype).reshape(shape)


def _raw(data: bytes, buffer: Any) -> bytes:
    """A buffer's bytes, which large models keep behind the flatbuffer."""
    if buffer.Offset() > 1:
        return data[buffer.Offset() : buffer.Offset() + buffer.Size()]
    vector = buffer.DataAsNumpy()
    return b"" if isinstance(vector, int) else vector.tobytes()


def _quantization(parameters: Any, name: str, shape: tuple[int, ...], file: str) -> Quantization | None:
    if parameters is None or parameters.ScaleLength() == 0:
        return None
    scales = np.asarray(parameters.ScaleAsNumpy())
    if not np.all(np.isfinite(scales) & (scales > 0)):
        raise NpukitError(f"{file}: tensor {name!r} has a scale that is zero, negative or not a number")
    zeros = parameters.ZeroPointAsNumpy()
    zeros = np.zeros(len(scales), np.int64) if isinstance(zeros, int) else np.asarray(zeros)
    axis = parameters.QuantizedDimension() if len(scales) > 1 else None
    if len(zeros) != len(scales) or (axis is not None and shape[axis] != len(scales)):
        raise ValueError(f"tensor {name!r} has {len(scales)} scales and {len(zeros)} zero points")
    return Quantization(tuple(map(float, scales)), tuple(map(int, zeros)), axis)


def _check_references(model: TfliteModel, file: str) -> None:
    """Each op reads what is there already: constants, inputs, results of earlier ops."""
    for index in (*model.inputs, *model.outputs):
        if not 0 <= index < len(model.tensors):
            raise ValueError(f"the model's inputs or outputs name tensor {index}, which is not there")
    known = {*model.inputs, *(index for index, tensor in enumerate(model.tensors) if tensor.value is not None)}
    for op in model.ops:
        for index in (*op.inputs, *op.outputs):
            if not -1 <= index < len(model.tensors):
                raise ValueError(f"op {op.index} names tensor {index}, which is not there")
        missing = [model.tensors[index].name for index in op.inputs if index >= 0 and index not in known]
        if missing:
            raise NpukitError(f"{file}: op {op.index} ({op.kind}) reads {missing[0]!r} before anything writes it")
        known |= set(op.outputs)
    unknown = [index for index in model.outputs if index not in known]
    if unknown:
        raise NpukitError(f"{file}: nothing writes the model's output {unknown[0]}")
