"""Receptive fields: the input boxes needed for a box of an op's output, and the axes along which an op can be cut.

Each op kind has a rule. Halos, gathers and redistributions follow from the rules: data needed by one tile and held by
another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.box import Box
from npukit.net.c_code.rows import rows_of
from npukit.net.net import Fused, Net, Op
from npukit.net.ops import Total
from npukit.net.ops.fields import AxisRule, InputRule, box_needed
from npukit.net.ops.table import SPECS


def needs(net: Net, op: Op, output: Box) -> tuple[Box, ...]:
    """The box of each activation needed for a box of the op's output, in input order."""
    names = list(net.activations(op))
    return tuple(
        box_needed(rule, output, net.tensor(name).shape) for rule, name in zip(input_rules(net, op), names, strict=True)
    )


def needs_of_many(rule: InputRule, outputs: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The boxes of one input, of shape `shape`, for output boxes. Both arrays: [box, axis, start and stop]."""
    result = np.empty((len(outputs), len(shape), 2), np.int64)
    for axis, (axis_rule, size) in enumerate(zip(rule, shape, strict=True)):
        if axis_rule.axis is None:
            result[:, axis] = axis_rule.all_of(size)
        else:
            span = axis_rule.span(outputs[:, axis_rule.axis, 0], outputs[:, axis_rule.axis, 1], size)
            result[:, axis, 0], result[:, axis, 1] = span
    return result


def input_rules(net: Net, op: Op) -> list[InputRule]:
    """The receptive-field rule of each activation."""
    return SPECS[op.kind].field(net, op) if op.parts == (op,) else _rules_of_parts(net, op)


def _rules_of_parts(net: Net, op: Op) -> list[InputRule]:
    """Rules of a fused op: the first part's own rules, and elementwise rules for outside inputs of later parts. Whole
    inputs if the op cannot be cut."""
    if not _cuttable_parts(net, op):
        return [(AxisRule(),) * len(net.tensor(name).shape) for name in net.activations(op)]
    inside = {name for part in op.parts for name in part.outputs}
    named = [pair for part in op.parts for pair in zip(net.activations(part), input_rules(net, part), strict=True)]
    return [rule for name, rule in named if name not in inside]


def _cuttable_parts(net: Net, op: Op) -> bool:
    """True if a box of the output depends on the same box alone of the first part's output."""
    shape = net.tensor(op.output).shape
    shapes = ({net.tensor(name).shape for name in _elements(net, part)} for part in op.parts[1:])
    alike = (each == {shape} for each in shapes)
    return isinstance(op.attributes, Fused) and not op.attributes.whole and all(alike)


def _elements(net: Net, op: Op) -> tuple[str, ...]:
    """Inputs and output of an elementwise op, whose shapes are compared; empty for other ops."""
    if isinstance(op.attributes, Total):
        return (*net.activations(op), *op.outputs)
    return (*op.inputs, *op.outputs) if SPECS[op.kind].elementwise else ()


def cuttable_axes(net: Net, op: Op) -> tuple[int, ...]:
    """Axes of the output along which the op can be divided between PEs."""
    if op.parts != (op,):
        return cuttable_axes(net, op.parts[0]) if _cuttable_parts(net, op) else ()
    return SPECS[op.kind].axes_to_cut(net, op)


def may_be_one(net: Net, op: Op, tile: Box) -> bool:
    """True if a box of the output, cut along allowed axes, can be a tile. Only C code adds a condition: a tile cut
    along a second axis must have size 1 along the first."""
    rows = rows_of(net, op)
    return rows is None or rows.allow(tile)


def may_be_cut(net: Net, op: Op, parts: Sequence[int]) -> bool:
    """True if the output can be cut into `parts` tiles along each axis."""
    shape = net.tensor(op.output).shape
    largest = tuple(-(-size // count) for size, count in zip(shape, parts, strict=True))
    return may_be_one(net, op, Box.whole(largest))
