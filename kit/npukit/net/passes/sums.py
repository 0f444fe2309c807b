"""Splits along channels: an op becomes ops of partial sums over slices of its input channels, and an op of their total.

Each op of partial sums can run on any PE and needs only its slice of weights and input. An RMS norm is split likewise:
each PE sums the squares of its own part of a row, so no PE needs the whole row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np

from npukit.errors import NpukitError
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Conv2d, Dense, Norm, NormBySquares, Squares, Sums, Total
from npukit.net.passes.simplify import without_unread_constants
from npukit.net.requantize import requantization
from npukit.net.tensor import Tensor


def cut_in_sums(net: Net, name: str, parts: int, *, in_turn: bool = False) -> Net:
    """The net with a convolution or dense layer split into `parts` partial sums. The core computes the total. The ops
    of partial sums are named `NAME_sums_0` and so on and run on the op's engine. The total keeps the op's name.
    `in_turn`: each op adds its sums to the previous op's sums, and only the last sums are requantised."""
    op = next(op for op in net.ops if op.name == name)
    reason = _refusal(net, op, parts)
    if reason:
        raise NpukitError(f"{name} cannot be cut into {parts} sums: {reason}", tries=["leave its sums whole"])
    tensors, constants = dict(net.tensors), dict(net.constants)
    made = list(_sums(net, op, parts, tensors, constants))
    if in_turn:
        pairs = pairwise(made)
        made = [made[0], *(replace(each, inputs=(*each.inputs, before.output)) for before, each in pairs)]
    total = _total(net, op, [each.output for each in made][-1 if in_turn else 0 :], tensors, constants)
    ops = tuple(new for each in net.ops for new in ([*made, total] if each is op else [each]))
    return without_unread_constants(replace(net, ops=ops, tensors=tensors, constants=constants))


def name_of_part(name: str, number: int) -> str:
    """The name of an op of partial sums."""
    return f"{name}_sums_{number}"


def of_all_channels(weights: np.ndarray, groups: int) -> np.ndarray:
    """Weights (OHWI) of a grouped convolution, padded with zeros to a convolution without groups."""
    outputs, height, width, depth = weights.shape
    made = np.zeros((outputs, height, width, depth * groups), weights.dtype)
    for group, part in enumerate(np.split(weights, groups)):
        each = outputs // groups
        made[group * each : (group + 1) * each, ..., group * depth : (group + 1) * depth] = part
    return made


def _refusal(net: Net, op: Op, parts: int) -> str | None:
    if op.parts != (op,):
        return f"it is one with what follows ({op.title})"
    if not isinstance(op.attributes, Conv2d | Dense):
        return f"only convolutions and dense layers have such sums, and it is a {op.kind}"
    depth, weights = net.tensor(op.inputs[0]).shape[-1], net.tensor(op.inputs[1]).shape
    if weights[-1] != depth:
        return "it has groups"
    return None if 2 <= parts <= depth else f"its input has {depth} channels"


def _sums(net: Net, op: Op, parts: int, tensors: dict[str, Tensor], constants: dict[str, np.ndarray]) -> Iterator[Op]:
    """The ops of partial sums. Adds their tensors and weights."""
    weights, shape = net.constants[op.inputs[1]], net.tensor(op.output).shape
    depth = weights.shape[-1]
    for number in range(parts):
        first, stop = depth * number // parts, depth * (number + 1) // parts
        chosen, output = f"{op.inputs[1]}_sums_{number}", f"{op.output}_sums_{number}"
        constants[chosen] = np.ascontiguousarray(weights[..., first:stop])
        tensors[chosen] = replace(net.tensor(op.inputs[1]), name=chosen, shape=constants[chosen].shape)
        tensors[output] = Tensor(output, shape, "int32")
        made = replace(op, name=name_of_part(op.name, number), attributes=_window(op, first))
        yield replace(made, inputs=(op.inputs[0], chosen), outputs=(output,))


def _window(op: Op, first: int) -> Sums:
    if isinstance(op.attributes, Conv2d):
        return Sums(first, op.attributes.strides, op.attributes.padding, op.attributes.dilation)
    return Sums(first)


def _total(net: Net, op: Op, sums: list[str], tensors: dict[str, Tensor], constants: dict[str, np.ndarray]) -> Op:
    """The op of the total: adds and requantises partial sums."""
    bias, factors = net.constant(op, 2), requantization(net, op)
    channels = net.tensor(op.output).shape[-1:]
    values = {
        "bias": np.zeros(channels, np.int32) if bias is None else bias,
        "multipliers": factors.multipliers,
        "shifts": factors.shifts,
    }
    names = [f"{op.output}_{role}" for role in values]
    for name, value in zip(names, values.values(), strict=True):
        constants[name] = value.astype(np.int32)
        tensors[name] = Tensor(name, channels, "int32")
    reason = "sums are added by the core"
    return replace(op, attributes=Total(op.of(Conv2d, Dense).clamp), inputs=(*sums, *names), engine=CORE, reason=reason)


PIECE = 16
"""Elements per sum of squares: the outputs of a dense layer that the MAC array computes at once."""
_REASON = "sums are added by the core"


def has_squares(net: Net, op: Op) -> bool:
    """True for an RMS norm of a single row of several pieces. With more rows, each PE has whole rows."""
    if not isinstance(op.attributes, Norm) or op.attributes.centred or op.attributes.run:
        return False
    *rows, length = net.tensor(op.output).shape
    return prod(rows) == 1 and length % PIECE == 0 and length > PIECE


def cut_in_squares(net: Net, name: str) -> Net:
    """The net with an RMS norm in two: op `NAME_squares` sums the squares of each piece for the norm."""
    norm = next(op for op in net.ops if op.name == name)
    attributes, source = norm.of(Norm), norm.inputs[0]
    *rows, length = net.tensor(norm.output).shape
    squares = Tensor(f"{norm.output}_squares", (*rows, length // PIECE, 1), "int32")
    first = Op(f"{name}_squares", Squares(PIECE), (source,), (squares.name,)).placed(CORE, _REASON)
    scaling = NormBySquares(attributes.epsilon, attributes.shift, attributes.clamp)
    second = replace(norm, attributes=scaling, inputs=(source, squares.name, *norm.inputs[1:]))
    ops = tuple(each for op in net.ops for each in ((first, second) if op is norm else (op,)))
    return replace(net, ops=ops, tensors={**net.tensors, squares.name: squares})
