"""A node's attributes: what no converter reads must be at its default."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from npukit.errors import NpukitError

Shapes = Sequence[tuple[int, ...]]

REPEATED: Mapping[str, Callable[[Shapes, int], Any]] = {
    "hidden_size": lambda inputs, _: inputs[2][-1],
    "kernel_shape": lambda inputs, _: inputs[1][2:],
    "num_outputs": lambda _, outputs: outputs,
}
"""Attributes that repeat what the shapes of a node's inputs, or the count of its outputs, say."""


class Attributes(dict[str, Any]):
    """A node's attributes as TVM's converters take them; it remembers which were read."""

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


def refuse_unread(node: onnx.NodeProto, opset: int, given: Attributes, inputs: Shapes, parse: Any) -> None:
    """An error that names an attribute that says something and that nobody read. `parse` gives attributes' values."""
    schema = onnx.defs.get_schema(node.op_type, opset)
    for name in sorted(given.unread):
        value, default = dict.get(given, name), schema.attributes[name].default_value
        if name in REPEATED:
            default = REPEATED[name](inputs, len(node.output))
        else:
            default = parse([default]).get(name) if default.name else None
        if value != default:
            raise NpukitError(f"its attribute {name} is {value}; npukit reads it as {default}")
