"""ONNX nodes whose result is one of their inputs: sums with zeros, products with ones, choices of one side, casts to
the own type, parts that are the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto

Kind = Callable[[str], TypeProto | None]
Value = Callable[[str], np.ndarray | None]

NEUTRAL = {"Add": 0, "Div": 1, "Mul": 1, "Sub": 0}
"""The number that leaves the first operand of an op unchanged."""
COMMUTATIVE = ("Add", "Mul")
CASTS = ("Cast", "CastLike")


def unchanged(node: onnx.NodeProto, kinds: Kind, values: Value, shape: Callable[[str], Any]) -> Mapping[str, str]:
    """The input that is the result, by result; empty if the node computes something. The functions tell the type, the
    value and the shape of a name; None if known only at run time."""
    wanted = [name for name in node.output if 0 not in (shape(name) or (0,))]
    if len(wanted) != 1:
        return {}
    for name in _candidates(node, values):
        made, given = kinds(wanted[0]), kinds(name)
        if made is not None and given is not None and made.tensor_type == given.tensor_type:
            return {wanted[0]: name}
    return {}


def _candidates(node: onnx.NodeProto, values: Value) -> Sequence[str]:
    """Inputs that are the result if they have its type and shape."""
    inputs, kind = list(node.input), node.op_type
    if kind in NEUTRAL:
        pairs = [(inputs[0], inputs[1]), *([(inputs[1], inputs[0])] if kind in COMMUTATIVE else [])]
        return [
            kept for kept, other in pairs if (value := values(other)) is not None and np.all(value == NEUTRAL[kind])
        ]
    if kind == "Where":
        condition = values(inputs[0])
        return [] if condition is None or np.ptp(condition.astype(int)) else [inputs[1 if condition.flat[0] else 2]]
    return inputs[:1] if kind in (*CASTS, "Expand", "Split") else []
