"""ONNX files as Relax modules, through TVM's importer. npukit reports a faulty file before TVM reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper
from tvm.ir import IRModule
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError, first_line
from npukit.frontend.given import ops_of
from npukit.frontend.onnx.attributes import schema_of
from npukit.frontend.onnx.claims import check_claims, check_inferred, check_tables, constants_of
from npukit.frontend.onnx.external import load_external_data
from npukit.frontend.onnx.fold import folded
from npukit.frontend.onnx.importer import relax_of
from npukit.frontend.onnx.ops import CONVERTERS
from npukit.frontend.onnx.qoperator import rewritten
from npukit.frontend.shapes import InputShapes, check_input_names, closed_shape, fixed_values
from npukit.frontend.states import with_output_names

PER_CHANNEL_OPSET = 13
"""First opset with scales by channel."""


def import_onnx(data: bytes, path: Path, input_shapes: InputShapes, custom: Mapping[str, str]) -> IRModule:
    """The model as a Relax module. `data`: the bytes of the file `path`; `custom`: C of custom ops, by name."""
    check_tables(data, path.name)
    model = _parse(data, path.name)
    check_claims(model, path.name)
    load_external_data(model, path)
    _check_structure(model, path.name)
    check_inferred(model, path.name)
    check_input_names(path.name, [value.name for value in _inputs(model)], input_shapes)
    _widen(model, path.name)
    _fix(model, input_shapes, path.name)
    shapes = {value.name: _shape(value, input_shapes, path.name) for value in _inputs(model)}
    model = rewritten(folded(model, shapes, path.name), path.name)
    _check_ops(model, path.name, custom)
    return with_output_names(relax_of(model, path.name, shapes, custom), [value.name for value in model.graph.output])


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as fault:
        raise NpukitError(f"{name} is damaged, or no ONNX model", tries=["export the model again"]) from fault
    if not model.graph.node or not model.opset_import:
        raise NpukitError(f"{name} is no ONNX model: it has no graph")
    return model


def _check_structure(model: onnx.ModelProto, name: str) -> None:
    for tensor in constants_of(model.graph):
        try:
            numpy_helper.to_array(tensor)
        except Exception as fault:
            raise NpukitError(f"{name}: tensor {tensor.name!r} is damaged: {first_line(fault)}") from fault
    try:
        onnx.checker.check_model(_as_the_checker_wants(model))
    except Exception as fault:
        raise NpukitError(f"{name} is not a valid ONNX model: {first_line(fault)}") from fault


def _as_the_checker_wants(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without attributes of quantisation, for the checker.

    Quantisers write scales by channel even into opsets without them, and every runtime accepts this.
    """
    if min(entry.version for entry in model.opset_import) >= PER_CHANNEL_OPSET:
        return model
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    for node in plain.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            del node.attribute[:]
    return plain


def _check_ops(model: onnx.ModelProto, name: str, custom: Mapping[str, str]) -> None:
    known = {*onnx_frontend._get_convert_map(), *CONVERTERS}
    given = ops_of(name, custom, {node.op_type for node in model.graph.node})
    for index, node in enumerate(model.graph.node):
        if node.op_type in given:
            continue
        if node.domain not in ("", "ai.onnx") or node.op_type not in known:
            raise NpukitError(
                f"{name}: node {index} ({node.name or 'unnamed'}) is {node.op_type}, which npukit does not read yet",
                tries=[
                    "export the model in QDQ form, with standard ONNX operators",
                    f"give its C: --custom {node.op_type}=FILE.c (docs/models.md)",
                ],
            )
        _check_node(node, f"{name}: node {index} ({node.name or 'unnamed'}, {node.op_type})", model.opset_import)


def _check_node(node: onnx.NodeProto, place: str, imports: Any) -> None:
    """Raises an error if a node lacks a required input. TVM's importer does not check and crashes."""
    version = next((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), PER_CHANNEL_OPSET)
    wanted = schema_of(node.op_type, version).inputs
    for position, given in enumerate(wanted):
        optional = given.option == onnx.defs.OpSchema.FormalParameterOption.Optional
        if not optional and not (position < len(node.input) and node.input[position]):
            raise NpukitError(f"{place} lacks its input {given.name}")
    variadic = wanted and wanted[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    if variadic and not all(node.input[len(wanted) - 1 :]):
        raise NpukitError(f"{place} lacks one of its inputs")


def _widen(model: onnx.ModelProto, name: str) -> None:
    """Replaces 4-bit constants by equal 8-bit constants. Only DequantizeLinear may read 4-bit constants."""
    wider: Mapping[int, type] = {onnx.TensorProto.INT4: np.int8, onnx.TensorProto.UINT4: np.uint8}
    narrow = {tensor.name: tensor for tensor in constants_of(model.graph) if tensor.data_type in wider}
    for node in model.graph.node:
        if node.op_type != "DequantizeLinear" and (given := narrow.keys() & set(node.input)):
            raise NpukitError(
                f"{name}: {node.op_type} ({node.name or 'unnamed'}) reads {min(given)!r}, which has 4 bits a number",
                tries=["4 bits for weights alone: activations of 8 or 16"],
            )
    for tensor in narrow.values():
        wide = numpy_helper.to_array(tensor).astype(wider[tensor.data_type])
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def _inputs(model: onnx.ModelProto) -> list[Any]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def _fix(model: onnx.ModelProto, given: InputShapes, name: str) -> None:
    """Turns inputs with a constant value into constants."""
    for value in _inputs(model):
        number = fixed_values(given).get(value.name)
        if number is not None:
            kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            constant = np.full(_shape(value, given, name), number, kind)
            model.graph.initializer.append(numpy_helper.from_array(constant, value.name))


def _shape(value: Any, input_shapes: InputShapes, name: str) -> list[int]:
    """The input's shape, with the user's values for open sizes."""
    sizes = value.type.tensor_type.shape.dim
    stated = tuple(size.dim_value if size.HasField("dim_value") else 0 for size in sizes)
    return list(closed_shape(name, value.name, stated, input_shapes))
