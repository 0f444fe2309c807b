"""Rewrites ONNX models from QOperator form to QDQ. Each QLinear node becomes dequantize, float op, quantize."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npukit.errors import NpukitError

QLINEAR_ONLY = ("channels_last", "opset")
"""Attributes without a counterpart in the float ops."""

SOFTMAX_OF_AN_AXIS = 13
"""First opset whose softmax is over one axis instead of all later axes."""


@dataclass
class Rewriting:
    """The nodes and constants of the rewritten model."""

    known: Mapping[str, np.ndarray]
    opset: int = 0
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

    def of(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """A copy of the model with the rewritten nodes."""
        result = onnx.ModelProto()
        result.CopyFrom(model)
        del result.graph.node[:]
        result.graph.node.extend(self.nodes)
        result.graph.initializer.extend(self.constants)
        return result

    def dequantized(self, triple: Sequence[str], axis: int = 0) -> str:
        return self.node("DequantizeLinear", triple, axis=axis)


@dataclass(frozen=True)
class Rule:
    """The float op of a QLinear op, and the indices of the op's inputs. An operand has three inputs: values, scale,
    zero point. The result has a scale and a zero point, the bias neither: its units are the product of both operands'
    scales."""

    kind: str
    operands: tuple[int, ...]
    result: int
    bias: int | None = None
    channels: int = 1
    """The axis of the second operand's scales."""
    plain: int = 0
    """The number of first inputs without a scale."""


TWO, SINGLE = ((0, 3), 6), ((0,), 3)

RULES: Mapping[str, Rule] = {
    "QGemm": Rule("Gemm", (0, 3), 7, bias=6),
    "QLinearAdd": Rule("Add", *TWO),
    "QLinearAveragePool": Rule("AveragePool", *SINGLE),
    "QLinearConcat": Rule("Concat", (), 0),
    "QLinearConv": Rule("Conv", *TWO, bias=8, channels=0),
    "QLinearGlobalAveragePool": Rule("GlobalAveragePool", *SINGLE),
    "QLinearLeakyRelu": Rule("LeakyRelu", *SINGLE),
    "QLinearMatMul": Rule("MatMul", *TWO),
    "QLinearMul": Rule("Mul", *TWO),
    "QLinearSigmoid": Rule("Sigmoid", *SINGLE),
    "QLinearSoftmax": Rule("Softmax", *SINGLE),
    "QLinearWhere": Rule("Where", (1, 4), 7, plain=1),
}


def rewrite(rewriting: Rewriting, node: onnx.NodeProto) -> None:
    rule, names = RULES[node.op_type], list(node.input)
    if len(names) <= rule.result:
        raise NpukitError("it has too few inputs")
    given = {attribute.name: attribute.i for attribute in node.attribute}
    _check(given, rewriting.opset)
    first = rule.operands or range(2, len(names), 3)
    axes = [0, 0 if given.get("transB") else rule.channels] if len(rule.operands) == 2 else [0] * len(first)
    operands = [rewriting.dequantized(names[at : at + 3], axis) for at, axis in zip(first, axes, strict=True)]
    if rule.bias is not None and len(names) > rule.bias and names[rule.bias]:
        scales = np.asarray(rewriting.value(names[1]) * rewriting.value(names[4]), np.float32)
        zeros = np.zeros(scales.shape, np.int32)
        bias = [names[rule.bias], rewriting.constant(scales), rewriting.constant(zeros)]
        operands.append(rewriting.dequantized(bias))
    result = rewriting.new_name(rule.kind)
    made = helper.make_node(rule.kind, [*names[: rule.plain], *operands], [result], name=node.name)
    made.attribute.extend(attribute for attribute in node.attribute if attribute.name not in QLINEAR_ONLY)
    rewriting.nodes.append(made)
    rewriting.node("QuantizeLinear", [result, *names[rule.result : rule.result + 2]], node.output[0])


def _check(given: Mapping[str, int], opset: int) -> None:
    """Raise an error for attributes whose meaning no float op has."""
    if given.get("channels_last"):
        raise NpukitError("it takes its channels last, which npukit does not read from ONNX")
    stated = given.get("opset", opset)
    if (stated < SOFTMAX_OF_AN_AXIS) != (opset < SOFTMAX_OF_AN_AXIS):
        raise NpukitError(f"it is of opset {stated} in a model of opset {opset}, which npukit does not read")


def rewritten(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model in QDQ form; unchanged if it has no QOperator nodes."""
    if not any(node.op_type in RULES for node in model.graph.node):
        return model
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    rewriting = Rewriting(known, max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx")))
    for index, node in enumerate(model.graph.node):
        place = f"{name}: node {index} ({node.name or 'unnamed'}, {node.op_type})"
        if node.op_type not in RULES:
            rewriting.nodes.append(node)
            continue
        try:
            rewrite(rewriting, node)
        except NpukitError as error:
            raise NpukitError(f"{place}: {error.message}", tries=error.tries) from error
        except (IndexError, ValueError) as fault:
            raise NpukitError(f"{place} has too few inputs") from fault
    return rewriting.of(model)
