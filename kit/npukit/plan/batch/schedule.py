"""The schedule of a batch: all decisions before the first step or message is emitted.

The root starts the batch. Every PE fetches a part of a frame from DRAM. Outputs go to the root, or to DRAM if they are
large. The root ends the batch. A group may compute several `micro_batches` in turn, and fetches the next while
computing. Within a micro-batch, a group may compute several frames `interleaved`, op by op: a frame while the tiles of
another are in flight.

Ops at the end of the network are deferred if their constants take longer to arrive than to compute with, as in dense
layers. Deferred ops run at the end of the batch for all micro-batches, and their constants arrive only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import product

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import Turn, between, in_bands, turns_of
from npukit.plan.batch.live_bytes import most_held
from npukit.plan.batch.weight_tiles import (
    LARGEST_WEIGHT_TILE,
    MOST_WEIGHT_TILE_BYTES,
    WeightTile,
    cut_in_weight_tiles,
    fetches_of,
    most_listed,
    prefetchers_of,
    weight_tiles_of,
)
from npukit.plan.emit.emitter import streamed_bytes
from npukit.plan.emit.pe_program import Block, use_of
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.emit.replicas import NO_REPLICAS, Replicas, replicas_of
from npukit.plan.ir.assignment import useful
from npukit.plan.ir.plan import streamed_name
from npukit.plan.predict.memory import aligned
from npukit.plan.tensors.graph import Graph, aliases
from npukit.plan.tensors.problem import Problem


@dataclass(frozen=True)
class Place:
    """A place in the order of a batch: the turn of an op, and the frames.

    An op with streamed constants is computed weight tile by weight tile. `fetch`: the part of the next frames' inputs
    to fetch before the turn, and the number of parts.
    """

    turn: Turn
    frames: Sequence[int]
    fetch: tuple[int, int] | None
    weight_tiles: Sequence[WeightTile]


def scheduled(problem: Problem, wanted: Batch) -> Schedule:
    """The schedule of a batch, for one replica group only, or for all groups if PEs of the groups must fetch weight
    tiles."""
    groups = tuple(in_bands(problem.graph, useful(problem.graph, group), wanted.bands) for group in wanted.groups)
    wanted = replace(wanted, groups=groups)
    alike, root = NO_REPLICAS, problem.board.root_pe
    if wanted.fetched:
        alike = replicas_of(groups, wanted.prefetchers, root, problem.cpus)
    schedule = Schedule(problem, wanted, alike)
    if alike.count > 1 and not schedule.are_listed_apart:
        return Schedule(problem, wanted, NO_REPLICAS)
    return schedule


class Schedule:
    """A batch with all decisions made: the tiles of each PE, the order of computation, and the locations of tensors.

    `alike`: groups that are not emitted, because they repeat an emitted group. `frames`: the emitted frames.
    """

    def __init__(self, problem: Problem, wanted: Batch, alike: Replicas) -> None:
        self._problem, self._graph, self.batch, self.alike = problem, problem.graph, wanted, alike
        emitted = (frame for frame in range(wanted.frames) if not alike.is_copied(frame))
        self.frames = {frame: wanted.groups[frame % len(wanted.groups)] for frame in emitted}
        self.ends = ends_of(problem, fetched=wanted.fetched)
        thin = between(problem.graph, wanted.bands)
        self.regions = {
            frame: regions_of(problem.graph, assignment, self.ends, frame, thin, low_memory=wanted.low_memory)
            for frame, assignment in self.frames.items()
        }
        self._deferred = _deferred_from(problem, wanted)
        self._cut = lru_cache(maxsize=None)(self._cut_anew)
        self._source = lru_cache(maxsize=None)(self._constants_in_dram)
        self.places = list(self._places())
        rooms = {tile: self._rooms[place.turn.index] for place in self.places for tile in place.weight_tiles}
        least = 1 if wanted.low_memory else 2
        self._fetches = fetches_of(rooms, least, len(self.places), wanted.stream.prefetch_distance)
        outputs = self.batch.frames * output_bytes(self._graph) if self.ends.outputs != DRAM else 0
        root, room = problem.board.root_pe, most_listed(problem.board)
        listed = {pe: max(room - outputs * (pe == root), 0) for pe in wanted.prefetchers}
        in_time = (tile for tiles in self._fetches.values() for tile in tiles)
        self._prefetchers, self.are_listed_apart = prefetchers_of(in_time, listed, alike.count)

    def fetches(self, moment: int | WeightTile) -> Iterator[tuple[WeightTile, int]]:
        """The weight tiles to fetch before a place, or after all PEs have computed with another weight tile, each with
        the prefetching PE."""
        return ((tile, self._prefetchers[use_of(tile.block, 1)]) for tile in self._fetches.get(moment, ()))

    def _places(self) -> Iterator[Place]:
        for number, (turn, frames) in enumerate(self._in_order()):
            later = frames[-1] + self.batch.frames_of_micro_batch < self.batch.frames and turn.last
            fetch = self._fetch(turn) if later else None
            yield Place(turn, frames, fetch, tuple(self._weight_tiles(number, turn, frames)))

    def _in_order(self) -> Iterator[tuple[Turn, list[int]]]:
        """Turns with their frames, micro-batch after micro-batch. Deferred ops come last, for all micro-batches."""
        turns, size = turns_of(self._graph, self.batch.bands), self.batch.frames_of_micro_batch
        eager = [turn for turn in turns if turn.index < self._deferred]
        for start, turn in product(range(0, self.batch.frames, size), eager):
            yield turn, [frame for frame in self.frames if start <= frame < start + size]
        for turn in turns[len(eager) :]:
            yield turn, list(self.frames)

    def _fetch(self, turn: Turn) -> tuple[int, int] | None:
        """The part of the next micro-batch's inputs to fetch at a turn, with the number of parts, or None. Each op
        fetches a part, to leave DRAM and DMA time for other transfers."""
        part, parts = turn.index - self._calm, self._deferred - self._calm
        return (part, parts) if 0 <= part < parts else None

    def _weight_tiles(self, number: int, turn: Turn, frames: Sequence[int]) -> Iterator[WeightTile]:
        """The weight tiles of a place, in the order of computation."""
        if turn.op.name in self.batch.stream.ops:
            pieces = [
                [(frame, tile, box) for box in self._cut(turn.index, tile.box)]
                for frame in frames
                for tile in turn.tiles(self.frames[frame])
            ]
            micro_batch = frames[0] // self.batch.frames_of_micro_batch
            yield from weight_tiles_of(number, micro_batch, pieces, partial(self._source, turn.index))

    def _cut_anew(self, index: int, box: Box) -> list[Box]:
        """The boxes computed with a single weight tile each, equal in every micro-batch."""
        wanted = min(self._rooms[index] // self.batch.stream.tiles, MOST_WEIGHT_TILE_BYTES)
        filled = self.batch.stream.room is not None and not self.batch.low_memory
        most = wanted if filled else LARGEST_WEIGHT_TILE * wanted
        return cut_in_weight_tiles(box, partial(self._size, self._graph.ops[index]), wanted, most)

    def _constants_in_dram(self, index: int, box: Box) -> Block:
        op = self._graph.ops[index]
        form = self._problem.cost(op, box).constants_key
        return Block(streamed_name(op.name, box, form), self._size(op, box))

    def _size(self, op: Op, box: Box) -> int:
        return streamed_bytes(self._problem.engines[op.engine], self._problem.cost(op, box))

    @cached_property
    def _calm(self) -> int:
        """The first op from which on the next micro-batch's inputs have room: no later op's tensors and these inputs
        together exceed the peak."""
        if self.batch.stream.ops and self.batch.stream.room is not None:
            held = self._held(None)
            inputs = max(more - each for each, more in zip(held, self._held(0), strict=True))
        else:
            held, net = _live_bytes(self._graph), self._problem.net
            inputs = sum(net.tensor(name).bytes for name in net.inputs)
        peak = max(held)
        crowded = [index for index, each in enumerate(held) if each + inputs > peak]
        return min(max(crowded, default=-1) + 1, len(held) - 1, self._deferred - 1)

    @cached_property
    def _rooms(self) -> list[int]:
        """Bytes available for weight tiles while each op is computed."""
        stream = self.batch.stream
        if stream.room is None:
            return [stream.least_bytes] * len(self._graph.ops)
        held = self._held(self._calm if self.batch.micro_batches > 1 else None)
        room = max(stream.room, max(held) + stream.least_bytes)
        return [room - each for each in held]

    def _held(self, fetched_from: int | None) -> list[int]:
        """Bytes of tensors while each op is computed, on the fullest PE."""
        wanted = self.batch
        return most_held(
            self._graph,
            [regions for frame, regions in self.regions.items() if frame < wanted.frames_of_micro_batch],
            aliases(self._graph, self._problem.engines),
            late=wanted.low_memory,
            prefetch_distance=wanted.stream.prefetch_distance,
            between=between(self._graph, wanted.bands),
            fetched_from=fetched_from,
        )


def ends_of(problem: Problem, *, fetched: bool) -> Ends:
    """The locations of inputs and outputs. If inputs are `fetched` from DRAM, outputs of more than an eighth of a PE's
    memory go to DRAM.

    Outputs go to DRAM only if DRAM is at the root's own router: only then can the root tell when they have arrived.
    """
    board, graph = problem.board, problem.graph
    large = output_bytes(graph) > board.memory_for("activations").size // 8
    near = board.noc is not None and not board.shares_memory and board.root_pe % board.mesh.pes.count == 0
    made = {op.output for op in graph.ops}.issuperset(graph.outputs)
    stored = fetched and large and near and made
    return Ends(DRAM if fetched else board.root_pe, DRAM if stored else board.root_pe)


def output_bytes(graph: Graph) -> int:
    """Bytes of the outputs of one frame. The root holds the outputs of every frame."""
    return sum(aligned(graph.net.tensor(name).bytes) for name in graph.outputs)


def _live_bytes(graph: Graph) -> list[int]:
    """Bytes of the whole tensors read, written, or left for later ops by each op."""
    left = [graph.net.begins, *graph.live_after()]
    live = ({*before, *graph.sources(op), op.output} for before, op in zip(left, graph.ops, strict=False))
    return [sum(graph.net.tensor(name).bytes for name in names) for names in live]


def _deferred_from(problem: Problem, wanted: Batch) -> int:
    """The index of the first deferred op at the network's end; never 0.

    The constants of deferred ops take longer to arrive than to compute with, but arrive only once for all micro-batches
    of a batch. With none deferred, MobileNetV1 on 152 PEs is 7 % slower.
    """
    index = len(problem.graph.ops)
    while index > 1 and _is_deferred(problem, wanted, problem.graph.ops[index - 1]):
        index -= 1
    return index


def _is_deferred(problem: Problem, wanted: Batch, op: Op) -> bool:
    weighs = any(name in problem.net.constants for name in op.inputs)
    if op.name not in wanted.stream.ops or not weighs or problem.board.noc is None:
        return False
    engine, tiles = problem.engines[op.engine], wanted.groups[0][op.name]
    whole = engine.cost(problem.net, op, Box.whole(problem.graph.shape(op.output))).constant_bytes
    computed = max(engine.cost(problem.net, op, tile.box).cycles for tile in tiles)
    return whole / problem.board.noc.dram_bytes_per_cycle > wanted.interleaved * computed
