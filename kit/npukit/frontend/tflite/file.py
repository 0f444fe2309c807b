"""Reads a TFLite flatbuffer into plain values. Any damage to the bytes raises an NpukitError."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, cast

import numpy as np
import tflite
from flatbuffers.number_types import Int32Flags

from npukit.errors import NpukitError, first_line
from npukit.frontend.tflite.blockwise import BLOCKWISE, Blockwise
from npukit.frontend.tflite.dilated import with_dilated
from npukit.frontend.tflite.fields import OpOptions, refuse_unread
from npukit.frontend.tflite.graphs import COMPOSITE, flattened
from npukit.frontend.tflite.model import (
    COMPLEX,
    CUSTOM,
    TfliteModel,
    TfliteOp,
    TfliteTensor,
    check_numbers,
    check_references,
    custom_kind,
)
from npukit.net.limits import GRAPHS, NAME_BYTES, NAMES_BYTES, OPERANDS, OPS, TENSOR_BYTES, TENSORS, Limit, check_shape
from npukit.net.tensor import Quantization

DAMAGE = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, KeyError)
"""Exceptions raised in flatbuffers and numpy by damaged bytes."""


SCALE_BYTES = 64
"""Memory of a scale and its zero point as Python numbers, in bytes."""

OPEN = -1
"""An open size in the file. It becomes 0 in a TfliteTensor."""

_TYPES = ("float32", "float16", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool")
DTYPES = {getattr(tflite.TensorType, name.upper()): name for name in _TYPES} | {tflite.TensorType.INT4: "int8"}


MODEL_FIELDS = frozenset(
    ("Version", "OperatorCodes", "Subgraphs", "Description", "Buffers", "MetadataBuffer", "Metadata", "SignatureDefs")
)
GRAPH_FIELDS = frozenset(("Tensors", "Inputs", "Outputs", "Operators", "Name", "DebugMetadataIndex"))
TENSOR_FIELDS = frozenset(
    ("Shape", "Type", "Buffer", "Name", "Quantization", "IsVariable", "HasRank", "ShapeSignature", "Sparsity")
)
QUANTIZATION_FIELDS = frozenset(("Min", "Max", "Scale", "ZeroPoint", "QuantizedDimension"))
OP_FIELDS = frozenset(
    (
        *("OpcodeIndex", "Inputs", "Outputs", "BuiltinOptionsType", "BuiltinOptions"),
        *("CustomOptionsFormat", "DebugMetadataIndex", "MutatingVariableInputs"),
    )
)
STATE_FIELDS = frozenset(("Intermediates",))
COMPOSITE_FIELDS = frozenset(("BuiltinOptions2", "BuiltinOptions2Type"))
"""Fields of each kind of table that are read or do not affect the computation. Other fields are refused."""


def is_tflite(data: bytes) -> bool:
    return data[4:8] == b"TFL3"


def read_tflite(data: bytes, name: str) -> TfliteModel:
    """The model as one graph. `name`: the file's name in errors."""
    if not is_tflite(data):
        raise NpukitError(f"{name} is not a TFLite model: its identifier is not TFL3")
    try:
        model: Any = tflite.Model.GetRootAs(data)
        refuse_unread(model, MODEL_FIELDS, f"{name}: its header")
        codes = [_kind(code) for code in _items(name, OPS, model.OperatorCodesLength(), model.OperatorCodes)]
        graphs = _items(name, GRAPHS, model.SubgraphsLength(), model.Subgraphs)
        read = flattened([_graph(data, model, graph, codes, name) for graph in graphs], name)
        check_references(read, name)
        return with_dilated(read)
    except DAMAGE as fault:
        raise NpukitError(
            f"{name} is damaged: it cannot be read as a TFLite model ({first_line(fault)})",
            tries=["download or export the file again"],
        ) from fault


def _graph(data: bytes, model: Any, graph: Any, codes: list[str], name: str) -> TfliteModel:
    refuse_unread(graph, GRAPH_FIELDS, f"{name}: its graph")
    found, names, total, blocks = list[TfliteTensor](), 0, 0, dict[int, Blockwise]()
    for table in _items(name, TENSORS, graph.TensorsLength(), graph.Tensors):
        tensor = _tensor(data, model, table, name)
        names += len(tensor.name)
        total += prod(tensor.shape) * (np.dtype(tensor.dtype).itemsize if tensor.dtype in DTYPES.values() else 1)
        total += len(tensor.quantization.scales) * SCALE_BYTES if tensor.quantization else 0
        NAMES_BYTES.check(names, name)
        TENSOR_BYTES.check(total, name)
        if by_block := Blockwise.of(table.Quantization(), tensor.name):
            blocks[len(found)] = by_block
        found.append(tensor)
    for place, each in blocks.items():
        found[place] = each.real(found[place], found)
    tensors = tuple(found)
    operators = _items(name, OPS, graph.OperatorsLength(), graph.Operators)
    ops = tuple(_op(index, op, codes, name) for index, op in enumerate(operators))
    read = TfliteModel(tensors, ops, _indices(graph.InputsAsNumpy()), _indices(graph.OutputsAsNumpy()))
    check_numbers(read)
    return read


