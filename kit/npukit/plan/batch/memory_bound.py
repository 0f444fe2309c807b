"""A lower bound on the memory of a batch's PEs, before emission. A batch with a bound above the memory is not tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from functools import partial

from npukit.accel.interface import Engines
from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import between, in_bands
from npukit.plan.batch.live_bytes import most_at_once
from npukit.plan.batch.weight_tiles import LARGEST_WEIGHT_TILE, MOST_WEIGHT_TILE_BYTES, cut_in_weight_tiles
from npukit.plan.emit.emitter import command_bytes, same_constants, streamed_bytes
from npukit.plan.emit.messages import descriptor_bytes
from npukit.plan.emit.regions import Ends, Regions, copies_to, regions_of, transfers_of
from npukit.plan.ir.assignment import Assignment, useful
from npukit.plan.ir.plan import MemoryUse
from npukit.plan.predict.memory import (
    LAYER_BYTES,
    LAYER_NUMBER_BYTES,
    PAGE_BYTES,
    STACK_BYTES,
    STEP_BYTES,
    WORKER_STACK_BYTES,
    Lacking,
    code_bytes_with_table,
    control_bytes,
    memory_use,
    most_lacking,
)
from npukit.plan.tensors.graph import Graph, aliases
from npukit.plan.tensors.problem import Problem

ROWS_OF_A_WEIGHT_TILE = 2
"""Least number of table rows for a weight tile: to wait and to compute. Another row sends the credit if another PE
prefetches."""

ROWS_OF_A_COMMAND = 3
"""Table rows to patch the command fields that differ between weight tiles of one shape: the addresses of output,
weights and parameters. Consecutive weight tiles never lie in the same place."""


def may_fit(problem: Problem, wanted: Batch) -> bool:
    """True if a batch with all constants streamed may fit."""
    return not any(lacking.missing for lacking in _least(problem, wanted))


def least_lacking(problem: Problem, wanted: Batch) -> Lacking:
    """The PE that lacks the most bytes for a batch with all constants streamed, and a lower bound on the PE's memory
    use."""
    *_, whole = _least(problem, wanted)
    return whole


def _least(problem: Problem, wanted: Batch) -> Iterator[Lacking]:
    """The PE that lacks the most bytes: first without descriptors, because descriptors take longest to compute, then
    with descriptors.

    Considers the last group: this group neither has the root nor gets places late.
    """
    group = in_bands(problem.graph, useful(problem.graph, wanted.groups[-1]), wanted.bands)
    thin, late = between(problem.graph, wanted.bands), wanted.low_memory
    regions = regions_of(problem.graph, group, Ends(DRAM, DRAM), 0, thin, low_memory=late)
    weight_tiles = _WeightTiles(problem.graph, problem.engines, wanted)
    in_place = _in_place(problem.graph, problem.engines, group)
    beside = {op.output: weight_tiles.at_once(op, group) for op in problem.graph.ops}
    aliased = aliases(problem.graph, problem.engines)
    held = most_at_once(problem.graph, regions, aliased, in_place, thin, beside, late=late)
    layers, orders = _layers(group), _orders(problem.graph, problem.engines, group, weight_tiles)
    pages = frozenset(pe for pe in held if wanted.in_pages and problem.board.is_on_roots_chip(pe))
    orders = Counter({pe: min(size, 2 * PAGE_BYTES) if pe in pages else size for pe, size in orders.items()})
    constants = _of_the_core(problem, group) + layers + orders
    kernels = Counter(tile.pe for op in problem.graph.ops if op.engine == CORE for tile in group[op.name])
    yield most_lacking(problem.board, _uses(problem.board, constants, held, kernels))
    if pages >= held.keys():
        return
    descriptors = sum((_descriptors(problem.graph, regions, tensor) for tensor in regions), Counter())
    constants += Counter({pe: size for pe, size in descriptors.items() if pe not in pages})
    yield most_lacking(problem.board, _uses(problem.board, constants, held, kernels))


def _uses(board: Board, constants: Counter[int], held: Counter[int], kernels: Counter[int]) -> Mapping[int, MemoryUse]:
    """The memory use of each PE with a table program. `constants`, `held`: bytes by PE. `kernels`: kernels on the core
    by PE."""
    return {
        pe: memory_use(
            board.seen_by(pe),
            constants[pe],
            held[pe],
            code_bytes_with_table(0, kernels[pe]),
            STACK_BYTES if kernels[pe] else WORKER_STACK_BYTES,
        )
        for pe in held | constants
    }


def _of_the_core(problem: Problem, group: Assignment) -> Counter[int]:
    """Bytes of the CPU ops' constants on each PE, never streamed. Constants shared by tiles count once."""
    found: Counter[int] = Counter()
    there: set[tuple[int, Hashable]] = set()
    for op in problem.graph.ops:
        for tile in group[op.name] if op.engine == CORE else ():
            cost = problem.cost(op, tile.box, tile.pe)
            key = tile.pe, same_constants(problem.graph, op, tile.box, cost)
            found[tile.pe] += 0 if key in there else cost.constant_bytes
            there.add(key)
    return found


