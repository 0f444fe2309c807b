"""ONNX ops that the standard defines by other ops, read as these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, helper, inliner, numpy_helper

from npukit.frontend.onnx.node import schema_of

OTHERWISE = frozenset(("Attention",))
"""Ops whose converter in TVM is for another op of the same name, of ONNX Runtime."""


def defined_by_ops(converted: Collection[str]) -> frozenset[str]:
    """The ops with a definition by other ops, without `converted` ops and ops of chance."""
    schemas: Any = onnx.defs.get_all_schemas()
    found = [schema for schema in schemas if not schema.domain and not schema.non_deterministic]
    named = {each.name for each in found if each.has_function or each.has_context_dependent_function}
    return frozenset(named - set(converted) | OTHERWISE)


def body_of(
    node: onnx.NodeProto, imports: Sequence[onnx.OperatorSetIdProto], kind: Callable[[str], TypeProto | None]
) -> Sequence[onnx.NodeProto]:
    """The nodes that define a node, with the node's own names at the ends. Empty if the definition needs types of
    inputs that are known only at run time. `kind`: the type of a value."""
    given = {name: kind(name) for name in node.input if name}
    if any(each is None for each in given.values()):
        return ()
    given[""] = TypeProto()  # the inliner asks for the type of a missing input too
    inputs = [onnx.ValueInfoProto(name=name, type=each) for name, each in given.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    opset = next(each.version for each in imports if each.domain in ("", "ai.onnx"))
    graph = helper.make_graph([_stated(node, opset)], "body", inputs, results)
    model = helper.make_model(graph, opset_imports=list(imports))
    inlined = inliner.inline_selected_functions(model, [("", node.op_type)], inline_schema_functions=True)
    whole = all(each.op_type != node.op_type for each in inlined.graph.node)
    return [_finite(each) for each in inlined.graph.node] if whole else ()


def _finite(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node; with float's ends for a constant with infinities: TVM's maximum begins at the least number."""
    for each in node.attribute:
        if node.op_type == "Constant" and each.type == onnx.AttributeProto.TENSOR:
            value = numpy_helper.to_array(each.t)
            if value.dtype.kind == "f" and np.isinf(value).any():
                each.t.CopyFrom(numpy_helper.from_array(np.nan_to_num(value), each.t.name))
    return node


def _stated(node: onnx.NodeProto, opset: int) -> onnx.NodeProto:
    """The node with the default values of missing attributes, which ONNX's inliner leaves out."""
    stated, given = onnx.NodeProto(), {each.name for each in node.attribute}
    stated.CopyFrom(node)
    attributes = schema_of(node.op_type, opset).attributes.values()
    stated.attribute.extend(each.default_value for each in attributes if each.default_value.name not in ("", *given))
    return stated
