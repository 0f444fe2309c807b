"""ONNX files as Relax modules, through TVM's importer. npukit reports a faulty file before TVM reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import helper, numpy_helper
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data
from tvm.ir import IRModule
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError, first_line
from npukit.frontend.given import ops_of
from npukit.frontend.onnx.blocks import PACKED, in_blocks
from npukit.frontend.onnx.claims import BRANCHES, check_claims, check_inferred, check_tables, constants_of
from npukit.frontend.onnx.fold import DEFINED, FOLDED, folded
from npukit.frontend.onnx.halves import signed
from npukit.frontend.onnx.importer import relax_of
from npukit.frontend.onnx.node import schema_of
from npukit.frontend.onnx.ops import CONVERTERS
from npukit.frontend.onnx.qoperator import RULES, rewritten
from npukit.frontend.onnx.single import in_single, remarks
from npukit.frontend.onnx.spelled import SPELT
from npukit.frontend.shapes import (
    InputShapes,
    check_input_names,
    closed_shape,
    fixed_values,
    with_output_names,
    with_remarks,
)
from npukit.net.limits import TENSOR_BYTES

WITHOUT_NUMBERS = frozenset(
    (
        *BRANCHES,
        *("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceEmpty"),
        *("SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence"),
    )
)
"""Ops on branches, sequences and optional values, which the import resolves."""

PER_CHANNEL_OPSET = 13
"""First opset with scales by channel."""


def import_onnx(data: bytes, path: Path, input_shapes: InputShapes, custom: Mapping[str, str]) -> IRModule:
    """The model as a Relax module. `data`: the bytes of the file `path`; `custom`: C of custom ops, by name."""
    check_tables(data, path.name)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as fault:
        raise NpukitError(f"{path.name} is damaged, or no ONNX model", tries=["export the model again"]) from fault
    if not model.graph.node or not model.opset_import:
        raise NpukitError(f"{path.name} is no ONNX model: it has no graph")
    if not {entry.domain for entry in model.opset_import} & {"", "ai.onnx"}:
        raise NpukitError(
            f"{path.name} has only operators of {model.opset_import[0].domain}, which npukit does not read"
        )
    check_claims(model, path.name)
    _load_external_data(model, path)
    _check_structure(model, path.name)
    check_inferred(model, path.name)
    check_input_names(path.name, [value.name for value in _inputs(model)], input_shapes)
    _widen(model, path.name)
    shapes = _closed_shapes(model, input_shapes, path.name)
    model = rewritten(folded(model, shapes, path.name, custom), path.name)
    model = signed(in_blocks(model, path.name))
    told, model = remarks(model), in_single(model)
    _check_ops(model, path.name, custom)
    made = relax_of(model, path.name, shapes, custom)
    return with_remarks(with_output_names(made, [value.name for value in model.graph.output]), told)


def _load_external_data(model: onnx.ModelProto, path: Path) -> None:
    """Loads external weights into the model. Their files must lie in the folder of the model file `path`."""
    external = [tensor for tensor in constants_of(model.graph) if uses_external_data(tensor)]
    try:
        with catch_warnings(action="ignore"):
            folder = path.resolve().parent
            TENSOR_BYTES.check(sum(_external_bytes(tensor, folder, path.name) for tensor in external), path.name)
            if external:
                load_external_data_for_model(model, str(folder))
    except NpukitError:
        raise
    except Exception as fault:
        reason = getattr(fault, "strerror", None) or first_line(fault)
        raise NpukitError(f"{path.name}: its external data cannot be read: {reason}") from fault


def _external_bytes(tensor: onnx.TensorProto, folder: Path, model: str) -> int:
    """The number of bytes to read for a tensor."""
    info = ExternalDataInfo(tensor)
    location = info.location or ""
    if not location or "\0" in location or not (folder / location).resolve().is_relative_to(folder):
        raise NpukitError(f"{model}: tensor {tensor.name!r} keeps its data outside the model's folder")
    if not (folder / location).is_file():
        raise NpukitError(f"{model}: the file {location!r} with the data of {tensor.name!r} is missing")
    begin, rest = info.offset or 0, (folder / location).stat().st_size - (info.offset or 0)
    length = rest if info.length is None else info.length
    if begin < 0 or not 0 <= length <= rest:
        raise NpukitError(f"{model}: the data of {tensor.name!r} are not all in the file {location!r}")
    return length


def _check_structure(model: onnx.ModelProto, name: str) -> None:
    for tensor in constants_of(model.graph):
        try:
            numpy_helper.to_array(tensor)
        except Exception as fault:
            raise NpukitError(f"{name}: tensor {tensor.name!r} is damaged: {first_line(fault)}") from fault
    try:
        onnx.checker.check_model(_as_checked(model))
    except Exception as fault:
        raise NpukitError(f"{name} is not a valid ONNX model: {first_line(fault)}") from fault


def _as_checked(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without forms refused by ONNX's checker and accepted by every runtime: scales by channel in old opsets,
    the first form of GroupNormalization, inputs and outputs without a shape."""
    is_old = min(entry.version for entry in model.opset_import) < PER_CHANNEL_OPSET
    kinds = {"GroupNormalization", *(("QuantizeLinear", "DequantizeLinear") if is_old else ())}
    types = [value.type for value in (*model.graph.input, *model.graph.output) if value.type.HasField("tensor_type")]
    if not any(node.op_type in kinds for node in model.graph.node) and all(map(_has_shape, types)):
        return model
    checked = onnx.ModelProto()
    checked.CopyFrom(model)
    for value in (*checked.graph.input, *checked.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()
    for node in (each for each in checked.graph.node if each.op_type in kinds):
        del node.attribute[:]
        node.op_type = node.op_type.replace("Group", "Instance")
    return checked


def _has_shape(kind: onnx.TypeProto) -> bool:
    return kind.tensor_type.HasField("shape")


def known_ops() -> frozenset[str]:
    """All operators that npukit takes: of TVM's importer, its own converters, and those rewritten before the import."""
    rewritten_before = {*RULES, *FOLDED, *BRANCHES, *DEFINED, PACKED, *(kind for _, kind in SPELT)}
    standard = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    return frozenset({*standard & onnx_frontend._get_convert_map().keys(), *CONVERTERS, *rewritten_before})


def _check_ops(model: onnx.ModelProto, name: str, custom: Mapping[str, str]) -> None:
    known = {*onnx_frontend._get_convert_map(), *CONVERTERS}
    given = ops_of(name, custom, {node.op_type for node in model.graph.node})
    for index, node in enumerate(model.graph.node):
        if node.op_type in given:
            continue
        if node.domain not in ("", "ai.onnx") or node.op_type not in known:
            kind = f"{node.op_type} of {node.domain}" if node.domain else node.op_type
            raise NpukitError(
                f"{name}: node {index} ({node.name or 'unnamed'}) is {kind}, which npukit does not read yet",
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


def _closed_shapes(model: onnx.ModelProto, given: InputShapes, name: str) -> dict[str, list[int]]:
    """The shapes of the inputs, with the user's open sizes. Turns inputs with a constant value into constants."""
    shapes, fixed = dict[str, list[int]](), fixed_values(given)
    for value in _inputs(model):
        sizes = value.type.tensor_type.shape.dim
        stated = tuple(size.dim_value if size.HasField("dim_value") else 0 for size in sizes)
        if not _has_shape(value.type):
            said = given.get(value.name)
            if not isinstance(said, tuple):
                tries = [f"say its shape: --input {value.name}:1x3x96x96"]
                raise NpukitError(f"{name}: input {value.name!r} has no shape", tries=tries)
            stated = said
        shape = closed_shape(name, value.name, stated, given)
        if value.name in fixed:
            kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            constant = np.full(shape, fixed[value.name], kind)
            model.graph.initializer.append(numpy_helper.from_array(constant, value.name))
        else:
            shapes[value.name] = list(shape)
    if not shapes:
        raise NpukitError(f"{name} has no input: all that it computes is constant")
    return shapes
