"""Regions: the parts of tensors that PEs hold, before they have addresses.

What a PE computes of a tensor and what its ops need of it share one region where that wastes nothing, so that tiles
land in place: in the halo of the own tile, or beside the other parts of a gathered tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from npukit.net.box import Box
from npukit.plan.assignment import Assignment
from npukit.plan.boxes import from_boxes, to_boxes
from npukit.plan.graph import Graph


@dataclass(frozen=True)
class Region:
    """A box of a tensor in one PE's memory.

    `owned` is what the PE itself computes into it, `needs` the boxes its ops read, by the op's index;
    the end of the frame counts as an op that reads the outputs.
    """

    pe: int
    tensor: str
    number: int
    box: Box
    owned: Box | None = None
    needs: tuple[tuple[int, Box], ...] = ()

    @property
    def name(self) -> str:
        return self.named(self.tensor)

    def named(self, tensor: str) -> str:
        """The name of the buffer that shows this region as that tensor, itself or a reshape of it."""
        return tensor if self.number == 1 else f"{tensor} ({self.number})"

    @property
    def wanted(self) -> Box | None:
        """What must be in it before the first op reads it."""
        return reduce(Box.hull, (box for _, box in self.needs)) if self.needs else None

    @property
    def first_reader(self) -> int:
        return min(index for index, _ in self.needs)

    def with_need(self, index: int, box: Box) -> Region:
        return replace(self, box=self.box.hull(box), needs=(*self.needs, (index, box)))


Regions = Mapping[str, Mapping[int, tuple[Region, ...]]]
"""By tensor, then by PE."""


def regions_of(graph: Graph, assignment: Assignment, root: int) -> Regions:
    """Every tensor's regions. The root holds the net's inputs and outputs whole."""
    found: dict[str, dict[int, tuple[Region, ...]]] = {name: {} for name in graph.consumers}
    for name in graph.net.inputs:
        found[name][root] = (Region(root, name, 1, whole := Box.whole(graph.shape(name)), owned=whole),)
    for op in graph.ops:
        for tile in assignment[op.name]:
            found[op.output][tile.pe] = (Region(tile.pe, op.output, 1, tile.box, owned=tile.box),)
    for index in range(len(graph.ops)):
        _add_needs(graph, assignment, index, found)
    for name in graph.outputs:
        _add_need(found[name], root, name, len(graph.ops), Box.whole(graph.shape(name)))
    return found


def _add_needs(
    graph: Graph, assignment: Assignment, index: int, found: dict[str, dict[int, tuple[Region, ...]]]
) -> None:
    op = graph.ops[index]
    tiles = assignment[op.name]
    if tiles:
        for home, boxes in graph.needs(op, from_boxes([tile.box for tile in tiles])):
            for tile, box in zip(tiles, to_boxes(boxes), strict=True):
                _add_need(found[home], tile.pe, home, index, box)


def _add_need(found: dict[int, tuple[Region, ...]], pe: int, tensor: str, index: int, box: Box) -> None:
    regions = found.get(pe, ())
    for place, region in enumerate(regions):
        if region.box.hull(box).elements <= region.box.elements + box.elements:
            found[pe] = (*regions[:place], region.with_need(index, box), *regions[place + 1 :])
            return
    found[pe] = (*regions, Region(pe, tensor, len(regions) + 1, box, needs=((index, box),)))
