"""Builder of ONNX networks, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass
class Written:
    """Nodes and constants of a network under construction. Each method returns the name of its result."""

    nodes: list[onnx.NodeProto] = field(default_factory=list, init=False)
    constants: list[onnx.TensorProto] = field(default_factory=list, init=False)

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def save(self, path: Path, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto]) -> None:
        graph = helper.make_graph(self.nodes, path.stem, inputs, outputs, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def floats(shapes: Mapping[str, Sequence[int]]) -> list[onnx.ValueInfoProto]:
    """Inputs or outputs in float, by name."""
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