def _items(name: str, limit: Limit, length: int, item: Callable[[int], Any]) -> Iterator[Any]:
    """The tables of a vector, whose length is limited."""
    limit.check(length, name)
    return (item(index) for index in range(length))


def _indices(vector: Any) -> tuple[int, ...]:
    return () if isinstance(vector, int) else tuple(vector.tolist())


def _kind(code: Any) -> str:
    """The name of a builtin or custom op. An op's version is ignored: it follows from the fields used."""
    # The accessor of the newer field ignores small codes, which some writers store there alone.
    slot = code._tab.Offset(_BUILTIN_CODE)
    newer = code._tab.Get(Int32Flags, code._tab.Pos + slot) if slot else 0
    number = max(newer, code.DeprecatedBuiltinCode())
    if number == tflite.BuiltinOperator.CUSTOM:
        return custom_kind((code.CustomCode() or b"").decode(errors="replace"))
    return _BUILTINS.get(number, f"builtin {number}")


_BUILTIN_CODE = 10
"""Place of the field in the table's slots."""
_BUILTINS = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
_OPTIONS = {number: name for name, number in vars(tflite.BuiltinOptions).items() if isinstance(number, int)}


def _op(index: int, op: Any, codes: list[str], file: str) -> TfliteOp:
    if op.OpcodeIndex() >= len(codes):
        raise ValueError(f"operator {index} has no operator code")
    kind = codes[op.OpcodeIndex()]
    place = f"{file}: op {index} ({kind})"
    OPERANDS.check(max(op.InputsLength(), op.OutputsLength()), place)
    extra = {"CustomOptions"} if kind.startswith(CUSTOM) else STATE_FIELDS if "LSTM" in kind else set[str]()
    extra |= COMPOSITE_FIELDS if kind == COMPOSITE else set()
    refuse_unread(op, OP_FIELDS | extra, place)
    if "LSTM" not in kind and np.any(op.MutatingVariableInputsAsNumpy()):
        raise NpukitError(f"{place} changes its inputs, which npukit does not read")
    table, number, options = op.BuiltinOptions(), op.BuiltinOptionsType(), None
    if table is not None and number != tflite.BuiltinOptions.NONE:
        if number not in _OPTIONS:
            raise ValueError(f"an op's options are of type {number}, which TFLite does not define")
        options = getattr(tflite, _OPTIONS[number])()
        options.Init(table.Bytes, table.Pos)
    if kind == COMPOSITE and (newer := op.BuiltinOptions2()) is not None:
        options = cast(Any, tflite).StableHLOCompositeOptions()
        options.Init(newer.Bytes, newer.Pos)
    ends = _indices(op.InputsAsNumpy()), _indices(op.OutputsAsNumpy())
    return TfliteOp(index, kind, *ends, OpOptions(options), bytes(_indices(op.CustomOptionsAsNumpy())))


def _tensor(data: bytes, model: Any, tensor: Any, file: str) -> TfliteTensor:
    raw = tensor.Name() or b""
    NAME_BYTES.check(len(raw), f"{file}: a tensor")
    name = raw.decode(errors="replace")
    refuse_unread(tensor, TENSOR_FIELDS, f"{file}: tensor {name!r}")
    sizes = _indices(tensor.ShapeAsNumpy())
    shape = tuple(0 if size == OPEN else size for size in sizes)
    check_shape(shape, f"{file}: tensor {name!r}")
    dtype = {**DTYPES, tflite.TensorType.COMPLEX64: COMPLEX}.get(tensor.Type(), f"type {tensor.Type()}")
    quantization = _quantization(tensor.Quantization(), name, shape, file)
    value = _value(data, model, tensor, shape, dtype)
    if value is None and tensor.Type() == tflite.TensorType.INT4:
        raise NpukitError(f"{file}: tensor {name!r} has four bits a number, which npukit reads of constants alone")
    signature = _indices(tensor.ShapeSignatureAsNumpy())
    is_open = [stated == OPEN for stated in signature] if len(signature) == len(shape) else [False] * len(shape)
    opened = tuple(0 if each else size for each, size in zip(is_open, shape, strict=True))
    return TfliteTensor(name, shape, dtype, value, quantization, bool(sizes) or tensor.HasRank(), opened)


def _value(data: bytes, model: Any, tensor: Any, shape: tuple[int, ...], dtype: str) -> np.ndarray | None:
    """The value of a constant as stored in the file; zeros for a variable; None for other tensors. A variable holds an
    op's state and is zero before each frame."""
    if tensor.Buffer() >= model.BuffersLength():
        raise ValueError("a tensor names a buffer that is not there")
    if tensor.IsVariable() and dtype in DTYPES.values():
        return np.broadcast_to(np.zeros((), dtype), shape)
    raw = _raw(data, model.Buffers(tensor.Buffer()))
    absent = not len(raw) and (prod(shape) or OPEN in _indices(tensor.ShapeAsNumpy()))
    if tensor.Buffer() == 0 or dtype not in DTYPES.values() or absent:
        return None
    if tensor.Type() == tflite.TensorType.INT4:
        # Two 4-bit numbers per byte, the first in the lower half.
        packed = np.frombuffer(raw, np.uint8)
        halves = np.stack([packed << 4, packed & 0xF0], axis=-1).ravel()[: prod(shape)]
        raw = halves.view(np.int8) >> 4
    if tensor.Sparsity() is not None:
        return densified(np.frombuffer(raw, dtype), tensor.Sparsity(), shape)
    if len(raw) != prod(shape) * np.dtype(dtype).itemsize:
        raise ValueError(f"a constant of shape {list(shape)} has {len(raw)} bytes")
    return np.frombuffer(raw, dtype).reshape(shape)


