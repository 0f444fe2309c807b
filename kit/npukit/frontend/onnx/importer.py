"""TVM's importer of ONNX graphs, extended: errors name the node."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from math import prod
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
from onnx import helper
from tvm import relax
from tvm.ir import Call, Constant, IRModule
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError, first_line
from npukit.frontend.fold import FoldingBuilder
from npukit.frontend.given import c_of
from npukit.frontend.onnx.claims import declared_shape
from npukit.frontend.onnx.node import NodeAttributes, refuse_contradictions, refuse_unread, unread_form
from npukit.frontend.onnx.ops import readable_converters
from npukit.net.importer.given import call_of
from npukit.net.limits import TENSOR_BYTES, check_shape

tensor_type: Any = relax.TensorType
TvmImporter: Any = onnx_frontend.ONNXGraphImporter


def relax_of(
    model: onnx.ModelProto, name: str, shapes: Mapping[str, Sequence[int]], custom: Mapping[str, str]
) -> IRModule:
    """The model as a Relax module. `name`: the file's name in errors; `custom`: C of custom ops, by name."""
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    try:
        # TVM prints errors in addition to raising them, and warns of attributes despite reading them.
        with readable_converters(), warnings.catch_warnings(action="ignore"), redirect_stdout(StringIO()):
            return _Importer(name, shapes, model.graph, custom).from_onnx(model.graph, opset)
    except NpukitError:
        raise
    except Exception as fault:
        raise NpukitError(f"{name} cannot be imported: {first_line(fault)}") from fault


class _Importer(TvmImporter):
    """TVM's importer, called node by node."""

    def __init__(
        self, name: str, shapes: Mapping[str, Sequence[int]], graph: onnx.GraphProto, custom: Mapping[str, str]
    ) -> None:
        super().__init__(dict(shapes), "float32", sanitize=True)
        self.bb = FoldingBuilder()
        self._custom = custom
        self._name = name
        self._declared = {value.name: value for value in (*graph.value_info, *graph.output)}
        self._attributes = NodeAttributes({})
        self._bytes = 0

    def from_onnx(self, graph: Any, opset: int) -> IRModule:
        try:
            return self.bb.titled(super().from_onnx(graph, opset))
        except Exception:
            with suppress(Exception):
                self.bb._end_block()  # TVM warns on stderr if a builder is deleted with an open block
            raise

    def _construct_nodes(self, graph: Any) -> None:
        for index, node in enumerate(graph.node):
            place = f"{self._name}: node {index} ({node.name or 'unnamed'}, {node.op_type})"
            self.bb.begin_layer(node.name or next(iter(node.output), ""))
            try:
                if node.op_type in self._custom:
                    self._construct_custom(node)
                else:
                    shapes = [_shape_of(getattr(self._nodes.get(name), "ty", None)) or () for name in node.input]
                    refuse_contradictions(node, super()._parse_attr(node.attribute), shapes)
                    super()._construct_nodes(SimpleNamespace(node=[node]))
                    for name in node.output:
                        if isinstance(value := self._nodes.get(name), Call):
                            self._nodes[name] = self.bb.emit(value)
                    refuse_unread(node, self.opset, self._attributes, super()._parse_attr)
                    self._check_results(node)
            except NpukitError as error:
                raise NpukitError(f"{place}: {error.message}", tries=error.tries) from error
            except Exception as fault:
                late = [name for name in node.input if name and not isinstance(self._nodes.get(name), Constant)]
                what, tries = unread_form(node, self.opset, fault, late)
                raise NpukitError(f"{place} cannot be imported: {what}", tries=tries) from fault

    def _parse_attr(self, attributes: Any) -> NodeAttributes:
        self._attributes = NodeAttributes(super()._parse_attr(attributes))
        return self._attributes

    def _check_for_unsupported_ops(self, graph: Any) -> None:
        """Exempts custom ops, whose C the user gives."""
        super()._check_for_unsupported_ops(
            SimpleNamespace(node=[node for node in graph.node if node.op_type not in self._custom])
        )

    def _construct_custom(self, node: onnx.NodeProto) -> None:
        """Emits a custom op with C from the user. The model must declare the shapes of the results."""
        values = [self._nodes[name] for name in node.input]
        operands = [each if isinstance(each, relax.Var | Constant) else self.bb.emit(each) for each in values]
        attributes = super()._parse_attr(node.attribute)
        words = {name: value for name, value in attributes.items() if isinstance(value, int | float)}
        for place, output in enumerate(node.output):
            text, (shape, dtype) = c_of(self._custom, node.op_type, place), self._declaration(output)
            if shape is None or -1 in shape:
                raise NpukitError(f"the model does not say the shape of its result {output!r}")
            call = call_of(node.op_type, text, operands, tensor_type(shape, dtype), words)
            self._nodes[output] = self.bb.emit(call)

    def _declaration(self, name: str) -> tuple[tuple[int, ...] | None, str]:
        """The declared shape and type of a value; None and empty without a declaration."""
        value = self._declared.get(name)
        shape = None if value is None else declared_shape(value)
        if value is None or shape is None:
            return None, ""
        kind = value.type.tensor_type.elem_type
        return shape, str(helper.tensor_dtype_to_np_dtype(kind)) if kind else ""

    def _check_results(self, node: onnx.NodeProto) -> None:
        """Raises an error if a node's results are too large or contradict their declaration."""
        for name in filter(None, node.output):
            kind = getattr(self._nodes.get(name), "ty", None)
            shape = _shape_of(kind)
            if kind is None or shape is None:
                continue
            dtype, (stated, wanted) = str(kind.dtype), self._declaration(name)
            check_shape(shape, f"its result {name!r}")
            self._bytes += prod(shape) * np.dtype(dtype).itemsize
            TENSOR_BYTES.check(self._bytes, "the model up to here")
            stated = shape if stated is None else stated
            if len(stated) != len(shape) or any(was not in (-1, now) for was, now in zip(stated, shape, strict=True)):
                raise NpukitError(f"its result {name!r} is declared as {list(stated)}, but is {list(shape)}")
            if wanted not in ("", dtype):
                raise NpukitError(f"its result {name!r} is declared as {wanted}, but is {dtype}")


def _shape_of(kind: Any) -> tuple[int, ...] | None:
    """The shape of a tensor's type; None for other types."""
    is_tensor = isinstance(kind, relax.TensorType) and kind.shape is not None
    return tuple(int(size) for size in cast(Any, kind).shape) if is_tensor else None
