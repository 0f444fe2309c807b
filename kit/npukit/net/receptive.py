"""Receptive fields: which box of each input an op needs for a box of its output, and where an op can be cut.

All splitting follows from one rule a kind: halos, gathers, redistributions are what one tile needs and another has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.box import Box
from npukit.net.c_code.rows import rows_of
from npukit.net.net import Fused, Net, Op
from npukit.net.ops import Total
from npukit.net.specs.fields import AxisRule, InputRule
from npukit.net.specs.table import SPECS


def needs(net: Net, op: Op, output: Box) -> tuple[Box, ...]:
    """The box of each activation that a box of the op's output needs, in the op's order."""
    names = list(net.activations(op))
    return tuple(
        box_needed(rule, output, net.tensor(name).shape) for rule, name in zip(input_rules(net, op), names, strict=True)
    )


def needs_of_many(rule: InputRule, outputs: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The same for an array of boxes, of one input of that shape."""
    result = np.empty((len(outputs), len(shape), 2), np.int64)
    for axis, (axis_rule, size) in enumerate(zip(rule, shape, strict=True)):
        if axis_rule.axis is None:
            result[:, axis] = axis_rule.all_of(size)
        else:
            span = axis_rule.span(outputs[:, axis_rule.axis, 0], outputs[:, axis_rule.axis, 1], size)
            result[:, axis, 0], result[:, axis, 1] = span
    return result


def input_rules(net: Net, op: Op) -> list[InputRule]:
    """A rule for each activation."""
    return SPECS[op.kind].field(net, op) if op.parts == (op,) else _rules_of_parts(net, op)


def _rules_of_parts(net: Net, op: Op) -> list[InputRule]:
    """Elementwise parts behind the first need what they make, the first what its own rules say."""
    if not _cuttable_parts(net, op):
        return [(AxisRule(),) * len(net.tensor(name).shape) for name in net.activations(op)]
    inside = {name for part in op.parts for name in part.outputs}
    named = [pair for part in op.parts for pair in zip(net.activations(part), input_rules(net, part), strict=True)]
    return [rule for name, rule in named if name not in inside]


def _cuttable_parts(net: Net, op: Op) -> bool:
    """True if a box of the output is made of the same box of what the first part makes."""
    shape = net.tensor(op.output).shape
    shapes = ({net.tensor(name).shape for name in _elements(net, part)} for part in op.parts[1:])
    alike = (each == {shape} for each in shapes)
    return isinstance(op.attributes, Fused) and not op.attributes.whole and all(alike)


def _elements(net: Net, op: Op) -> tuple[str, ...]:
    """The tensors of one shape by whose elements an op is made; none if it is not."""
    if isinstance(op.attributes, Total):
        return (*net.activations(op), *op.outputs)
    return (*op.inputs, *op.outputs) if SPECS[op.kind].elementwise else ()


def cuttable_axes(net: Net, op: Op) -> tuple[int, ...]:
    """Axes of the output along which the op may be divided between PEs."""
    if op.parts != (op,):
        return cuttable_axes(net, op.parts[0]) if _cuttable_parts(net, op) else ()
    return SPECS[op.kind].cuttable(net, op)


def may_be_one(net: Net, op: Op, tile: Box) -> bool:
    """True if a box of the output, cut along axes that may be cut, may be a tile: one of C that is cut along a second
    axis has one position of the first."""
    rows = rows_of(net, op)
    return rows is None or rows.allow(tile)


def may_be_cut(net: Net, op: Op, parts: Sequence[int]) -> bool:
    """True if all tiles may be such as the output is cut into by so many parts along its axes."""
    shape = net.tensor(op.output).shape
    largest = tuple(-(-size // count) for size, count in zip(shape, parts, strict=True))
    return may_be_one(net, op, Box.whole(largest))


def box_needed(rule: InputRule, output: Box, shape: Sequence[int]) -> Box:
    """The box of an input of that shape that a box of the output needs."""
    spans = [
        r.all_of(size) if r.axis is None else r.span(output.start[r.axis], output.stop[r.axis], size)
        for r, size in zip(rule, shape, strict=True)
    ]
    return Box(tuple(start for start, _ in spans), tuple(stop for _, stop in spans))
