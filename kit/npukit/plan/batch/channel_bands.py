"""Bands: two ops alternate over ranges of channels, to keep the tensor between the ops from ever being whole in memory.

Each channel of the second op depends on the same channel of the first op's output only, as in depthwise convolutions.
In an inverted residual of MobileNetV2, the tensor between the ops is by far the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
"""Fraction of a PE's activation memory. Two ops that together need more are computed in bands. Where memory is short,
tiles are searched for that need no more."""

Bands = Mapping[str, int]
"""The number of bands, by the first op of each pair. Ops without bands have no entry."""


@dataclass(frozen=True)
class Turn:
    """A turn of an op in a micro-batch: all tiles, or the tiles of one band of channels. `last`: the output is whole
    after this turn."""

    index: int
    op: Op
    channels: tuple[int, int] | None
    last: bool

    def tiles(self, assignment: Assignment) -> tuple[Tile, ...]:
        tiles = assignment[self.op.name]
        return tuple(tile for tile in tiles if self.holds(tile.box)) if self.channels else tiles

    def holds(self, box: Box) -> bool:
        """True if this turn computes a box of the op's output."""
        return not self.channels or (self.channels[0] <= box.start[-1] and box.stop[-1] <= self.channels[1])


def turns_of(graph: Graph, bands: Bands) -> list[Turn]:
    """The turns of all ops in order. A pair in bands has two turns for each band."""
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
    """Ranges of channels, at most `count` of them. Each is a multiple of `WIDE_GRAIN` long, except the last."""
    step = -(-channels // count // WIDE_GRAIN) * WIDE_GRAIN
    return list(pairwise([*range(0, channels, step), channels]))


def in_bands(graph: Graph, assignment: Assignment, bands: Bands) -> Assignment:
    """The assignment with the tiles of pairs cut into bands."""
    cut = dict(assignment)
    for index, op in enumerate(graph.ops):
        if op.name in bands:
            spans = spans_of(graph.shape(op.output)[-1], bands[op.name])
            for name in (op.name, graph.ops[index + 1].name):
                cut[name] = tuple(
                    replace(tile, box=tile.box.cut(-1, *span)) for span in spans for tile in assignment[name]
                )
    return cut


def between(graph: Graph, bands: Bands) -> frozenset[str]:
    """The tensors between two ops in bands, never whole in memory."""
    return frozenset(op.output for op in graph.ops if op.name in bands)


def bands_for(graph: Graph, board: Board, assignment: Assignment) -> Bands:
    """The number of bands for each pair that would crowd a PE's memory: as few as prevent this, else as many as
    possible."""
    room = board.memory_for("activations").size * CROWDED
    found: dict[str, int] = {}
    for first, second in _pairs(graph):
        tiles = [(tile, graph.shape(op.output)) for op in (first, second) for tile in assignment[op.name]]
        if any(tile.box.shape[-1] < shape[-1] for tile, shape in tiles):  # cut along the channels
            continue
        middle = max(_needed_bytes(graph, second, tile) for tile in assignment[second.name])
        rest = max(_needed_bytes(graph, first, tile) for tile in assignment[first.name])
        rest += max(tile.box.elements for tile in assignment[second.name]) * graph.element_bytes(second.output)
        channels = graph.shape(first.output)[-1]
        counts = range(1, -(-channels // WIDE_GRAIN) + 1)
        widest = {n: max(stop - start for start, stop in spans_of(channels, n)) for n in counts}
        count = next((n for n in counts if rest + widest[n] * middle / channels <= room), counts[-1])
        if count > 1:
            found[first.name] = count
    return found


def narrowed(graph: Graph) -> frozenset[str]:
    """The tensors that bands can keep from being whole, provided no tile is cut along the channels."""
    return frozenset(first.output for first, _ in _pairs(graph))


def _pairs(graph: Graph) -> Iterator[tuple[Op, Op]]:
    """Pairs of neighbouring ops suitable for bands. No op is in two pairs."""
    taken = None
    for first, second in pairwise(graph.ops):
        if first is not taken and _may_take_turns(graph, first, second):
            taken = second
            yield first, second


def _may_take_turns(graph: Graph, first: Op, second: Op) -> bool:
    """True if no other op reads the tensor between the ops, and each channel of the second reads only its own."""
    shape = graph.shape(first.output)
    if CORE in (first.engine, second.engine) or len(shape) != 4 or first.output in graph.outlasting:
        return False
    if graph.consumers[first.output] != (graph.ops.index(second),) or graph.sources(second) != [first.output]:
        return False
    rule = input_rules(graph.net, second)[0]
    channelwise = rule[-1].axis == 3 and graph.shape(second.output)[-1] == shape[-1]
    return channelwise and all(3 in cuttable_axes(graph.net, op) for op in (first, second))


def _needed_bytes(graph: Graph, op: Op, tile: Tile) -> int:
    return sum(box.elements * graph.element_bytes(home) for home, box in graph.needs_of(op, tile.box))
