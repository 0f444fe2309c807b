"""Transfers: what must move from the regions where tensors are made to the regions where they are read.

All of it is one intersection: what a region wants and what a tile owns. Halo exchange, gather, scatter and
redistribution are names for its shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from npukit.net.box import Box
from npukit.plan.emit.regions import Region, Regions
from npukit.plan.tensors.boxes import Boxes, from_boxes, meetings, to_boxes, volumes
from npukit.plan.tensors.dma_copies import Copy, copies
from npukit.plan.tensors.graph import Graph


@dataclass(frozen=True)
class Transfer:
    """A box from the region that owns it to regions that want it, as one multicast."""

    box: Box
    source: Region
    destinations: tuple[Region, ...]

    @property
    def number(self) -> int:
        """The number of the regions it goes to: on each PE the first, the second, ... of the tensor."""
        return self.destinations[0].number

    @property
    def first_reader(self) -> int:
        return min(region.first_reader for region in self.destinations)


def transfers_of(graph: Graph, regions: Regions, tensor: str, *, apart: bool = False) -> list[Transfer]:
    """The transfers of one tensor, for each owner in turn, what is read first before what is read later.

    `apart`: what is read by other ops first goes in multicasts of its own.
    """
    places = {pe: place for place, pe in enumerate(regions[tensor])}
    held = [region for of_pe in regions[tensor].values() for region in of_pe]
    alike = tuple(replace(region, frame=0, pe=places[region.pe]) for region in held)
    found = dict(zip(alike, held, strict=True))
    return [
        Transfer(each.box, found[each.source], tuple(found[to] for to in each.destinations))
        for each in _transfers(alike, graph.element_bytes(tensor), apart)
    ]


@lru_cache(maxsize=4096)
def _transfers(held: tuple[Region, ...], element_bytes: int, apart: bool) -> tuple[Transfer, ...]:
    """Frames and groups of PEs that do the same have the same, but for the numbers of frames and PEs."""
    wanting = [(region, box) for region in held if (box := region.wanted) is not None]
    wanted = from_boxes([box for _, box in wanting])
    found: list[Transfer] = []
    for source in held:
        if source.owned is not None:
            pieces = _pieces(source, wanting, wanted)
            transfers = _from_source(element_bytes, source, pieces, apart=apart)
            found += sorted(transfers, key=lambda transfer: transfer.first_reader)
    return tuple(found)


def _from_source(
    element_bytes: int, source: Region, pieces: Iterable[tuple[Box, Region]], *, apart: bool
) -> Iterator[Transfer]:
    """Pieces of one source, equal ones that one multicast can carry taken together."""
    groups: dict[object, list[tuple[Box, Region]]] = {}
    for box, region in pieces:
        shape = _shape_of(copies(box, source.box, region.box, element_bytes))
        reader = region.first_reader if apart else 0
        key = (box, region.number, region.pe == source.pe, reader, shape)
        groups.setdefault(key, []).append((box, region))
    for group in groups.values():
        yield Transfer(group[0][0], source, tuple(region for _, region in group))


def _pieces(source: Region, wanting: Sequence[tuple[Region, Box]], wanted: Boxes) -> Iterator[tuple[Box, Region]]:
    """The pieces of a source that other regions want, of those that want these boxes."""
    assert source.owned is not None
    if not wanting:
        return
    met = meetings(from_boxes([source.owned]), wanted)[:, 0]
    places = np.nonzero(volumes(met))[0]
    for place, box in zip(places.tolist(), to_boxes(met[places]), strict=True):
        if wanting[place][0] is not source:
            yield box, wanting[place][0]


def copies_to(graph: Graph, box: Box, source: Region, destination: Region) -> tuple[Copy, ...]:
    return copies(box, source.box, destination.box, graph.element_bytes(source.tensor))


def _shape_of(parts: Sequence[Copy]) -> tuple[tuple[int, ...], ...]:
    """The shape that must be the same for two destinations of one multicast: all but the address."""
    return tuple((c.source_offset, c.row_bytes, c.rows, c.source_stride, c.destination_stride) for c in parts)
