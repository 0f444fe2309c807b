"""Rounds: several frames at once, each on a group of PEs of its own, for throughput.

The root says go; every PE fetches its part of its frame from DRAM, and the outputs come to the root, which ends the
round. Each group may take several frames in turn, `waves`, and fetches the next while it computes. In a wave it may
take several frames together, `lanes`, op by op: while the tiles of one are on their way it computes another.

Constants that do not fit are streamed: cut into slices, which one PE of the first group asks of DRAM and multicasts
to the PEs of all groups that stand where it stands. It asks for the slice after next when all of them have told it
that they are done with a slice, so that two are in memory, one in use and one arriving.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.assignment import Assignment, Tile
from npukit.plan.copies import LARGEST
from npukit.plan.emit import finished
from npukit.plan.graph import Graph
from npukit.plan.memory import aligned
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import DRAM, Buffer, Plan, streamed_name
from npukit.plan.program import Block
from npukit.plan.programs import Emitter, Engines
from npukit.plan.regions import Ends, in_frame
from npukit.plan.traffic import SIGNAL, Parcel

SLICE_BYTES = 8 << 10
"""Constants are streamed in slices of about this size, unless a round says otherwise."""

CHANNEL_GRAIN = 16
"""Slices end where the MAC array's blocks of channels end."""

SLICES_IN_MEMORY = 3

FETCH_PARTS = 8
"""Parts in which a wave's inputs are fetched during the wave before."""


@dataclass(frozen=True)
class Round:
    """What a round does: groups of PEs with the same assignment each on its own; lanes; waves; the ops streamed.

    Small slices leave more memory for all else; large ones are less often interrupted.
    """

    groups: tuple[Assignment, ...]
    lanes: int = 1
    waves: int = 1
    streamed: frozenset[str] = frozenset()
    slice_bytes: int = SLICE_BYTES
    fetched: bool = True
    """Inputs lie in DRAM, whence each PE fetches its part; else on the root."""


@dataclass(frozen=True)
class _Slice:
    """Constants of a piece of a tile: op, piece, and the tile of each frame of the wave that it is a piece of."""

    wave: int
    index: int
    piece: Box
    tiles: tuple[Tile, ...]
    source: Block
    """In DRAM."""
    block: Block
    """In the PEs, while the wave needs it."""

    @property
    def pes(self) -> tuple[int, ...]:
        """The streamer, and who stands where it stands in the other groups."""
        return tuple(dict.fromkeys(tile.pe for tile in self.tiles))


def emit_round(graph: Graph, board: Board, engines: Engines, wanted: Round) -> Plan:
    """The plan of a round, without its predicted cycles. It may not fit: see the PEs' memory."""
    emitter = _RoundEmitter(graph, board, engines, wanted)
    emitter.emit()
    frames = len(emitter.emitter.assignments)
    plan = finished(graph, board, emitter.emitter.traffic, "throughput", frames)
    return replace(plan, frames=frames, dram=tuple(emitter.dram()))


