"""A node's inputs and attributes. Unread attributes must have their default values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from tvm import relax
from tvm.ir import Constant
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError, first_line
from npukit.net.importer.expressions import integer_constant

Shapes = Sequence[tuple[int, ...]]


REPEATED: Mapping[str, tuple[str, Callable[[Shapes], Any]]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose"), ("kernel_shape", lambda inputs: inputs[1][2:])),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), ("hidden_size", lambda inputs: inputs[2][-1])),
}
"""The attribute of each op that repeats a size from the node's input shapes, and a function to find this size."""


def known(expression: Any, params: Any) -> np.ndarray | None:
    """The value of a constant input; None for other inputs."""
    constant = onnx_frontend.get_constant(expression, params) if expression is not None else None
    return constant.value.numpy() if isinstance(constant, Constant) else None  # type: ignore[attr-defined]


def known_real(bb: Any, value: Any, params: Any) -> np.ndarray | None:
    """A constant, or the real numbers of a dequantised constant."""
    found = known(value, params)
    if found is not None or not isinstance(value, relax.Var):
        return found
    integers = integer_constant(value, {value: bb.lookup_binding(value)})
    return None if integers is None else integers.real


def padded(inputs: Any, length: int) -> list[Any]:
    """Inputs, with None for missing optional inputs."""
    given = list(inputs)
    return given + [None] * (length - len(given))


def text_of(attr: Any, name: str, default: str) -> str:
    """The value of a text attribute."""
    value = attr.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


class NodeAttributes(dict[str, Any]):
    """A node's attributes, as TVM's converters take them. Records the read attributes."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self.unread = set(given)

    def __getitem__(self, name: str) -> Any:
        self.unread.discard(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.unread.discard(name)
        return super().get(name, default)

    def pop(self, name: str, *default: Any) -> Any:
        self.unread.discard(name)
        return super().pop(name, *default)


def refuse_contradictions(node: onnx.NodeProto, given: Mapping[str, Any], inputs: Shapes) -> None:
    """Raises an error if a redundant attribute contradicts the shapes of the node's inputs."""
    name, said = REPEATED.get(node.op_type, ("", None))
    if said is not None and name in given and given[name] != said(inputs):
        raise NpukitError(f"its attribute {name} is {given[name]}, not {said(inputs)}")


def schema_of(kind: str, opset: int, domain: str = "") -> Any:
    """The definition of an op in an opset, or in the newest opset for a younger op. `folded` may write Where in opsets
    without Where."""
    try:
        return onnx.defs.get_schema(kind, opset, domain)
    except onnx.defs.SchemaError:
        return onnx.defs.get_schema(kind, domain)


def refuse_unread(node: onnx.NodeProto, opset: int, given: NodeAttributes, parse: Any) -> None:
    """Raises an error for an unread attribute without its default value. `parse`: gives the values of attributes."""
    schema = schema_of(node.op_type, opset)
    for name in sorted(given.unread - {"num_outputs", REPEATED.get(node.op_type, ("",))[0]}):
        value, default = dict.get(given, name), schema.attributes[name].default_value
        if value != (parse([default]).get(name) if default.name else None):
            raise NpukitError(f"its attribute {name} is {value}, which npukit does not read")


def unread_form(node: onnx.NodeProto, opset: int, fault: Exception, late: Sequence[str]) -> tuple[str, list[str]]:
    """The reason and the remedies for a node that crashes its converter in TVM. `late`: inputs known only at run
    time. A converter that takes such an input for a constant says nothing of the input."""
    tries = [f"give its C: --custom {node.op_type}=FILE.c (docs/models.md)"]
    if not isinstance(fault, AttributeError | KeyError | TypeError):
        return first_line(fault), tries
    titles = [each.name for each in schema_of(node.op_type, opset).inputs]
    named = [title for title, name in list(zip(titles, node.input, strict=False))[1:] if name in late]
    if not named:
        return f"npukit does not read this form of {node.op_type} ({first_line(fault)})", tries
    stated = f"{' and '.join(named)} computed at run time"
    return stated, [f"export the model with {' and '.join(named)} as constants", "--input NAME=SHAPE, if open", *tries]
