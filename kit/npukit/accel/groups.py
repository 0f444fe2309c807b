"""Convolutions in groups as convolutions of all channels, with weights of zero between groups, for accelerators.

They make as many times more products as there are groups, and exactly the same sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npukit.accel.interface import Engines
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Conv2d

MOST_BYTES = 16 << 10
"""Bytes of weights with their zeros: an eighth of the SRAM of a PE of `pe-mesh`. More could keep a network from fitting
that does fit."""


def with_groups_joined(net: Net, engines: Engines, only: str | None = None) -> Net:
    """The net in which an accelerator takes all channels at once where that is quicker than the core."""
    for op in net.ops:
        if _groups(net, op) > 1:
            joined = _joined(net, op)
            net = joined if _is_quicker(net, joined, op, engines, only) else net
    return net


def _groups(net: Net, op: Op) -> int:
    if not isinstance(op.attributes, Conv2d) or op.inputs[1] not in net.constants:
        return 1
    return net.tensor(op.inputs[0]).shape[-1] // net.tensor(op.inputs[1]).shape[-1]


def _joined(net: Net, op: Op) -> Net:
    """The net with the op's weights filled with zeros."""
    groups, old, name = _groups(net, op), op.inputs[1], f"{op.inputs[1]}_of_{op.name}"
    made = _filled(net.constants[old], groups)
    whole = replace(op, inputs=(op.inputs[0], name, *op.inputs[2:]))
    tensors = {**net.tensors, name: replace(net.tensor(old), name=name, shape=made.shape)}
    ops = tuple(whole if each is op else each for each in net.ops)
    kept = {each for one in ops for each in one.inputs}
    constants = {each: value for each, value in {**net.constants, name: made}.items() if each in kept}
    return replace(net, ops=ops, tensors=tensors, constants=constants)


def _filled(weights: np.ndarray, groups: int) -> np.ndarray:
    outputs, height, width, depth = weights.shape
    made = np.zeros((outputs, height, width, depth * groups), weights.dtype)
    for group, part in enumerate(np.split(weights, groups)):
        each = outputs // groups
        made[group * each : (group + 1) * each, ..., group * depth : (group + 1) * depth] = part
    return made


def _is_quicker(net: Net, joined: Net, op: Op, engines: Engines, only: str | None) -> bool:
    """True if an accelerator refuses the groups, and is quicker at all channels than the core is at the groups."""
    whole = next(each for each in joined.ops if each.name == op.name)
    output = Box.whole(net.tensor(op.output).shape)
    accelerators = [engine for name, engine in engines.items() if name != CORE and only in (None, name)]
    if joined.tensor(whole.inputs[1]).bytes > MOST_BYTES or any(each.refusal(net, op) is None for each in accelerators):
        return False
    core = engines[CORE].cost(net, op, output).cycles
    willing = [each for each in accelerators if each.refusal(joined, whole) is None]
    return any(each.cost(joined, whole, output).cycles < core for each in willing)
