"""Places of the largest elements of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule, last_axis, same_axes, whole_rows
from npukit.net.ops.kind import Example, OpSpec, Scales, names
from npukit.net.ops.shapes import Shape, check_axes

LARGEST_SEARCH = 1 << 16
"""Maximum number of elements to search for the largest: index and value together fit 32 bits."""


@dataclass(frozen=True)
class ArgMax(Attributes):
    """The index of the first largest element along `axis`, an int32 or int64. The axis is removed."""

    kind: ClassVar[str] = "argmax"
    axis: int = -1


@dataclass(frozen=True)
class TopK(Attributes):
    """The `count` largest elements of the last axis, ties in index order. Output: indices, or `values`."""

    count: int = 1
    values: bool = False


def _argmax(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(ArgMax), net.tensor(op.inputs[0]).shape
    check_axes((attributes.axis,), shape)
    return shape[: attributes.axis] + shape[attributes.axis + 1 :]


def _top_k(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(TopK), net.tensor(op.inputs[0]).shape
    if not shape or not 1 <= attributes.count <= shape[-1] or shape[-1] > LARGEST_SEARCH:
        raise NpukitError(f"there is no top {attributes.count} in an input of shape {list(shape)}")
    return *shape[:-1], attributes.count


def _field_of_argmax(net: Net, op: Op) -> list[InputRule]:
    rules = list(same_axes(len(net.tensor(op.output).shape)))
    rules.insert(op.of(ArgMax).axis, AxisRule())
    return [tuple(rules)]


def argmax(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return operands[0].argmax(axis=op.of(ArgMax).axis + 1).astype(net.tensor(op.output).dtype)


def top_k(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, (values,) = op.of(TopK), operands
    best = np.argsort(-values.astype(np.int64), axis=-1, kind="stable")[..., : attributes.count]
    chosen = np.take_along_axis(values, best, axis=-1) if attributes.values else best
    return chosen.astype(net.tensor(op.output).dtype)


OPS = (
    OpSpec(
        ArgMax,
        _argmax,
        argmax,
        Example("argmax(x) axis=3", "int32[1,2,2]"),
        scales=Scales.FREE,
        field=_field_of_argmax,
        names=names("ARG_MAX", "ArgMax"),
        core_cycles=(5, 10, 0),
        steps=lambda net, op, output: net.tensor(op.inputs[0]).shape[op.of(ArgMax).axis],
    ),
    OpSpec(
        TopK,
        _top_k,
        top_k,
        Example("top_k(x) count=2", "int32[1,2,2,2]"),
        scales=Scales.FREE,
        field=whole_rows,
        uncut=last_axis,
        core_cycles=(0, 14, 0),
        steps=lambda net, op, output: net.tensor(op.inputs[0]).shape[-1],
    ),
)
