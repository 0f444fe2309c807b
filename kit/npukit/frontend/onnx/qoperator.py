"""Rewrites ONNX models from QOperator form to QDQ. Each QLinear node becomes dequantize, float op, quantize."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npukit.errors import NpukitError

QLINEAR_ONLY = ("channels_last", "opset")
"""Attributes without a counterpart in the float ops."""


@dataclass
class Rewriting:
    """The nodes and constants of the rewritten model."""

    known: Mapping[str, np.ndarray]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def new_name(self, what: str) -> str:
        return f"npukit.{what}.{next(self._numbers)}"

    def constant(self, value: np.ndarray) -> str:
        name = self.new_name("constant")
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def value(self, name: str) -> np.ndarray:
        """The value of a scale. Raises an error if it is known only at run time."""
        if name not in self.known:
            raise NpukitError(f"its scale {name!r} is computed at run time")
        return self.known[name]

    def node(self, kind: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        output = output or self.new_name(kind)
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def dequantized(self, triple: Sequence[str], axis: int = 0) -> str:
        return self.node("DequantizeLinear", triple, axis=axis)

    def replace(self, old: onnx.NodeProto, kind: str, inputs: Sequence[str], ends: Sequence[str]) -> None:
        """Replaces a node by the float op with the same attributes, quantised to the same output."""
        result = self.new_name(kind)
        made = helper.make_node(kind, list(inputs), [result], name=old.name)
        made.attribute.extend(attribute for attribute in old.attribute if attribute.name not in QLINEAR_ONLY)
        self.nodes.append(made)
        self.node("QuantizeLinear", [result, *ends], old.output[0])


Rule = Callable[[Rewriting, onnx.NodeProto], None]


def convolution(rewriting: Rewriting, node: onnx.NodeProto) -> None:
    """Inputs: x, scale, zero; w, scale, zero; y scale, zero; [bias in units of both scales]."""
    names = list(node.input)
    operands = [rewriting.dequantized(names[:3]), rewriting.dequantized(names[3:6])]
    if len(names) > 8 and names[8]:
        operands.append(_bias(rewriting, names[8], names[1], names[4]))
    rewriting.replace(node, "Conv", operands, names[6:8])


def _bias(rewriting: Rewriting, bias: str, first: str, second: str) -> str:
    scales = np.asarray(rewriting.value(first) * rewriting.value(second), np.float32)
    zeros = np.zeros(scales.shape, np.int32)
    return rewriting.dequantized([bias, rewriting.constant(scales), rewriting.constant(zeros)])


def gemm(rewriting: Rewriting, node: onnx.NodeProto) -> None:
    """Inputs: a, scale, zero; b, scale, zero; bias; y scale, zero."""
    names = list(node.input)
    transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    operands = [rewriting.dequantized(names[:3]), rewriting.dequantized(names[3:6], 0 if transposed else 1)]
    if names[6]:
        operands.append(_bias(rewriting, names[6], names[1], names[4]))
    rewriting.replace(node, "Gemm", operands, names[7:9])


def two(kind: str) -> Rule:
    """Inputs: a, scale, zero; b, scale, zero; y scale, zero."""

    def rule(rewriting: Rewriting, node: onnx.NodeProto) -> None:
        names = list(node.input)
        operands = [rewriting.dequantized(names[:3]), rewriting.dequantized(names[3:6], axis=1)]
        rewriting.replace(node, kind, operands, names[6:8])

    return rule


def single(kind: str) -> Rule:
    """Inputs: x, scale, zero; y scale, zero."""

    def rule(rewriting: Rewriting, node: onnx.NodeProto) -> None:
        if any(attribute.name == "channels_last" and attribute.i for attribute in node.attribute):
            raise NpukitError("it takes its channels last, which npukit does not read from ONNX")
        rewriting.replace(node, kind, [rewriting.dequantized(node.input[:3])], node.input[3:5])

    return rule


def concat(rewriting: Rewriting, node: onnx.NodeProto) -> None:
    """Inputs: y scale, zero; then x, scale, zero of each part."""
    names = list(node.input)
    parts = [rewriting.dequantized(names[start : start + 3]) for start in range(2, len(names), 3)]
    rewriting.replace(node, "Concat", parts, names[:2])


RULES: Mapping[str, Rule] = {
    "QGemm": gemm,
    "QLinearAdd": two("Add"),
    "QLinearAveragePool": single("AveragePool"),
    "QLinearConcat": concat,
    "QLinearConv": convolution,
    "QLinearGlobalAveragePool": single("GlobalAveragePool"),
    "QLinearLeakyRelu": single("LeakyRelu"),
    "QLinearMatMul": two("MatMul"),
    "QLinearMul": two("Mul"),
    "QLinearSigmoid": single("Sigmoid"),
    "QLinearSoftmax": single("Softmax"),
}


def rewritten(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model in QDQ form; unchanged if it has no QOperator nodes."""
    if not any(node.op_type in RULES for node in model.graph.node):
        return model
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    rewriting = Rewriting(known)
    for index, node in enumerate(model.graph.node):
        _rewrite(rewriting, node, f"{name}: node {index} ({node.name or 'unnamed'}, {node.op_type})")
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    result.graph.node.extend(rewriting.nodes)
    result.graph.initializer.extend(rewriting.constants)
    return result


def _rewrite(rewriting: Rewriting, node: onnx.NodeProto, place: str) -> None:
    rule = RULES.get(node.op_type)
    if rule is None:
        rewriting.nodes.append(node)
        return
    try:
        rule(rewriting, node)
    except NpukitError as error:
        raise NpukitError(f"{place}: {error.message}", tries=error.tries) from error
    except (IndexError, ValueError) as fault:
        raise NpukitError(f"{place} has too few inputs") from fault
