"""Checks of an ONNX file before its import: sizes against limits, declarations against inferred shapes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import onnx
from onnx import TensorProto, helper

from npukit.errors import NpukitError, first_line
from npukit.net.limits import NAME_BYTES, NAMES_BYTES, OPERANDS, OPS, TABLES, TENSOR_BYTES, TENSORS, check_shape

VARINT, WIDE, BYTES, NARROW = 0, 1, 2, 5
"""Wire types of protobuf fields."""

BRANCHES = ("If", "Loop")
"""Ops with graphs of their own."""

DEEPEST = 8
"""Deepest nesting of branches and loops."""

KNOWN_VALUES = 256
"""Most elements of a constant whose values may determine a shape."""


def check_tables(data: bytes, name: str) -> None:
    """Limits the number of fields in a file, nested messages included. Parsing takes some hundred bytes per field."""
    parts, count, most = [(memoryview(data), onnx.ModelProto.DESCRIPTOR)], 0, TABLES.most
    while parts:
        part, kind = parts.pop()
        for number, content in _fields(part):
            count += 1
            if count > most:
                TABLES.check(count, name)
            inner = kind.fields_by_number.get(number)
            if content is not None and inner is not None and inner.message_type is not None:
                parts.append((content, inner.message_type))


def _fields(part: memoryview) -> Iterator[tuple[int, memoryview | None]]:
    """Each field's number and, if the field has a length, its content. Stops at malformed bytes."""
    place = 0
    while place < len(part):
        key, place = _varint(part, place)
        size = {VARINT: 0, WIDE: 8, NARROW: 4}.get(key & 7)
        if key & 7 == VARINT:
            _, place = _varint(part, place)
        if key & 7 == BYTES:
            size, place = _varint(part, place)
        if size is None:
            return
        yield key >> 3, part[place : place + size] if key & 7 == BYTES else None
        place += size


def _varint(part: memoryview, place: int) -> tuple[int, int]:
    """A number of variable length, and the offset after the number."""
    value = shift = 0
    while place < len(part):
        byte = part[place]
        value, place, shift = value | (byte & 127) << shift, place + 1, shift + 7
        if byte < 128 or shift > 63:
            break
    return value, place


def check_claims(model: onnx.ModelProto, name: str) -> None:
    """Raises an error if the graph exceeds a limit or has parts that npukit does not read."""
    graph = model.graph
    for what, given in (
        ("functions of its own", model.functions),
        ("training", model.training_info),
        ("sparse constants", graph.sparse_initializer),
    ):
        if given:
            raise NpukitError(f"{name} has {what}, which npukit does not read")
    graphs = list(_graphs(graph, name, 0))
    OPS.check(sum(len(each.node) for each in graphs), name)
    TENSORS.check(sum(len(each.initializer) + sum(len(node.output) for node in each.node) for each in graphs), name)
    for each in graphs:
        for index, node in enumerate(each.node):
            _check_node(node, f"{name}: node {index}")
        _check_names(each, name)
    total = 0
    for tensor in constants_of(graph):
        check_shape(tensor.dims, f"{name}: tensor {tensor.name!r}")
        total += prod(tensor.dims) * _item_bytes(tensor.data_type)
        TENSOR_BYTES.check(total, name)


def _graphs(graph: onnx.GraphProto, name: str, depth: int) -> Iterator[onnx.GraphProto]:
    """The graph and, recursively, the graphs of branches and loops."""
    yield graph
    for index, node in enumerate(graph.node):
        inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        if inner and (node.op_type not in BRANCHES or depth == DEEPEST):
            much = "graphs too deep in each other" if node.op_type in BRANCHES else "a graph"
            raise NpukitError(f"{name}: node {index} ({node.op_type}) holds {much}, which npukit does not read")
        for each in inner:
            yield from _graphs(each, name, depth + 1)


def _check_node(node: onnx.NodeProto, place: str) -> None:
    OPERANDS.check(max(len(node.input), len(node.output)), place)
    if any(attribute.graphs for attribute in node.attribute):
        raise NpukitError(f"{place} ({node.op_type}) holds graphs, which npukit does not read")
    parts = next((attribute.i for attribute in node.attribute if attribute.name == "num_outputs"), len(node.output))
    if parts != len(node.output):  # ONNX's shape inference would end the process
        raise NpukitError(f"{place} ({node.op_type}): its attribute num_outputs is {parts}, not {len(node.output)}")


def _check_names(graph: onnx.GraphProto, name: str) -> None:
    values = (*graph.initializer, *graph.input, *graph.output, *graph.value_info)
    names = [*(value.name for value in values), *(node.name for node in graph.node)]
    names += [each for node in graph.node for each in (*node.input, *node.output)]
    NAME_BYTES.check(max(map(len, names), default=0), name)
    NAMES_BYTES.check(sum(map(len, names)), name)


def constants_of(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Constants of the graph, of node attributes and of branches."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from ([attribute.t] if attribute.HasField("t") else [])
            yield from attribute.tensors
            yield from constants_of(attribute.g) if attribute.HasField("g") else ()


def _item_bytes(data_type: int) -> int:
    try:
        return helper.tensor_dtype_to_np_dtype(data_type).itemsize
    except (KeyError, ValueError):
        return 1


def check_inferred(model: onnx.ModelProto, name: str) -> None:
    """Raises an error if shape inference finds a value too large or in contradiction to its declaration."""
    try:
        inferred = onnx.shape_inference.infer_shapes(_without_weights(model))
    except Exception as fault:
        raise NpukitError(f"{name} is not a valid ONNX model: {first_line(fault)}") from fault
    total = 0
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        shape = declared_shape(value) or ()
        check_shape([max(size, 0) for size in shape], f"{name}: {value.name!r}")
        total += prod(max(size, 0) for size in shape) * _item_bytes(value.type.tensor_type.elem_type)
        TENSOR_BYTES.check(total, name)


def declared_shape(value: Any) -> tuple[int, ...] | None:
    """The declared shape of a value, -1 for each open size; None without a declaration."""
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return tuple(size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim)


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs in place of constants too large to determine a shape."""
    graph, plain = model.graph, onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    plain.graph.CopyFrom(onnx.GraphProto(name=graph.name, node=graph.node, input=graph.input))
    given = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if prod(tensor.dims) <= KNOWN_VALUES:
            plain.graph.initializer.append(tensor)
        elif tensor.name not in given:
            plain.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    plain.graph.output.extend(
        helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type or TensorProto.FLOAT, None)
        for value in graph.output
    )
    return plain
