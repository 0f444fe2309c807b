"""Rounds where memory is short: large groups, in which nothing has a place in memory before it must.

What others send gets its place once a PE has computed, and slices of constants are as large as each layer leaves room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.plan.batch.batch import Round
from npukit.plan.batch.live_bytes import most_held
from npukit.plan.batch.weight_streaming import most_streamed
from npukit.plan.batch_search.data_parallel import WELL_USED, round_of
from npukit.plan.emit.emitter import Engines
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import FIRMWARE_BYTES, STACK_BYTES, missing_bytes
from npukit.plan.predict.predict import with_predictions
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.objectives import QUICK
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.in_place import upon

SIZES = (28, 38, 49, 76)

SEARCHED = 0.5
"""Part of a PE's memory that tensors and slices may take at once while layouts are searched for."""

SLICE = 12_000
"""Bytes of the slices that are expected then."""

PRICE, MOVES_WEIGH = 0.03, 6.0
"""Cycles a byte of constants costs, and times as much as its cycles that moving data does: both take memory too."""

ROOMS = (0.58, 0.52, 0.46, 0.4)
"""Parts of the memory that tensors and slices get, tried."""

LEAST_SLICES = (8 << 10, 1)
"""Bytes of slices where there is least room, and how many."""


def compact_plan(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Plan | None:
    """The first that fits, of groups of the smallest size, as these share constants with most others; or None."""
    for wanted in _rounds(graph, board, engines, order):
        if not wanted.feeders:  # else groups are alike, and only one of them is emitted anyway
            alone = most_streamed(graph, board, engines, replace(wanted, groups=wanted.groups[-1:]))
            if alone is None or missing_bytes(board, alone):
                continue
        whole = most_streamed(graph, board, engines, wanted)
        if whole and not missing_bytes(board, whole):
            return with_predictions(graph.net, board, whole)
    return None


def _rounds(graph: Graph, board: Board, engines: Engines, order: Sequence[int]) -> Iterator[Round]:
    memory = board.memory_for("activations").size
    for size in (*SIZES, len(order)):
        if len(order) // size * size < WELL_USED * len(order):
            continue
        found = _of_size(graph, board, engines, order, size)
        least = _least_bytes(graph, engines, found)
        if least <= memory - STACK_BYTES - FIRMWARE_BYTES:
            rooms = dict.fromkeys(max(int(part * memory), least) for part in ROOMS)
            yield from (replace(found, room=room) for room in rooms)


def _of_size(graph: Graph, board: Board, engines: Engines, order: Sequence[int], size: int) -> Round:
    room = int(SEARCHED * board.memory_for("activations").size)
    search = LatencySearch(
        graph,
        board,
        engines,
        order[:size],
        QUICK,
        fetched=True,
        room=room,
        slices=1,
        slice_size=SLICE,
        moves_weigh=MOVES_WEIGH,
    )
    slice_bytes, slices = LEAST_SLICES
    found = round_of(search.best(PRICE), order, size)
    return replace(found, slice_bytes=slice_bytes, slices=slices, compact=True)


def _least_bytes(graph: Graph, engines: Engines, wanted: Round) -> int:
    """Of the PE of a group that holds most, but for the outputs."""
    regions = regions_of(graph, wanted.groups[-1], Ends(DRAM, DRAM), 0, compact=True)
    return max(most_held(graph, [regions], upon(graph, engines), late=True)) + wanted.slices * wanted.slice_bytes
