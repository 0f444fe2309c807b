"""Split-K: sums over input channels made in parts, and the layers where parts may pay.

The core adds and requantises the parts. A result takes the core about as many cycles as 600 products take the MAC
array. Layers with enough results for all PEs are therefore split by results. Layers of many products and few results
have no other split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from npukit.accel.interface import Accelerator
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op, fuse
from npukit.net.ops import Conv2d, Dense, Norm, Sums
from npukit.net.ops.table import macs, total_macs
from npukit.net.passes.sums import PIECE, cut_in_squares, cut_in_sums, has_squares, name_of_part
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.tensors.boxes import GRAINS, WIDE_GRAIN, grid, to_boxes

PRODUCTS = 512
"""The least products of a sum in each part: with 640 the wide layer of a language model has three parts and not four.
`benchmarks/transformers/language_model.py --blocks 1 --chips 1 --link 2.5 --plan-only`."""

WEIGHS = 1 / 20
"""Least cycles of a layer without a split, as a part of the frame's cycles shared by all PEs. On a large mesh the last
layer of MobileNets and ResNets takes less than a hundredth, a layer of a language model half."""

DEEP = 20 << 10
"""Bytes of a layer's narrowest weight tile from which on the layer is cut along the depth, where memory is short."""


def worth_trying(net: Net, pes: int) -> dict[str, int]:
    """Ops with sums worth making in parts on this number of PEs, and the number of parts.

    A layer counts if its products weigh in the frame. RMS norms of a single row are in parts too: without
    parts every PE would read the whole row.
    """
    layers = {op.parts[0].name: op for op in net.ops if _has_sums(net, op, op.parts[0])}
    least = WEIGHS * total_macs(net) / pes
    found = {
        name: _parts(net, op.parts[0], pes)
        for name, op in layers.items()
        if macs(net, op.parts[0]) / _blocks(net, op.parts[0]) > least
    }
    found |= {op.name: net.tensor(op.output).shape[-1] // PIECE for op in net.ops if has_squares(net, op)}
    return {name: parts for name, parts in found.items() if parts > 1}


def cut_as_wanted(net: Net, engines: Mapping[str, Accelerator], wanted: Mapping[str, int]) -> Net:
    """The net with the sums of these ops in parts, by number. A part is on the op's engine, else on the core."""
    net = net.with_ops(tuple(each for op in net.ops for each in _one_by_one(net, op, engines, wanted)))
    norms = {op.name for op in net.ops if isinstance(op.attributes, Norm)}
    for name, parts in wanted.items():
        net = cut_in_squares(net, name) if name in norms else cut_in_sums(net, name, parts)
    return net.with_ops(tuple(_willing(net, op, engines) for op in net.ops))


def deep(net: Net, engines: Mapping[str, Accelerator]) -> dict[str, int]:
    """Ops with a narrowest weight tile too large for a PE, and the number of parts along the depth.

    The narrowest weight tile has a column of weights per result of a step, over all products of a sum.
    """
    ops = [op for op in net.ops if op.parts == (op,) and _has_sums(net, op, op)]
    sizes = dict[Op, int]()
    for op in ops:
        shape = net.tensor(op.output).shape
        narrowest = Box((0,) * len(shape), (*(1 for _ in shape[:-1]), min(GRAINS[-1], shape[-1])))
        sizes[op] = engines[op.engine].cost(net, op, narrowest).constant_bytes
    return {op.name: _parts_of_depth(net, op, size) for op, size in sizes.items() if size > DEEP}


def _parts_of_depth(net: Net, op: Op, size: int) -> int:
    """The least number of parts with small enough weight tiles, of whole blocks of channels where possible."""
    depth, least = net.tensor(op.inputs[1]).shape[-1], -(-size // DEEP)
    even = (parts for parts in range(least, 2 * least + 1) if depth % (parts * WIDE_GRAIN) == 0)
    return next(even, least)


def cut_along_depth(net: Net, engines: Mapping[str, Accelerator], wanted: Mapping[str, int]) -> Net:
    """The net with the sums of these ops in parts, by number, in sequence. Each part adds to the part before."""
    for name, parts in wanted.items():
        net = cut_in_sums(net, name, parts, in_turn=True)
        ops = {op.name: op for op in net.ops}
        last = name_of_part(name, parts - 1)
        whole, engine = fuse((ops[last], ops[name])), ops[last].engine
        if engines[engine].refusal(net, whole) is None:
            kept = (whole.placed(engine) if op.name == name else op for op in net.ops if op.name != last)
            net = net.with_ops(tuple(kept))
    return net.with_ops(tuple(_willing(net, op, engines) for op in net.ops))


def spread(net: Net, wanted: Mapping[str, int], order: Sequence[int]) -> Assignment:
    """The partial sums of these layers side by side on different PEs, cut in 16 output channels each. The parts of a
    norm are a single op."""
    ops = {op.name: op for op in net.ops}
    found: dict[str, tuple[Tile, ...]] = {}
    for name, parts in wanted.items():
        free = iter(order)
        for op in [ops[part] for number in range(parts) if (part := name_of_part(name, number)) in ops]:
            shape = net.tensor(op.output).shape
            cut = (*(1 for _ in shape[:-1]), -(-shape[-1] // WIDE_GRAIN))
            boxes = to_boxes(grid(shape, cut, (*(1 for _ in shape[:-1]), WIDE_GRAIN)))
            found[op.name] = tuple(Tile(next(free), box) for box in boxes)
    return found


def _one_by_one(net: Net, op: Op, engines: Mapping[str, Accelerator], wanted: Mapping[str, int]) -> Iterator[Op]:
    """The ops of a fusion with a layer to cut, each on the fusion's engine, else on the core."""
    if op.parts == (op,) or op.parts[0].name not in wanted:
        yield op
        return
    for part in op.parts:
        reason = engines[op.engine].refusal(net, part)
        yield part.placed(CORE, reason) if reason else part.placed(op.engine)


def _willing(net: Net, op: Op, engines: Mapping[str, Accelerator]) -> Op:
    reason = engines[op.engine].refusal(net, op) if isinstance(op.attributes, Sums) else None
    return op.placed(CORE, reason) if reason else op


def _has_sums(net: Net, op: Op, layer: Op) -> bool:
    """True if the sums of a layer could be in parts: a convolution or dense layer without groups."""
    if op.engine == CORE or not isinstance(layer.attributes, Conv2d | Dense):
        return False
    return net.tensor(layer.inputs[1]).shape[-1] == net.tensor(layer.inputs[0]).shape[-1]


def _parts(net: Net, op: Op, pes: int) -> int:
    weights = net.tensor(op.inputs[1]).shape
    return min(pes // _blocks(net, op), prod(weights[1:]) // PRODUCTS, weights[-1])


def _blocks(net: Net, op: Op) -> int:
    """The number of tiles of 16 results, the MAC array's step."""
    shape = net.tensor(op.outputs[0]).shape
    return prod(shape[:-1]) * -(-shape[-1:][0] // WIDE_GRAIN) if shape else 1
