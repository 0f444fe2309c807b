"""What a round's PEs need at least, known before anything is emitted: what cannot fit need not be tried."""

from __future__ import annotations

from collections import Counter
from functools import partial

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.assignment import Assignment, useful
from npukit.plan.bands import between, in_bands
from npukit.plan.graph import Graph
from npukit.plan.memory import CODE_OF_THE_LOOP, STEP_BYTES, WORKER_BYTES, WORKER_STACK_BYTES
from npukit.plan.occupancy import most_at_once
from npukit.plan.plan import DRAM
from npukit.plan.programs import Engines
from npukit.plan.regions import Ends, regions_of
from npukit.plan.round import Round
from npukit.plan.streams import LARGEST_SLICE, MOST_SLICE_BYTES, cut_in_slices
from npukit.plan.upon import upon

ROWS_OF_A_SLICE = 2
"""Of a program's table at least: to wait for a slice, to compute with it. Another one tells who asks for it, if that is
another PE, that there is room."""


def may_fit(graph: Graph, board: Board, engines: Engines, wanted: Round) -> bool:
    """Whether a round whose constants are all streamed may, of which the last group neither has the root nor gets its
    places late."""
    group = in_bands(graph, useful(graph, wanted.groups[-1]), wanted.bands)
    thin = between(graph, wanted.bands)
    regions = regions_of(graph, group, Ends(DRAM, DRAM), 0, thin)
    held = most_at_once(graph, regions, upon(graph, engines), _in_place(graph, engines, group), thin)
    rows_of_a_slice = ROWS_OF_A_SLICE + bool(wanted.feeders)
    rows = STEP_BYTES * rows_of_a_slice * max(_slices(graph, engines, group, wanted).values(), default=0)
    firmware = WORKER_BYTES + CODE_OF_THE_LOOP + WORKER_STACK_BYTES
    return held + rows + firmware <= board.memory_for("activations").size


def _in_place(graph: Graph, engines: Engines, group: Assignment) -> frozenset[int]:
    """Ops, by number, that may write where they read."""
    first = ((index, op, tile.box) for index, op in enumerate(graph.ops) for tile in group[op.name][:1])
    return frozenset(index for index, op, box in first if engines[op.engine].cost(graph.net, op, box).in_place)


def _slices(graph: Graph, engines: Engines, group: Assignment, wanted: Round) -> Counter[int]:
    """By PE, at least."""
    largest = wanted.slice_bytes if wanted.room is None else MOST_SLICE_BYTES
    found: Counter[int] = Counter()
    for op in graph.ops:
        size = partial(_constant_bytes, graph, engines, op)
        counts: dict[tuple[int, ...], int] = {}
        for tile in group[op.name]:
            if size(tile.box) > largest and tile.box.shape not in counts:
                counts[tile.box.shape] = len(cut_in_slices(tile.box, size, largest, LARGEST_SLICE * largest))
            found[tile.pe] += counts.get(tile.box.shape, 0)
    return found


def _constant_bytes(graph: Graph, engines: Engines, op: Op, box: Box) -> int:
    return engines[op.engine].cost(graph.net, op, box).constant_bytes
