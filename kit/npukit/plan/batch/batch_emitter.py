"""Batches: several frames at once, each on a group of PEs of its own, for throughput.

The root says go; every PE fetches its part of its frame from DRAM, and the outputs come to the root, which ends the
batch. Each group may take several frames in turn, `micro_batches`, and fetches the next while it computes. In a
micro-batch it may take several frames together, `interleaved`, op by op: while the tiles of one are on their way it
computes another.
Ops at the network's end whose constants take longer to come than to be computed with, as those of dense layers do, are
done at the batch's end for all micro-batches, so that their constants come once.

Constants that do not fit are streamed (`weight_tiles.py`): of each weight tile one PE asks DRAM and
multicasts to all PEs that compute with it, once they have told it that they have room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, product

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import Turn, between, in_bands, turns_of
from npukit.plan.batch.deferred import deferred_from
from npukit.plan.batch.live_bytes import most_held
from npukit.plan.batch.send_after import SendAfter
from npukit.plan.batch.weight_tiles import (
    LARGEST_WEIGHT_TILE,
    MOST_WEIGHT_TILE_BYTES,
    Piece,
    Streams,
    WeightTile,
    cut_in_weight_tiles,
    weight_tiles_of,
)
from npukit.plan.emit.allocate import finished
from npukit.plan.emit.emitter import Emitter
from npukit.plan.emit.messages import UsualFlags
from npukit.plan.emit.pe_program import Block
from npukit.plan.emit.regions import Ends
from npukit.plan.emit.replicas import NO_REPLICAS, Replicas, replicas_of
from npukit.plan.ir.assignment import useful
from npukit.plan.ir.names import in_frame
from npukit.plan.ir.plan import Buffer, Plan, streamed_name
from npukit.plan.predict.memory import aligned
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.in_place import upon
from npukit.plan.tensors.problem import Problem

FETCH_PARTS = 8
"""Parts in which a micro-batch's inputs are fetched during the micro-batch before."""


def emit_batch(problem: Problem, wanted: Batch) -> Plan:
    """The plan of a batch, without its predicted cycles. It may not fit: see the PEs' memory."""
    return steady_batch(problem, wanted, {})


def steady_batch(problem: Problem, wanted: Batch, settled: UsualFlags) -> Plan:
    """The plan of a batch.

    With several micro-batches it is emitted twice: then also the first has the flags on which later ones settle.
    Once is enough if those of one of its groups are known, `settled`, and all groups are alike.
    """
    emitter = _emitted(problem, wanted, settled)
    if wanted.micro_batches > 1 and not (settled and emitter.emits_one_group):
        emitter = _emitted(problem, wanted, emitter.usual_flags)
    return emitter.plan()


def batch_with_flags(problem: Problem, wanted: Batch, flags: UsualFlags) -> tuple[Plan, UsualFlags]:
    """The plan with these flags where they are free, and those on which its later micro-batches settle."""
    emitter = _emitted(problem, wanted, flags)
    return emitter.plan(), emitter.usual_flags


def _emitted(problem: Problem, wanted: Batch, flags: UsualFlags) -> _BatchEmitter:
    """The emitter of one of the replica groups, unless their own PEs must fetch weight tiles."""
    useful_groups = tuple(
        in_bands(problem.graph, useful(problem.graph, group), wanted.bands) for group in wanted.groups
    )
    wanted = replace(wanted, groups=useful_groups)
    alike = replicas_of(wanted.groups, wanted.prefetchers, problem.board.root_pe) if wanted.fetched else NO_REPLICAS
    emitter = _BatchEmitter(problem, wanted, alike, flags)
    if not emitter.streams.are_listed_apart and alike.count > 1:
        emitter = _BatchEmitter(problem, wanted, NO_REPLICAS, flags)
    try:
        emitter.emit()
    finally:
        problem.work.done += emitter.emitter.traffic.size
    return emitter


@dataclass(frozen=True)
class _Place:
    """A place in the order of a batch: an op's turn, and the frames for which it is done then."""

    turn: Turn
    frames: Sequence[int]


