"""Regions: the parts of tensors that PEs hold, before they have addresses.

What a PE computes of a tensor and what its ops need of it share one region where that wastes nothing, so that tiles
land in place: in the halo of the own tile, or beside the other parts of a gathered tensor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from npukit.net.box import Box
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.names import Name
from npukit.plan.tensors.graph import Graph


@dataclass(frozen=True)
class Region:
    """A box of a tensor in one PE's memory.

    `owned` is what the PE itself computes into it, `needs` the boxes its ops read, by the op's index;
    the end of the frame counts as an op that reads the outputs.
    """

    frame: int
    pe: int
    tensor: str
    number: int
    box: Box
    owned: Box | None = None
    needs: tuple[tuple[int, Box], ...] = ()

    def __hash__(self) -> int:
        """The hash of what distinguishes the regions of a plan: there are millions of look-ups."""
        return hash((self.frame, self.pe, self.tensor, self.number))

    @property
    def name(self) -> str:
        return self.named(self.tensor)

    def named(self, tensor: str) -> str:
        """The name of the buffer that shows this region as that tensor, itself or a reshape of it."""
        return str(Name(tensor, 0, self.frame, self.number))

    @property
    def wanted(self) -> Box | None:
        """The box that must be in it before the first op reads it."""
        return reduce(Box.hull, (box for _, box in self.needs)) if self.needs else None

    @property
    def first_reader(self) -> int:
        return min(index for index, _ in self.needs)

    def later(self, frames: int) -> Region:
        """The same of a frame so many later."""
        return replace(self, frame=self.frame + frames) if frames else self

    def with_need(self, index: int, box: Box) -> Region:
        return replace(self, box=self.box.hull(box), needs=(*self.needs, (index, box)))


SMALL_PART = 1.75
"""Times as many elements in a region as in the tile that its PE makes of it: then the tile is a small part."""

Regions = Mapping[str, Mapping[int, tuple[Region, ...]]]
"""Regions by tensor, then by PE."""


@dataclass(frozen=True)
class Ends:
    """The PEs on which the inputs lie when a frame begins, and the outputs when it ends."""

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
    """Every tensor's regions in one frame. Inputs and outputs are held whole where they begin and end, states by the
    PEs that make them.

    Of tensors `between` ops that take turns each band of channels has regions of its own. Where memory is short,
    `compact`, a tile that is a small part of what its PE needs lies apart from that: it is there before it.
    """
    found = _Regions(graph, frame, between, low_memory=low_memory)
    for name in graph.net.inputs:
        found.own(ends.inputs, name, Box.whole(graph.shape(name)))
    for op in graph.ops:
        for tile in assignment[op.name]:
            for name in (op.output, *(state for state, becomes in graph.kept.items() if becomes == op.output)):
                found.own(tile.pe, name, tile.box)
    for index, op in enumerate(graph.ops):
        for tile in assignment[op.name]:
            for home, box in graph.needs_of(op, tile.box):
                found.need(tile.pe, home, index, box)
    for name in graph.outputs:
        found.need(ends.outputs, name, len(graph.ops), Box.whole(graph.shape(name)))
    return found.by_tensor


class _Regions:
    """The regions of one frame as they grow."""

    def __init__(self, graph: Graph, frame: int, between: Collection[str], *, low_memory: bool) -> None:
        self._frame, self._between, self._low_memory = frame, between, low_memory
        self.by_tensor: dict[str, dict[int, tuple[Region, ...]]] = {name: {} for name in graph.consumers}
        self._kept = {*graph.kept, *graph.kept.values()}

    def own(self, pe: int, tensor: str, box: Box) -> None:
        found = self.by_tensor[tensor]
        regions = found.get(pe, ())
        if regions and tensor not in self._between:
            whole = regions[0].box.hull(box)
            found[pe] = (replace(regions[0], box=whole, owned=whole),)
        else:
            found[pe] = (*regions, Region(self._frame, pe, tensor, len(regions) + 1, box, owned=box))

    def need(self, pe: int, tensor: str, index: int, box: Box) -> None:
        """Adds a need to the first region that it does not make larger than two would be, else to one of its own."""
        found = self.by_tensor[tensor]
        regions = found.get(pe, ())
        for place, region in enumerate(regions):
            if self._may_share(region, box):
                found[pe] = (*regions[:place], region.with_need(index, box), *regions[place + 1 :])
                return
        new = Region(self._frame, pe, tensor, len(regions) + 1, box, needs=((index, box),))
        found[pe] = (*regions, new)

    def _may_share(self, region: Region, box: Box) -> bool:
        if region.owned and region.tensor in self._kept:
            return region.box.contains(box)
        ends = (region.box.start[-1:], region.box.stop[-1:])
        if region.tensor in self._between and ends != (box.start[-1:], box.stop[-1:]):
            return False
        together = region.box.hull(box).elements
        if self._low_memory and region.owned and together > SMALL_PART * region.owned.elements:
            return False
        return together <= region.box.elements + box.elements
