"""Regions: parts of tensors in the memories of PEs, without addresses yet; and the transfers between regions.

A PE's own tile of a tensor and the box read by the PE's ops share a region if this wastes no memory. Tiles then arrive
in place: in the halo of the PE's own tile, or beside the other parts of a gathered tensor.

Every transfer is the intersection of a box wanted by a region and a tile owned by another. Halo exchange, gather,
scatter and redistribution are special cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import numpy as np

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.names import Name
from npukit.plan.tensors.boxes import common, from_boxes, to_boxes, volumes
from npukit.plan.tensors.dma_copies import Copy, copies
from npukit.plan.tensors.graph import Graph


@dataclass(frozen=True)
class Region:
    """A box of a tensor in one PE's memory.

    `owned`: the box computed by the PE itself. `needs`: the boxes read by the PE's ops, with the op's index. The end of
    the frame counts as a reader of the outputs.
    """

    frame: int
    pe: int
    tensor: str
    number: int
    box: Box
    owned: Box | None = None
    needs: tuple[tuple[int, Box], ...] = ()

    def __hash__(self) -> int:
        """The hash of the distinguishing fields of a plan's regions, for speed: there are millions of look-ups."""
        return hash((self.frame, self.pe, self.tensor, self.number))

    @property
    def name(self) -> str:
        return self.named(self.tensor)

    def named(self, tensor: str) -> str:
        """The name of the buffer that shows this region as `tensor`: the region's own tensor or a reshape."""
        return str(Name(tensor, 0, self.frame, self.number))

    @property
    def wanted(self) -> Box | None:
        """The box that must be complete before the first op reads the region."""
        return reduce(Box.hull, (box for _, box in self.needs)) if self.needs else None

    @property
    def first_reader(self) -> int:
        return min(index for index, _ in self.needs)

    def later(self, frames: int) -> Region:
        """The same region `frames` frames later."""
        return replace(self, frame=self.frame + frames) if frames else self


Regions = Mapping[str, Mapping[int, tuple[Region, ...]]]
"""Regions by tensor, then by PE."""


@dataclass(frozen=True)
class Ends:
    """The PEs (or DRAM) with the inputs at the beginning of a frame and the outputs at the end."""

    inputs: int
    outputs: int


def regions_of(
    graph: Graph,
    assignment: Assignment,
    ends: Ends,
    frame: int,
    between: Collection[str] = (),
    *,
    low_memory: bool = False,
) -> Regions:
    """The regions of every tensor in one frame. Inputs and outputs are whole at the `ends`. States are on the computing
    PEs.

    `between`: tensors between two ops in bands (`channel_bands.py`); each band has separate regions. `low_memory`: a
    tile has a separate region, because the tile exists before the rest of the box read by the PE.
    """
    found = _own_regions(graph, assignment, ends.inputs, frame, between)

    def need(pe: int, tensor: str, index: int, box: Box) -> None:
        """Add a need to the first region that may share its bytes, else to a new region."""
        held = found[tensor].get(pe, ())
        shared = (at for at, each in enumerate(held) if _may_share(graph, each, box, between, low_memory=low_memory))
        place = next(shared, None)
        if place is None:
            found[tensor][pe] = (*held, Region(frame, pe, tensor, len(held) + 1, box, needs=((index, box),)))
        else:
            grown = replace(held[place], box=held[place].box.hull(box), needs=(*held[place].needs, (index, box)))
            found[tensor][pe] = (*held[:place], grown, *held[place + 1 :])

    for index, op in enumerate(graph.ops):
        for tile in assignment[op.name]:
            for home, box in dict.fromkeys(graph.needs_of(op, tile.box)):
                need(tile.pe, home, index, box)
    for name in graph.outputs:
        need(ends.outputs, name, len(graph.ops), Box.whole(graph.shape(name)))
    return found


def _own_regions(
    graph: Graph, assignment: Assignment, inputs: int, frame: int, between: Collection[str]
) -> dict[str, dict[int, tuple[Region, ...]]]:
    """The regions of inputs, tiles and states on their PEs. All tiles of a PE share a region, except in bands."""
    own = [(inputs, name, Box.whole(graph.shape(name))) for name in graph.net.inputs]
    for op in graph.ops:
        names = (op.output, *(state for state, becomes in graph.kept.items() if becomes == op.output))
        own += [(tile.pe, name, tile.box) for name in names for tile in assignment[op.name]]
    found: dict[str, dict[int, tuple[Region, ...]]] = {name: {} for name in graph.consumers}
    for pe, name, box in own:
        held = found[name].get(pe, ())
        if held and name not in between:
            whole = held[0].box.hull(box)
            found[name][pe] = (replace(held[0], box=whole, owned=whole),)
        else:
            found[name][pe] = (*held, Region(frame, pe, name, len(held) + 1, box, owned=box))
    return found


