"""Bytes of tensors in the PEs' memories while each op is computed. The rest is room for weight tiles."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from npukit.board.noc import DRAM
from npukit.plan.emit.regions import Region, Regions
from npukit.plan.predict.memory import aligned
from npukit.plan.tensors.graph import Aliases, Graph


def most_held(
    graph: Graph,
    frames: Sequence[Regions],
    aliases: Aliases,
    *,
    late: bool,
    prefetch_distance: int = 1,
    between: Collection[str] = (),
    fetched_from: int | None = None,
) -> list[int]:
    """Bytes of these frames' tensors for each op, on the fullest PE: the maximum from `prefetch_distance` ops before
    the op until the op itself.

    A receive buffer is reserved from the start of the sender's computation, or, if `late`, from the sending. `between`:
    tensors of which one band at a time is in memory. `fetched_from`: the first op with a place for the next frames'
    inputs too. Tiles alias operands where possible.
    """
    held = _held(graph, frames, aliases, not late, between, fetched_from, late=late)
    most = np.max([np.zeros(2 * len(graph.ops), np.int64), *held.values()], axis=0)
    return [int(most[max(2 * (index - prefetch_distance), 0) : 2 * index + 1].max()) for index in range(len(graph.ops))]


def most_at_once(
    graph: Graph,
    frame: Regions,
    aliases: Aliases,
    in_place: Collection[int],
    between: Collection[str],
    beside: Mapping[str, Mapping[int, int]],
    *,
    late: bool = False,
) -> Counter[int]:
    """A lower bound on the bytes of a frame's tensors on each PE at once.

    `between`: tensors of which one band at a time is in memory. `beside`: further bytes while an op is computed, by the
    op's output and PE. `in_place`: ops allowed to overwrite or alias operands; the moments of these ops do not count.
    """
    held = _held(graph, [frame], aliases, between=between, late=late)
    for index, op in enumerate(graph.ops):
        for pe, size in beside[op.output].items():
            held[pe][2 * index] += size
    counts = np.ones(2 * len(graph.ops), bool)
    counts[[2 * index for index in in_place]] = False
    return Counter({pe: int(sizes[counts].max(initial=0)) for pe, sizes in held.items()})


def _held(
    graph: Graph,
    frames: Sequence[Regions],
    aliases: Aliases,
    after_sent: int = 0,
    between: Collection[str] = (),
    fetched_from: int | None = None,
    *,
    late: bool,
) -> defaultdict[int, np.ndarray]:
    """Bytes held by each PE at each moment. `after_sent`: number of moments for which a sent part stays reserved."""
    makers = {op.output: index for index, op in enumerate(graph.ops)}
    held = defaultdict[int, np.ndarray](lambda: np.zeros(2 * len(graph.ops), np.int64))
    for regions in frames:
        for tensor, by_pe in regions.items():
            made = makers.get(tensor, -1)  # -1: an input of the network
            operands = aliases[graph.ops[made].name] if made >= 0 else ()
            again = range(2 * fetched_from, 2 * len(graph.ops)) if made < 0 and fetched_from is not None else range(0)
            leaves = max((_sent(r, made, late=late) for each in by_pe.values() for r in each if r.needs), default=0)
            for region in _regions(by_pe, at_once=tensor in between):
                size = aligned(region.box.elements * graph.element_bytes(tensor))
                moments = _moments(region, made, len(graph.ops), leaves, after_sent, late=late)
                lies_on = any(_lies_on(region, made, regions[name].get(region.pe, ())) for name in operands)
                for span in (moments[lies_on:], again):
                    held[region.pe][span.start : span.stop] += size
    return held


def _regions(by_pe: Mapping[int, Sequence[Region]], *, at_once: bool) -> Iterator[Region]:
    """The regions of a tensor on the PEs. `at_once`: only the largest band of each PE, because bands take turns."""
    for pe, regions in by_pe.items():
        if pe != DRAM:
            yield from [max(regions, key=lambda region: region.box.elements)] if at_once else regions


def _sent(region: Region, made: int, *, late: bool) -> int:
    """The moment of sending a region's part of a tensor. An op is computed at moment 2 * op number, and the sending
    follows."""
    made_by = max(2 * made, 0) + 1
    return max(2 * region.first_reader - 1, made_by) if region.needs and late else made_by


def _moments(region: Region, made: int, ops: int, leaves: int, after_sent: int, *, late: bool) -> range:
    """The moments during which a region is reserved. `leaves`: the moment of sending a tensor's last parts computed
    here."""
    first = max(2 * made, 0) if region.owned or made < 0 or not late else _sent(region, made, late=late)
    last = max((2 * index for index, _ in region.needs), default=0)
    sent = leaves if region.owned and late else _sent(region, made, late=late)
    return range(first, min(max(last, sent + after_sent), 2 * ops - 1) + 1)


def _lies_on(region: Region, made: int, operand: Sequence[Region]) -> bool:
    """True if a tile takes the place of an operand's region after the operand's last use."""
    last = (each for each in operand if each.needs and max(index for index, _ in each.needs) == made)
    return region.owned == region.box and any(each.box == region.box for each in last)
