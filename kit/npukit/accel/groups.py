"""Convolutions in groups as convolutions of all channels, with weights of zero between groups, for accelerators.

They make as many times more products as there are groups, and exactly the same sums. Sums that stay int32 are made of
sixteen channels at a time, side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from npukit.accel.interface import Accelerator, Engines
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Concat, Conv2d, Sums
from npukit.net.passes.sums import of_all_channels
from npukit.net.tensor import Tensor

MOST_BYTES = 16 << 10
"""Bytes of weights with their zeros: an eighth of the SRAM of a PE of `pe-mesh`. More could keep a network from fitting
that does fit."""


TOGETHER = 16
"""Input channels of which int32 sums are made at a time: as many as accelerators make results at once."""


def with_groups_joined(net: Net, engines: Engines, only: str | None = None) -> Net:
    """The net in which an accelerator takes all channels at once where that is quicker than the core."""
    accelerators = [engine for name, engine in engines.items() if name != CORE and only in (None, name)]
    for op in net.ops:
        if groups_of(net, op) > 1 and all(each.refusal(net, op) for each in accelerators):
            joined = _joined(net, op)
            net = joined if _is_quicker(net, joined, op, engines[CORE], accelerators) else net
    return net


def groups_of(net: Net, op: Op) -> int:
    """The groups of a convolution, or of its sums; any other op is one."""
    if isinstance(op.attributes, Sums):
        return op.attributes.groups
    if not isinstance(op.attributes, Conv2d) or op.inputs[1] not in net.constants:
        return 1
    return net.tensor(op.inputs[0]).shape[-1] // net.tensor(op.inputs[1]).shape[-1]


def _joined(net: Net, op: Op) -> Net:
    """The net with the op's weights filled with zeros; int32 sums of some channels at a time, and what joins them."""
    groups, sums = groups_of(net, op), isinstance(op.attributes, Sums)
    together = max(TOGETHER * groups // net.tensor(op.inputs[0]).shape[-1], 1) if sums else groups
    parts = [_Part.of(net, op, first, min(together, groups - first)) for first in range(0, groups, together)]
    made = [part.op for part in parts]
    if len(made) > 1:
        made.append(replace(op, attributes=Concat(len(parts[0].output.shape) - 1), inputs=_outputs(made)))
    ops = tuple(new for each in net.ops for new in (made if each is op else [each]))
    kept = {name for each in ops for name in each.inputs}
    tensors = {**net.tensors, **{each.name: each for part in parts for each in (part.weights, part.output)}}
    values = {**net.constants, **{part.weights.name: part.values for part in parts}}
    return replace(net, ops=ops, tensors=tensors, constants={name: v for name, v in values.items() if name in kept})


def _outputs(ops: Sequence[Op]) -> tuple[str, ...]:
    return tuple(op.output for op in ops)


@dataclass(frozen=True)
class _Part:
    """The op of some groups as one of a single group, with its weights and its result."""

    op: Op
    weights: Tensor
    values: np.ndarray
    output: Tensor

    @classmethod
    def of(cls, net: Net, op: Op, first: int, count: int) -> _Part:
        """`count` groups from the one with number `first` on."""
        groups, given, output = groups_of(net, op), net.tensor(op.inputs[1]), net.tensor(op.output)
        each, name, attributes = given.shape[0] // groups, f"{given.name}_of_{op.name}", op.attributes
        values = of_all_channels(net.constants[given.name][first * each : (first + count) * each], count)
        if isinstance(attributes, Sums):
            attributes = replace(attributes, first=first * given.shape[-1], groups=1)
        part = replace(op, attributes=attributes, inputs=(op.inputs[0], name, *op.inputs[2:]))
        if count < groups:
            name, made = f"{name}_{first}", f"{op.output}_{first}"
            output = replace(output, name=made, shape=(*output.shape[:-1], len(values)))
            part = replace(part, name=f"{op.name}_{first}", inputs=(op.inputs[0], name), outputs=(made,))
        return cls(part, replace(given, name=name, shape=values.shape), values, output)


def _is_quicker(net: Net, joined: Net, op: Op, core: Accelerator, accelerators: Sequence[Accelerator]) -> bool:
    """True if accelerators are quicker at all channels than the core is at the groups, and the zeros take no room."""
    new = [each for each in joined.ops if each not in net.ops]
    held = {each.inputs[1]: joined.tensor(each.inputs[1]) for each in new if each.kind == op.kind}
    if sum(each.bytes for each in held.values()) > MOST_BYTES:
        return False
    cycles = [_cycles(joined, each, accelerators if each.kind == op.kind else (core,)) for each in new]
    return sum(cycles) < _cycles(net, op, (core,))


def _cycles(net: Net, op: Op, engines: Sequence[Accelerator]) -> float:
    """Cycles of the op on the quickest engine that takes it."""
    output, willing = Box.whole(net.tensor(op.output).shape), [each for each in engines if not each.refusal(net, op)]
    return min((each.cost(net, op, output).cycles for each in willing), default=inf)
