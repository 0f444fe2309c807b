"""Grouped convolutions as convolutions of all channels, with zero weights between groups, for accelerators.

The number of products grows by the number of groups; the sums are exactly the same. Convolutions with int32 results
cover sixteen input channels at a time, and their outputs are concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from npukit.accel.interface import Accelerator, Engines, whole_cycles
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Concat, Conv2d, Sums
from npukit.net.passes.sums import of_all_channels
from npukit.net.tensor import Tensor

MOST_WEIGHT_BYTES = 16 << 10
"""Limit of the weights in bytes, zeros included: an eighth of the SRAM of a PE of `pe-mesh`. Larger weights could keep
a network from fitting that fits otherwise."""


CHANNELS_OF_A_SUM = 16
"""Input channels per op with int32 sums: the number of results that accelerators compute at once."""


def with_groups_joined(net: Net, engines: Engines, only: str | None = None) -> Net:
    """The net with all groups in one op where an accelerator is then faster than the core."""
    accelerators = [engine for name, engine in engines.items() if name != CORE and only in (None, name)]
    for op in net.ops:
        if groups_of(net, op) > 1 and all(each.refusal(net, op) for each in accelerators):
            joined = _joined(net, op)
            net = joined if _is_quicker(net, joined, op, engines[CORE], accelerators) else net
    return net


def groups_of(net: Net, op: Op) -> int:
    """The groups of a convolution or of its sums; 1 for any other op."""
    if isinstance(op.attributes, Sums):
        return op.attributes.groups
    if not isinstance(op.attributes, Conv2d) or op.inputs[1] not in net.constants:
        return 1
    return net.tensor(op.inputs[0]).shape[-1] // net.tensor(op.inputs[1]).shape[-1]


def _joined(net: Net, op: Op) -> Net:
    """The net with the op's weights filled with zeros. int32 sums are split into several ops with a concatenation after
    them."""
    groups, sums = groups_of(net, op), isinstance(op.attributes, Sums)
    together = max(CHANNELS_OF_A_SUM * groups // net.tensor(op.inputs[0]).shape[-1], 1) if sums else groups
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
    """Some groups of the op as an op of a single group, with weights and result."""

    op: Op
    weights: Tensor
    values: np.ndarray
    output: Tensor

    @classmethod
    def of(cls, net: Net, op: Op, first: int, count: int) -> _Part:
        """The part of `count` groups from group `first` on."""
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
    """True if accelerators compute all channels, in at most `MOST_WEIGHT_BYTES`, faster than the core the groups."""
    new = [each for each in joined.ops if each not in net.ops]
    held = {each.inputs[1]: joined.tensor(each.inputs[1]) for each in new if each.kind == op.kind}
    if sum(each.bytes for each in held.values()) > MOST_WEIGHT_BYTES:
        return False
    cycles = [_cycles(joined, each, accelerators if each.kind == op.kind else (core,)) for each in new]
    return sum(cycles) < _cycles(net, op, (core,))


def _cycles(net: Net, op: Op, engines: Sequence[Accelerator]) -> float:
    """Cycles of the op on the fastest engine, infinite if all engines refuse the op."""
    return min((whole_cycles(net, op, each) for each in engines if not each.refusal(net, op)), default=inf)