class _RoundEmitter:
    def __init__(self, graph: Graph, board: Board, engines: Engines, wanted: Round) -> None:
        root = pes_in_order(board)[0]
        self._graph, self._engines, self._round = graph, engines, wanted
        self.emitter = Emitter(
            graph, board, engines, wanted.groups * (wanted.lanes * wanted.waves), _ends(wanted, root)
        )
        self._traffic = self.emitter.traffic
        self._to_stream: dict[int, deque[_Slice]] = {}
        self._done: dict[int, Block] = {}
        self._calm = _calm_from(graph)
        self._to_compute: dict[tuple[int, int], list[_Slice]] = {}
        for slice_ in self._slices():
            self._to_stream.setdefault(slice_.tiles[0].pe, deque()).append(slice_)
            self._to_compute.setdefault((slice_.wave, slice_.index), []).append(slice_)

    def emit(self) -> None:
        self._go()
        if not self._round.fetched:
            self._bring_inputs(0)
        for streamer in self._to_stream:
            for _ in range(SLICES_IN_MEMORY):
                self._stream_next(streamer)
        if self._round.fetched:
            self._bring_inputs(0)
        for wave in range(self._round.waves):
            self._wave(wave)
        self.emitter.end()

    def _frames(self, wave: int) -> range:
        """A frame for each group and lane, lane by lane."""
        frames = len(self._round.groups) * self._round.lanes
        return range(wave * frames, (wave + 1) * frames)

    def _bring_inputs(self, wave: int) -> None:
        for frame in self._frames(wave):
            self.emitter.bring_inputs(frame)

    def _wave(self, wave: int) -> None:
        """Op by op; meanwhile the next wave's inputs are fetched."""
        for index, op in enumerate(self._graph.ops):
            if wave + 1 < self._round.waves:
                self._fetch(wave + 1, index)
            if (wave, index) in self._to_compute:
                self._compute_slices(wave, index, op)
            else:
                self._compute_whole(wave, index, op)

    def _fetch(self, wave: int, index: int) -> None:
        """Part of a wave's inputs, an op at a time, so that DRAM and DMA have time for the rest."""
        parts = min(FETCH_PARTS, len(self._graph.ops) - self._calm)
        if 0 <= index - self._calm < parts:
            for frame in self._frames(wave):
                self.emitter.fetch_part(frame, index - self._calm, parts)

    def _compute_whole(self, wave: int, index: int, op: Op) -> None:
        """Frame by frame, what others need of it sent at once."""
        for frame in self._frames(wave):
            for tile in self.emitter.assignments[frame][op.name]:
                self.emitter.compute(frame, index, tile)
            self.emitter.send(frame, op.output)

    def _compute_slices(self, wave: int, index: int, op: Op) -> None:
        """Slice by slice, each for all frames."""
        for slice_ in self._to_compute[wave, index]:
            for frame, tile in zip(self._frames(wave), slice_.tiles, strict=True):
                self.emitter.compute(frame, index, tile, slice_.piece, slice_.block)
            self._release(slice_)
        for frame in self._frames(wave):
            self.emitter.send(frame, op.output)

    def _go(self) -> None:
        """The root starts everybody."""
        root, *others = self._traffic.programs
        go = Block("go", SIGNAL)
        if others:
            self._traffic.send([_signal(root, go, others)])
        for pe in others:
            self._traffic.wait_for(pe, go)

    def _release(self, slice_: _Slice) -> None:
        """The streamer replaces the slice before this one; the others say that they are done with this one."""
        streamer, *others = slice_.pes
        before = self._done.pop(streamer, None)
        if before:
            self._traffic.wait_for(streamer, before)
            self._stream_next(streamer)
        if self._to_stream[streamer]:
            done = Block(f"done with {slice_.block.name}", SIGNAL)
            self._traffic.send([_signal(pe, done, [streamer]) for pe in others])
            self._done[streamer] = done

    def _stream_next(self, streamer: int) -> None:
        waiting = self._to_stream[streamer]
        if waiting:
            slice_ = waiting.popleft()
            source, to = slice_.source, tuple((pe, slice_.block) for pe in slice_.pes)
            self._traffic.send([Parcel(streamer, "", DRAM, source, source.box, to, -(-source.bytes // LARGEST))])

    def _slices(self) -> Iterator[_Slice]:
        """In the order in which they are computed."""
        for wave in range(self._round.waves):
            for index, op in enumerate(self._graph.ops):
                if op.name not in self._round.streamed:
                    continue
                for tiles in zip(*(group[op.name] for group in self._round.groups), strict=True):
                    for piece in self._pieces(op, tiles[0].box):
                        source = Block(streamed_name(op.name, piece), self._streamed_bytes(op, piece))
                        block = Block(in_frame(source.name, wave), source.bytes)
                        yield _Slice(wave, index, piece, tiles * self._round.lanes, source, block)

    def _pieces(self, op: Op, box: Box) -> Iterator[Box]:
        """A tile cut along its channels so that the constants of a piece are about `slice_bytes`."""
        channels = box.shape[-1]
        count = -(-self._streamed_bytes(op, box) // self._round.slice_bytes)
        step = max(channels // count // CHANNEL_GRAIN, 1) * CHANNEL_GRAIN
        for begin in range(box.start[-1], box.stop[-1], step):
            end = min(begin + step, box.stop[-1])
            yield Box((*box.start[:-1], begin), (*box.stop[:-1], end))

    def _streamed_bytes(self, op: Op, box: Box) -> int:
        """The constants of a box but for the command, which holds addresses and stays in the image."""
        return self._engines[op.engine].cost(self._graph.net, op, box).constant_bytes - self.emitter.command_bytes(op)

    def dram(self) -> Iterator[Buffer]:
        """What lies in DRAM: the slices, then the inputs of every frame."""
        end = max(len(program.steps) for program in self._traffic.programs.values()) - 1
        slices = dict.fromkeys(slice_.source for slices in self._to_compute.values() for slice_ in slices)
        wanted = [(block.name, "", block.box, block.bytes) for block in slices]
        for frame in range(len(self.emitter.assignments) if self._round.fetched else 0):
            for name in self._graph.net.inputs:
                whole = Box.whole(self._graph.shape(name))
                wanted.append((in_frame(name, frame), name, whole, self._graph.net.tensor(name).bytes))
        offset = 0
        for name, tensor, box, size in wanted:
            yield Buffer(name, tensor, box, size, offset, 0, end)
            offset += aligned(size)


def _ends(wanted: Round, root: int) -> Ends:
    return Ends(DRAM if wanted.fetched else root, root)


def _signal(sender: int, block: Block, receivers: Sequence[int]) -> Parcel:
    return Parcel(sender, "", sender, block, block.box, tuple((pe, block) for pe in receivers), 1)


def _calm_from(graph: Graph) -> int:
    """The first op from which on a frame's tensors and the next frame's inputs take no more than the frame's peak."""
    live = [_live_bytes(graph, index) for index in range(len(graph.ops))]
    inputs = sum(graph.net.tensor(name).bytes for name in graph.net.inputs)
    crowded = [index for index, held in enumerate(live) if held + inputs > max(live)]
    return min(max(crowded, default=-1) + 1, len(graph.ops) - 1)


def _live_bytes(graph: Graph, index: int) -> int:
    """Bytes of the whole tensors that an op reads, makes, or leaves for later."""
    made = [*graph.net.inputs, *(op.output for op in graph.ops[: index + 1])]
    held = [name for name in made if name == graph.ops[index].output or max(graph.consumers[name], default=0) >= index]
    return sum(graph.net.tensor(name).bytes for name in held)
