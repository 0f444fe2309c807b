"""The writing of an ONNX node in other nodes of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from npukit.errors import NpukitError

WITH_AXES_AS_INPUT = 13
"""First opset whose ReduceSum takes its axes as an input."""


@dataclass
class Spelling:
    """The node to spell and the nodes made so far. The functions tell the shape and value of a name, the name of a new
    constant and a new name."""

    node: onnx.NodeProto
    opset: int
    shape: Callable[[str], Sequence[int] | None]
    value: Callable[[str], np.ndarray | None]
    constant: Callable[[np.ndarray], str]
    new: Callable[[str], str]
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    @property
    def attributes(self) -> dict[str, Any]:
        return {each.name: helper.get_attribute_value(each) for each in self.node.attribute}

    def input(self, place: int) -> str:
        return self.node.input[place] if place < len(self.node.input) else ""

    def sizes(self, place: int) -> list[int]:
        """The shape of an input."""
        found = self.shape(self.input(place))
        if found is None:
            raise NpukitError(f"the shape of its input {place} is known only at run time")
        return list(found)

    def known(self, place: int, default: Any = None) -> np.ndarray:
        """The value of an input; the default for a missing input."""
        if not self.input(place) and default is not None:
            return np.asarray(default)
        found = self.value(self.input(place)) if self.input(place) else None
        if found is None:
            raise NpukitError(f"its input {place} is missing, or computed at run time")
        return found

    def make(self, kind: str, inputs: Sequence[str], results: Sequence[str], **attributes: Any) -> None:
        self.nodes.append(helper.make_node(kind, inputs, results, name=self.node.name, **attributes))

    def add(self, kind: str, *inputs: str, to: str = "", to_type: int = 0, **attributes: Any) -> str:
        """The result of a new node, named `to`. `to_type`: the type of a cast."""
        result = to or self.new(self.node.output[0] or kind)
        self.make(kind, inputs, [result], **attributes, **({"to": to_type} if to_type else {}))
        return result

    def parts(self, name: str, count: int, axis: int) -> list[str]:
        """Equal parts of a value along an axis."""
        results = [self.new(name) for _ in range(count)]
        self.make("Split", [name], results, axis=axis)
        return results

    def reshaped(self, name: str, shape: Sequence[int], to: str = "") -> str:
        return self.add("Reshape", name, self.constant(np.array(shape, np.int64)), to=to)

    def summed(self, name: str, axis: int) -> str:
        """Sums over an axis, which keeps size 1."""
        if self.opset < WITH_AXES_AS_INPUT:
            return self.add("ReduceSum", name, axes=[axis])
        return self.add("ReduceSum", name, self.constant(np.array([axis])))