def _raw(data: bytes, buffer: Any) -> Any:
    """The bytes of a buffer. In large models, buffers follow after the flatbuffer."""
    if buffer.Offset() > 1:
        return memoryview(data)[buffer.Offset() : buffer.Offset() + buffer.Size()]
    vector = buffer.DataAsNumpy()
    return b"" if isinstance(vector, int) else vector


def _quantization(parameters: Any, name: str, shape: tuple[int, ...], file: str) -> Quantization | None:
    if parameters is None:
        return None
    read = QUANTIZATION_FIELDS | ({"Details", "DetailsType"} if parameters.DetailsType() == BLOCKWISE else set[str]())
    refuse_unread(parameters, read, f"{file}: the quantisation of tensor {name!r}")
    if parameters.ScaleLength() == 0:
        return None
    scales = np.asarray(parameters.ScaleAsNumpy())
    if not np.all(np.isfinite(scales) & (scales > 0)):
        raise NpukitError(f"{file}: tensor {name!r} has a scale that is zero, negative or not a number")
    zeros = parameters.ZeroPointAsNumpy()
    zeros = np.zeros(len(scales), np.int64) if isinstance(zeros, int) else np.asarray(zeros)
    # Older converters state a wrong axis for biases, so a vector's axis is always 0.
    stated = 0 if len(shape) == 1 else parameters.QuantizedDimension()
    axis = stated if len(scales) > 1 else None
    if len(zeros) != len(scales) or (axis is not None and (axis < 0 or shape[axis] != len(scales))):
        raise ValueError(f"tensor {name!r} has {len(scales)} scales and {len(zeros)} zero points")
    return Quantization(tuple(scales.tolist()), tuple(zeros.tolist()), axis)


SPARSE = tflite.DimensionType.SPARSE_CSR
VECTORS = {
    tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
    tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
    tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
}


def densified(stored: np.ndarray, sparsity: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The dense constant. `stored`: the stored numbers; `sparsity`: their layout. A constant is stored axis by axis, in
    an order of its own. A dense axis has all indices. A sparse axis lists the indices present for each position along
    the preceding axes. An axis may be split into blocks, whose inner axes come last."""
    order = np.asarray(sparsity.TraversalOrderAsNumpy()).ravel()
    blocks = np.asarray(sparsity.BlockMapAsNumpy() if sparsity.BlockMapLength() else ()).ravel()
    places = _places(sparsity, prod(shape))
    if sorted(order) != list(range(len(shape) + len(blocks))) or len(places) != len(order):
        raise ValueError("a sparse constant's axes are not those of its shape")
    at = [places[list(order).index(axis)] for axis in range(len(order))]
    for inner, axis in enumerate(blocks, len(shape)):
        size = sparsity.DimMetadata(list(order).index(inner)).DenseSize()
        at[axis] = at[axis] * size + at[inner]
    dense = np.zeros(shape, stored.dtype)
    dense[tuple(at[: len(shape)])] = stored
    return dense


def _places(sparsity: Any, most: int) -> list[np.ndarray]:
    """The index of each stored number along each axis, in the order of storage."""
    places: list[np.ndarray] = []
    count = 1
    for level in range(sparsity.DimMetadataLength()):
        axis = sparsity.DimMetadata(level)
        if axis.Format() == SPARSE:
            ends = _vector(axis.ArraySegmentsType(), axis.ArraySegments())
            own = _vector(axis.ArrayIndicesType(), axis.ArrayIndices())
            counts = np.diff(ends)
            if len(counts) != count or counts.min(initial=0) < 0 or counts.sum() != len(own):
                raise ValueError("a sparse constant's places are not as many as it says")
        elif count * axis.DenseSize() > most:
            raise ValueError("a sparse constant has more numbers than its shape")
        else:
            counts, own = np.full(count, axis.DenseSize()), np.tile(np.arange(axis.DenseSize()), count)
        count = int(counts.sum())
        places = [np.repeat(each, counts) for each in places] + [own]
    return places


def _vector(kind: int, table: Any) -> np.ndarray:
    """The numbers of a vector, in any of the schema's vector types."""
    if kind not in VECTORS or table is None:
        raise ValueError("a sparse constant lacks its places")
    vector: Any = VECTORS[kind]()
    vector.Init(table.Bytes, table.Pos)
    return np.asarray(vector.ValuesAsNumpy()).ravel().astype(np.int64)
