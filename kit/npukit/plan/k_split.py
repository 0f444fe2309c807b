"""Splits along input channels: sums made in parts, and where that may be worth it.

The core adds the parts and requantises them, in about as many cycles a result as the MAC array takes for 600 products:
where there are enough results for all PEs, each on one of them is faster. Many products for few results are not shared
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from npukit.accel.interface import Accelerator
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Conv2d, Dense, Sums
from npukit.net.passes.sums import cut_in_sums, name_of_part
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.search.objectives import SMALL_MESH
from npukit.plan.search.splits import WIDE_GRAIN
from npukit.plan.tensors.boxes import grid, to_boxes

PRODUCTS = 640
"""The least products of one sum in each part."""


def worth_trying(net: Net, pes: int) -> dict[str, int]:
    """Ops that so many PEs might compute faster with their sums in parts, and in how many.

    None on a large mesh, whose search takes minutes: there one layer of few results is little of the frame.
    """
    if pes > SMALL_MESH:
        return {}
    found = {op.name: _parts(net, op, pes) for op in net.ops if _has_sums(net, op)}
    return {name: parts for name, parts in found.items() if parts > 1}


def cut_as_wanted(net: Net, engines: Mapping[str, Accelerator], wanted: Mapping[str, int]) -> Net:
    """The net with the sums of these ops in so many parts each, each part on the engine of its op if that takes it."""
    for name, parts in wanted.items():
        net = cut_in_sums(net, name, parts)
    return net.with_ops(tuple(_willing(net, op, engines) for op in net.ops))


def spread(net: Net, wanted: Mapping[str, int], order: Sequence[int]) -> Assignment:
    """The sums of these ops side by side: the output channels of each by sixteens, on PEs of their own."""
    ops = {op.name: op for op in net.ops}
    found: dict[str, tuple[Tile, ...]] = {}
    for name, parts in wanted.items():
        free = iter(order)
        for number in range(parts):
            op = ops[name_of_part(name, number)]
            shape = net.tensor(op.output).shape
            cut = (*(1 for _ in shape[:-1]), -(-shape[-1] // WIDE_GRAIN))
            boxes = to_boxes(grid(shape, cut, (*(1 for _ in shape[:-1]), WIDE_GRAIN)))
            found[op.name] = tuple(Tile(next(free), box) for box in boxes)
    return found


def _willing(net: Net, op: Op, engines: Mapping[str, Accelerator]) -> Op:
    reason = engines[op.engine].refusal(net, op) if isinstance(op.attributes, Sums) else None
    return op.placed(CORE, reason) if reason else op


def _has_sums(net: Net, op: Op) -> bool:
    """True if an op's sums could be in parts: of one group, and not fused with another op."""
    if op.engine == CORE or not isinstance(op.attributes, Conv2d | Dense):
        return False
    return net.tensor(op.inputs[1]).shape[-1] == net.tensor(op.inputs[0]).shape[-1]


def _parts(net: Net, op: Op, pes: int) -> int:
    shape, weights = net.tensor(op.output).shape, net.tensor(op.inputs[1]).shape
    blocks = prod(shape[:-1]) * -(-shape[-1] // WIDE_GRAIN)
    return min(pes // blocks, prod(weights[1:]) // PRODUCTS, weights[-1])
