"""Bands: two ops in turns, a range of channels at a time, so that the tensor between them is never whole in memory.

The second op makes each channel from the same channel of what the first makes, as depthwise convolutions do: in an
inverted residual of MobileNetV2 that tensor is by far the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.net.receptive import cuttable_axes, input_rules
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.tensors.boxes import WIDE_GRAIN
from npukit.plan.tensors.graph import Graph

CROWDED = 0.5
"""The part of a PE's memory that two ops may hold at once before they are worth bands."""

Bands = Mapping[str, int]
"""The number of bands by the first op of each pair; ops without bands are left out."""


@dataclass(frozen=True)
class Turn:
    """An op's turn in a micro-batch: all of its tiles, or those of one band of channels. `last`: what it makes is
    whole."""

    index: int
    op: Op
    channels: tuple[int, int] | None
    last: bool

    def tiles(self, assignment: Assignment) -> tuple[Tile, ...]:
        tiles = assignment[self.op.name]
        return tuple(tile for tile in tiles if self.holds(tile.box)) if self.channels else tiles

    def holds(self, box: Box) -> bool:
        """True if a box of what the op makes is made in this turn."""
        return not self.channels or (self.channels[0] <= box.start[-1] and box.stop[-1] <= self.channels[1])


def turns_of(graph: Graph, bands: Bands) -> list[Turn]:
    """The ops in order; where there are bands the two of a pair for each band."""
    turns: list[Turn] = []
    for index, op in enumerate(graph.ops):
        if op.name in bands:
            spans = spans_of(graph.shape(op.output)[-1], bands[op.name])
            following = graph.ops[index + 1]
            for span in spans:
                last = span == spans[-1]
                turns += [Turn(index, op, span, last), Turn(index + 1, following, span, last)]
        elif not (index and graph.ops[index - 1].name in bands):
            turns.append(Turn(index, op, None, last=True))
    return turns


def spans_of(channels: int, count: int) -> list[tuple[int, int]]:
    """Channels in so many ranges, or fewer, each of them a multiple of the grain but for the last."""
    step = -(-channels // count // WIDE_GRAIN) * WIDE_GRAIN
    return list(pairwise([*range(0, channels, step), channels]))


def in_bands(graph: Graph, assignment: Assignment, bands: Bands) -> Assignment:
    """The assignment with the tiles of the pairs cut."""
    cut = dict(assignment)
    for index, op in enumerate(graph.ops):
        if op.name in bands:
            spans = spans_of(graph.shape(op.output)[-1], bands[op.name])
            for name in (op.name, graph.ops[index + 1].name):
                cut[name] = tuple(_cut(tile, span) for span in spans for tile in assignment[name])
    return cut


def between(graph: Graph, bands: Bands) -> frozenset[str]:
    """The tensors that are never whole."""
    return frozenset(op.output for op in graph.ops if op.name in bands)


def bands_for(graph: Graph, board: Board, assignment: Assignment) -> Bands:
    """Bands for each pair that would crowd a PE's memory: so many that it does not, or as many as there can be."""
    room = board.memory_for("activations").size * CROWDED
    found: dict[str, int] = {}
    for first, second in _pairs(graph):
        if not _have_all_channels(graph, assignment, first, second):
            continue
        middle = max(_needed_bytes(graph, second, tile) for tile in assignment[second.name])
        rest = max(_needed_bytes(graph, first, tile) for tile in assignment[first.name])
        rest += max(tile.box.elements for tile in assignment[second.name]) * graph.element_bytes(second.output)
        channels = graph.shape(first.output)[-1]
        counts = range(1, -(-channels // WIDE_GRAIN) + 1)
        count = next((n for n in counts if rest + _widest(channels, n) * middle / channels <= room), counts[-1])
        if count > 1:
            found[first.name] = count
    return found


def narrowed(graph: Graph) -> frozenset[str]:
    """The tensors that bands could keep from ever being whole, if no tile of them is cut along its channels."""
    return frozenset(first.output for first, _ in _pairs(graph))


def _pairs(graph: Graph) -> Iterator[tuple[Op, Op]]:
    """Ops that follow each other and may take turns. None is in two pairs."""
    taken = None
    for first, second in pairwise(graph.ops):
        if first is not taken and _may_take_turns(graph, first, second):
            taken = second
            yield first, second


def _may_take_turns(graph: Graph, first: Op, second: Op) -> bool:
    """True if no other op reads the tensor between them, whose channels stay apart."""
    shape = graph.shape(first.output)
    if CORE in (first.engine, second.engine) or len(shape) != 4 or first.output in graph.outlasting:
        return False
    if graph.consumers[first.output] != (graph.ops.index(second),) or graph.sources(second) != [first.output]:
        return False
    rule = input_rules(graph.net, second)[0]
    channelwise = rule[-1].axis == 3 and graph.shape(second.output)[-1] == shape[-1]
    return channelwise and all(3 in cuttable_axes(graph.net, op) for op in (first, second))


def _have_all_channels(graph: Graph, assignment: Assignment, *ops: Op) -> bool:
    """True if no tile is cut along the channels."""
    return all(tile.box.shape[-1] == graph.shape(op.output)[-1] for op in ops for tile in assignment[op.name])


def _needed_bytes(graph: Graph, op: Op, tile: Tile) -> int:
    return sum(box.elements * graph.element_bytes(home) for home, box in graph.needs_of(op, tile.box))


def _widest(channels: int, count: int) -> int:
    return max(stop - start for start, stop in spans_of(channels, count))


def _cut(tile: Tile, span: Sequence[int]) -> Tile:
    box = tile.box
    return replace(tile, box=Box((*box.start[:-1], span[0]), (*box.stop[:-1], span[1])))
