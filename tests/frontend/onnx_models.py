"""Small ONNX models in QDQ form, and the results of their steps in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import TensorProto, helper, numpy_helper

from oracles.onnx_runtime import Session

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


@dataclass
class Graph:
    """A QDQ graph under construction. Values have plain names: `x` is dequantised as `x_real`."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    opset: int = 17

    def constant(self, name: str, value: np.ndarray | float) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=f"{kind}_{output}", **attributes))
        return output

    def dequantized(self, name: str, scale: Any, zero: Any, dtype: DTypeLike = "int8", axis: int = 1) -> str:
        ends = self._ends(f"{name}_in", scale, zero, dtype)
        return self.node("DequantizeLinear", [name, *ends], f"{name}_real", axis=axis)

    def quantized(self, name: str, scale: Any, zero: Any, output: str, dtype: str = "int8") -> str:
        return self.node("QuantizeLinear", [name, *self._ends(f"{output}_out", scale, zero, dtype)], output)

    def _ends(self, name: str, scale: Any, zero: Any, dtype: DTypeLike) -> list[str]:
        scales = np.asarray(scale, np.float32)
        zeros = np.broadcast_to(np.asarray(zero, dtype), scales.shape)
        return [self.constant(f"{name}_scale", scales), self.constant(f"{name}_zero", zeros)]

    def model(
        self, inputs: Mapping[str, Sequence[int | str]], output: str, dtype: str = "int8", result_dtype: str = ""
    ) -> onnx.ModelProto:
        ends = [helper.make_tensor_value_info(name, TYPES[dtype], shape) for name, shape in inputs.items()]
        result = [helper.make_tensor_value_info(output, TYPES[result_dtype or dtype], None)]
        graph = helper.make_graph(self.nodes, "graph", ends, result, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def onnx_steps(path: Path, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The result of each QuantizeLinear in the order of the file."""
    model = onnx.load(path)
    names = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return Session(model.SerializeToString()).run(inputs)