def _in_place(graph: Graph, engines: Engines, group: Assignment) -> frozenset[int]:
    """The indices of ops whose output may overwrite an operand."""
    first = ((index, op, tile.box) for index, op in enumerate(graph.ops) for tile in group[op.name][:1])
    return frozenset(index for index, op, box in first if engines[op.engine].cost(graph.net, op, box).may_overwrite)


class _WeightTiles:
    """The weight tiles of a batch, as few and as small as possible."""

    def __init__(self, graph: Graph, engines: Engines, wanted: Batch) -> None:
        self._graph, self._engines, self._wanted = graph, engines, wanted
        self._known: dict[tuple[str, tuple[int, ...]], tuple[int, int]] = {}

    def at_once(self, op: Op, group: Assignment) -> Counter[int]:
        """Bytes of the weight tiles that each PE holds together."""
        return Counter({tile.pe: self._cut(op, tile.box)[1] for tile in group[op.name]})

    def rows(self, op: Op, box: Box) -> int:
        """The table rows for all weight tiles of a tile."""
        count, _ = self._cut(op, box)
        of_one_shape = count - 1 if count > 2 else 0  # the last weight tile may be smaller
        return count * (ROWS_OF_A_WEIGHT_TILE + bool(self._wanted.prefetchers)) + of_one_shape * ROWS_OF_A_COMMAND

    def _cut(self, op: Op, box: Box) -> tuple[int, int]:
        """The number of a tile's weight tiles, and bytes of the first two: one arrives while the other is in use."""
        key = op.name, box.shape
        if key not in self._known:
            self._known[key] = self._cut_anew(op, box)
        return self._known[key]

    def _cut_anew(self, op: Op, box: Box) -> tuple[int, int]:
        if op.engine == CORE:
            return 0, 0
        size, wanted = partial(self._bytes, op), self._wanted
        if size(box) <= wanted.stream.tile_bytes:
            return 0, size(box)
        filled = wanted.stream.room is not None
        small = cut_in_weight_tiles(
            box, size, wanted.stream.tile_bytes, (1 if filled else LARGEST_WEIGHT_TILE) * wanted.stream.tile_bytes
        )
        most = MOST_WEIGHT_TILE_BYTES if filled else wanted.stream.tile_bytes
        large = cut_in_weight_tiles(box, size, most, LARGEST_WEIGHT_TILE * most) if size(box) > most else []
        return len(large), sum(map(size, small[: min(wanted.stream.tiles, 2)]))

    def _bytes(self, op: Op, box: Box) -> int:
        engine = self._engines[op.engine]
        return streamed_bytes(engine, engine.cost(self._graph.net, op, box))


def _orders(graph: Graph, engines: Engines, group: Assignment, weight_tiles: _WeightTiles) -> Counter[int]:
    """Bytes of the commands and table rows on each PE."""
    found: Counter[int] = Counter()
    for op in graph.ops:
        for tile in group[op.name]:
            found[tile.pe] += STEP_BYTES * weight_tiles.rows(op, tile.box) + command_bytes(engines[op.engine])
    return found


def _layers(group: Assignment) -> Counter[int]:
    """Bytes of the layers' data and records on each PE."""
    counts = Counter(tile.pe for tiles in group.values() for tile in tiles)
    return Counter(
        {pe: count * (LAYER_BYTES + LAYER_NUMBER_BYTES) + control_bytes(count) for pe, count in counts.items()}
    )


def _descriptors(graph: Graph, regions: Regions, tensor: str) -> Counter[int]:
    """Bytes of a tensor's descriptors on each PE, for sending and for fetching from DRAM."""
    found: Counter[int] = Counter()
    for transfer in transfers_of(graph, regions, tensor):
        parts = len(copies_to(graph, transfer.box, transfer.source, transfer.destinations[0]))
        if transfer.source.pe == DRAM:
            found.update({to.pe: descriptor_bytes(parts, 1) for to in transfer.destinations})
        else:
            found[transfer.source.pe] += descriptor_bytes(parts, len(transfer.destinations))
    return found