def _may_share(graph: Graph, region: Region, box: Box, between: Collection[str], *, low_memory: bool) -> bool:
    """True if the hull of a region with a further box is no larger than their sum."""
    hull = region.box.hull(box)
    if not graph.shows(region.tensor, hull):
        return False
    if region.owned and (region.tensor in graph.kept or region.tensor in graph.kept.values()):
        return region.box.contains(box)
    ends = (region.box.start[-1:], region.box.stop[-1:])
    if region.tensor in between and ends != (box.start[-1:], box.stop[-1:]):
        return False
    if low_memory and region.owned and hull != region.owned:
        return False
    return hull.elements <= region.box.elements + box.elements


@dataclass(frozen=True)
class Transfer:
    """A multicast of a box, from the region that owns the box to the regions that want it."""

    box: Box
    source: Region
    destinations: tuple[Region, ...]

    @property
    def first_reader(self) -> int:
        return min(region.first_reader for region in self.destinations)


def transfers_of(graph: Graph, regions: Regions, tensor: str, *, apart: bool = False) -> list[Transfer]:
    """The transfers of one tensor, owner by owner, in order of their first readers.

    `apart`: transfers with different first readers use separate multicasts.
    """
    places = {pe: place if pe != DRAM else DRAM for place, pe in enumerate(regions[tensor])}
    held = [region for of_pe in regions[tensor].values() for region in of_pe]
    first = min((region.first_reader for region in held if region.needs), default=0)

    def normal(region: Region) -> Region:
        """The region for the cache: frame 0, PE by place, no tensor name, op indices relative to the first reader."""
        needs = tuple((index - first, box) for index, box in region.needs)
        return replace(region, frame=0, pe=places[region.pe], tensor="", needs=needs)

    moved = _transfers(tuple(map(normal, held)), graph.element_bytes(tensor), apart)
    return [Transfer(box, held[source], tuple(held[to] for to in targets)) for box, source, targets in moved]


_Moved = tuple[Box, int, tuple[int, ...]]
"""A box, the index of the source region, and the indices of the destination regions."""


_Wanting = tuple[Region, dict[int, int]]
"""A region, and the indices among all regions of the regions with the same wanted box, by PE."""


@lru_cache(maxsize=4096)
def _transfers(held: tuple[Region, ...], element_bytes: int, apart: bool) -> tuple[_Moved, ...]:
    """The transfers between regions, by index. Cached: frames, groups of PEs and blocks of a network with the same work
    differ in names and numbers only."""
    same: dict[object, _Wanting] = {}
    for place, region in enumerate(held):
        if region.needs:
            key = region.wanted, region.box, region.number, region.first_reader, region.pe == DRAM
            same.setdefault(key, (region, {}))[1][region.pe] = place
    wanting = list(same.values())
    boxes = from_boxes([region.wanted for region, _ in wanting if region.wanted])
    found: list[_Moved] = []
    for place, source in enumerate(held):
        if source.owned is not None and wanting:
            met = common(from_boxes([source.owned]), boxes)
            places = np.nonzero(volumes(met))[0]
            pieces = zip(to_boxes(met[places]), [wanting[each] for each in places.tolist()], strict=True)
            found += _from_source(element_bytes, place, source, pieces, apart=apart)
    return tuple(found)


def _from_source(
    element_bytes: int, place: int, source: Region, pieces: Iterable[tuple[Box, _Wanting]], *, apart: bool
) -> Iterator[_Moved]:
    """The transfers of a source, in order of their first readers. Equal pieces share a multicast where possible.

    `pieces`: the parts of the source wanted by regions.
    """
    groups: dict[object, tuple[Box, list[int], list[int]]] = {}
    for box, (region, places) in pieces:
        reader, parts = region.first_reader, copies(box, source.box, region.box, element_bytes)
        # A multicast has the same shape of copies for all destinations. Only the destination's address may differ.
        shape = tuple((c.source_offset, c.row_bytes, c.rows, c.source_stride, c.destination_stride) for c in parts)
        here = places.get(source.pe, place)
        others = [to for pe, to in places.items() if pe != source.pe] if source.pe in places else places.values()
        for inside, to in ((False, others), (True, [here] if here != place else [])):
            if to:
                key = (box, region.number, inside, DRAM in places, reader if apart else 0, shape)
                _, readers, destinations = groups.setdefault(key, (box, [], []))
                readers.append(reader)
                destinations.extend(to)
    for box, _, destinations in sorted(groups.values(), key=lambda group: (min(group[1]), min(group[2]))):
        yield box, place, tuple(sorted(destinations))


def copies_to(graph: Graph, box: Box, source: Region, destination: Region) -> tuple[Copy, ...]:
    return copies(box, source.box, destination.box, graph.element_bytes(source.tensor))