class _BatchEmitter:
    def __init__(
        self,
        problem: Problem,
        wanted: Batch,
        alike: Replicas,
        usual_flags: UsualFlags,
    ) -> None:
        root = problem.board.root_pe
        self._graph, self._board, self._engines, self._batch = problem.graph, problem.board, problem.engines, wanted
        self._emitted = [frame for frame in range(wanted.frames) if not alike.is_copied(frame)]
        frames = {frame: wanted.groups[frame % len(wanted.groups)] for frame in self._emitted}
        ends, apart = _ends(wanted, root), between(problem.graph, wanted.bands)
        self.emitter = Emitter(
            problem,
            frames,
            ends,
            wanted.prefetchers,
            apart,
            wanted.frames_of_micro_batch,
            usual_flags,
            alike,
            low_memory=wanted.low_memory,
        )
        self._traffic, self._upon = self.emitter.traffic, upon(problem.graph, problem.engines)
        self._deferred = deferred_from(problem, wanted)
        self._calm = min(
            _calm_from(problem.graph) if wanted.tiling.room is None else self._calm_of_pes(), self._deferred - 1
        )
        self._places = list(self._in_order(turns_of(problem.graph, wanted.bands)))
        self._due = SendAfter(problem.graph, wanted.bands, low_memory=wanted.low_memory)
        self._rooms = self._rooms_for_weight_tiles()
        self._cuts: dict[tuple[int, Box], list[Box]] = {}
        self._to_compute: dict[int, list[WeightTile]] = {}
        for weight_tile in self._weight_tiles():
            self._to_compute.setdefault(weight_tile.place, []).append(weight_tile)
        weight_tiles = [weight_tile for same in self._to_compute.values() for weight_tile in same]
        rooms = {weight_tile: self._rooms[self._places[weight_tile.place].turn.index] for weight_tile in weight_tiles}
        least, outputs = 1 if wanted.low_memory else 2, wanted.frames * output_bytes(problem.graph)
        self.streams = Streams(self._traffic, rooms, wanted.prefetchers, least, outputs)

    @property
    def emits_one_group(self) -> bool:
        return self._traffic.alike.count == len(self._batch.groups)

    @property
    def usual_flags(self) -> UsualFlags:
        return self._traffic.usual_flags

    def plan(self) -> Plan:
        """The plan of what has been emitted."""
        frames = self._batch.frames
        plan = finished(self._graph, self._board, self._traffic, "throughput", frames)
        return replace(plan, frames=frames, dram=tuple(self.dram()))

    def emit(self) -> None:
        self.emitter.go()
        for frame in self._places[0].frames:
            self.emitter.bring_inputs(frame)
        for number, place in enumerate(self._places):
            self.streams.open(number + self._batch.tiling.prefetch_distance)
            if place.frames[-1] + self._batch.frames_of_micro_batch < self._batch.frames and place.turn.last:
                self._fetch(place)
            if number in self._to_compute:
                self._compute_weight_tiles(place, self._to_compute[number])
            else:
                self._compute_whole(place)
        self.emitter.end()

    def _in_order(self, turns: Sequence[Turn]) -> Iterator[_Place]:
        """Micro-batch after micro-batch; deferred ops for all of them at the end."""
        size, frames = self._batch.frames_of_micro_batch, self._batch.frames
        eager = [turn for turn in turns if turn.index < self._deferred]
        for start, turn in product(range(0, frames, size), eager):
            yield _Place(turn, [frame for frame in self._emitted if start <= frame < start + size])
        for turn in turns[len(eager) :]:
            yield _Place(turn, self._emitted)

    def _fetch(self, place: _Place) -> None:
        """Part of the next micro-batch's inputs, every few ops, so that DRAM and DMA have time for the rest."""
        ops = self._deferred - self._calm
        parts = min(FETCH_PARTS, ops)
        part, between_parts = divmod(place.turn.index - self._calm, ops // parts)
        if 0 <= part < parts and not between_parts:
            for frame in place.frames:
                self.emitter.fetch_part(frame + self._batch.frames_of_micro_batch, part, parts)

    def _compute_whole(self, place: _Place) -> None:
        """Frame by frame, what others need of it sent at once."""
        turn = place.turn
        for frame in place.frames:
            if not self._asks_late(turn):
                self._ask([frame], turn)
            for tile in turn.tiles(self.emitter.assignments[frame]):
                self.emitter.compute(frame, turn.index, tile)
            if self._asks_late(turn):
                self._ask([frame], turn)
            self._send(frame, turn)

    def _compute_weight_tiles(self, place: _Place, weight_tiles: Sequence[WeightTile]) -> None:
        """Weight tile by weight tile, each for all frames."""
        turn = place.turn
        if not self._asks_late(turn):
            self._ask(place.frames, turn)
        for weight_tile in weight_tiles:
            for piece in weight_tile.pieces:
                self.emitter.compute(piece.frame, turn.index, piece.tile, piece.box, weight_tile.block)
            self.streams.release(weight_tile)
        if self._asks_late(turn):
            self._ask(place.frames, turn)
        for frame in place.frames:
            self._send(frame, turn)

    def _asks_late(self, turn: Turn) -> bool:
        """Outputs may lie where weight tiles lay."""
        return self._batch.low_memory or self.emitter.is_last(turn.op.output)

    def _ask(self, frames: Sequence[int], turn: Turn) -> None:
        for tensor, chosen in self._due.after(turn):
            self.emitter.ask(frames, tensor, chosen)

    def _send(self, frame: int, turn: Turn) -> None:
        for tensor, chosen in self._due.after(turn):
            self.emitter.send(frame, tensor, chosen)

    def _weight_tiles(self) -> Iterator[WeightTile]:
        """The weight tiles in the order in which they are computed."""
        for number, place in enumerate(self._places):
            op = place.turn.op
            if op.name in self._batch.streamed:
                micro_batch = place.frames[0] // self._batch.frames_of_micro_batch
                yield from weight_tiles_of(op, number, micro_batch, self._pieces(place), self._source)

    def _pieces(self, place: _Place) -> list[list[Piece]]:
        """The pieces of each frame and tile."""
        found = []
        for frame in place.frames:
            for tile in place.turn.tiles(self.emitter.assignments[frame]):
                found.append([Piece(frame, tile, box) for box in self._cut(place.turn.index, tile.box)])
        return found

    def _cut(self, index: int, box: Box) -> list[Box]:
        """The boxes that are computed with one weight tile each; the same in every micro-batch."""
        if (index, box) not in self._cuts:
            self._cuts[index, box] = self._cut_anew(index, box)
        return self._cuts[index, box]

    def _cut_anew(self, index: int, box: Box) -> list[Box]:
        wanted = min(self._rooms[index] // self._batch.tiling.tiles, MOST_WEIGHT_TILE_BYTES)
        most = wanted if self._batch.fills else LARGEST_WEIGHT_TILE * wanted
        return cut_in_weight_tiles(box, partial(self._size, self._graph.ops[index]), wanted, most)

    def _rooms_for_weight_tiles(self) -> list[int]:
        """Bytes for weight tiles while each op is computed."""
        wanted = self._batch
        least = wanted.tiling.least_bytes
        if wanted.tiling.room is None:
            return [least] * len(self._graph.ops)
        held = self._held(self._calm if wanted.micro_batches > 1 else None)
        room = max(wanted.tiling.room, max(held) + least)
        return [room - each for each in held]

    def _held(self, fetched_from: int | None) -> list[int]:
        """Bytes of tensors while each op is computed, on the PE that holds most."""
        wanted = self._batch
        frames = [self.emitter.regions[frame] for frame in self._emitted if frame < wanted.frames_of_micro_batch]
        bands = between(self._graph, wanted.bands)
        return most_held(
            self._graph,
            frames,
            self._upon,
            late=wanted.low_memory,
            prefetch_distance=wanted.tiling.prefetch_distance,
            between=bands,
            fetched_from=fetched_from,
        )

    def _calm_of_pes(self) -> int:
        """The first op from which on also the next micro-batch's inputs have room where most crowded ops have none
        left."""
        held = self._held(None)
        most = max(held)
        inputs = max(more - each for each, more in zip(held, self._held(0), strict=True))
        crowded = [index for index, each in enumerate(held) if each + inputs > most]
        return min(max(crowded, default=-1) + 1, len(held) - 1)

    def _source(self, op: Op, box: Box) -> Block:
        """The constants of a box in DRAM."""
        form = self.emitter.cost(op, box).constants_key
        return Block(streamed_name(op.name, box, form), self._size(op, box))

    def _size(self, op: Op, box: Box) -> int:
        """The constants of a box but for the command, which holds addresses and stays in the image."""
        return self.emitter.cost(op, box).constant_bytes - self.emitter.command_bytes(op)

    def dram(self) -> Iterator[Buffer]:
        """The buffers in DRAM: the weight tiles, then the inputs of every frame."""
        end = max(len(program.steps) for program in self._traffic.programs.values()) - 1
        weight_tiles = dict.fromkeys(weight_tile.source for same in self._to_compute.values() for weight_tile in same)
        wanted = [(block.name, "", block.box, block.bytes) for block in weight_tiles]
        for frame in range(self._batch.frames if self._batch.fetched else 0):
            for name in self._graph.net.inputs:
                whole = Box.whole(self._graph.shape(name))
                wanted.append((in_frame(name, frame), name, whole, self._graph.net.tensor(name).bytes))
        offset = 0
        for name, tensor, box, size in wanted:
            yield Buffer(name, tensor, box, size, offset, 0, end)
            offset += aligned(size)


def output_bytes(graph: Graph) -> int:
    """The bytes of the outputs of one frame, which the root holds of each."""
    return sum(aligned(graph.net.tensor(name).bytes) for name in graph.outputs)


def _ends(wanted: Batch, root: int) -> Ends:
    return Ends(DRAM if wanted.fetched else root, root)


def _calm_from(graph: Graph) -> int:
    """The first op from which on a frame's tensors and the next frame's inputs take no more than the frame's peak."""
    live = _live_bytes(graph)
    inputs = sum(graph.net.tensor(name).bytes for name in graph.net.inputs)
    crowded = [index for index, held in enumerate(live) if held + inputs > max(live)]
    return min(max(crowded, default=-1) + 1, len(graph.ops) - 1)


def _live_bytes(graph: Graph) -> list[int]:
    """The bytes of the whole tensors that each op reads, makes, or leaves for later."""
    changes = [0] * (len(graph.ops) + 1)
    made = [*((0, name) for name in graph.net.inputs), *((index, op.output) for index, op in enumerate(graph.ops))]
    for index, name in made:
        changes[index] += graph.net.tensor(name).bytes
        changes[max(graph.consumers[name], default=index) + 1] -= graph.net.tensor(name).bytes
    return list(accumulate(changes[:-1]))
