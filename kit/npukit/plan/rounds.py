"""Rounds: several frames at once, each on a group of PEs of its own, for throughput.

The root says go; every PE fetches its part of its frame from DRAM, and the outputs come to the root, which ends the
round. Each group may take several frames in turn, `waves`, and fetches the next while it computes. In a wave it may
take several frames together, `lanes`, op by op: while the tiles of one are on their way it computes another.

Constants that do not fit are streamed (`streams.py`): cut into slices, each of which one PE asks of DRAM and multicasts
to all PEs that compute with it, once they have told it that they have room.

In a pipeline a group's PEs are cut into stages, of consecutive ops: while one stage computes a wave's frames the stage
before it computes those of the next.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.assignment import Assignment, useful
from npukit.plan.bands import Bands, Turn, between, in_bands, turns_of
from npukit.plan.emit import finished
from npukit.plan.graph import Graph
from npukit.plan.memory import aligned
from npukit.plan.placement import pes_in_order
from npukit.plan.plan import DRAM, Buffer, Plan, streamed_name
from npukit.plan.program import Block
from npukit.plan.programs import Emitter, Engines, whatever
from npukit.plan.regions import Ends, in_frame
from npukit.plan.streams import SLICE_BYTES, SLICES_IN_MEMORY, Piece, Slice, Streams, cut_in_slices, slices_of
from npukit.plan.traffic import SIGNAL, signal

LEAD = 1
"""So many ops before they are computed with, slices may arrive."""

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
    slices: int = SLICES_IN_MEMORY
    """That have room in a PE together: one in use, others there or arriving."""
    fetched: bool = True
    """Inputs lie in DRAM, whence each PE fetches its part; else on the root."""
    feeders: tuple[int, ...] = ()
    """PEs of no group, which ask for what is streamed; without any, PEs that compute do."""
    cuts: tuple[int, ...] = ()
    """In a pipeline, the first ops of all stages but the first."""

    bands: Bands = field(default_factory=dict)
    """Ops that take turns with those behind them."""

    def stage_of(self, index: int) -> int:
        """Of an op, by its number."""
        return bisect_right(self.cuts, index)


def emit_round(graph: Graph, board: Board, engines: Engines, wanted: Round) -> Plan:
    """The plan of a round, without its predicted cycles. It may not fit: see the PEs' memory."""
    useful_groups = tuple(in_bands(graph, useful(graph, group), wanted.bands) for group in wanted.groups)
    emitter = _RoundEmitter(graph, board, engines, replace(wanted, groups=useful_groups))
    emitter.emit()
    frames = len(emitter.emitter.assignments)
    plan = finished(graph, board, emitter.emitter.traffic, "throughput", frames)
    return replace(plan, frames=frames, dram=tuple(emitter.dram()))


class _RoundEmitter:
    def __init__(self, graph: Graph, board: Board, engines: Engines, wanted: Round) -> None:
        root = pes_in_order(board)[0]
        self._graph, self._engines, self._round = graph, engines, wanted
        frames = wanted.groups * (wanted.lanes * wanted.waves)
        self._turns, apart = turns_of(graph, wanted.bands), between(graph, wanted.bands)
        self.emitter = Emitter(graph, board, engines, frames, _ends(wanted, root), wanted.feeders, apart)
        self._traffic = self.emitter.traffic
        self._calm = _calm_from(graph)
        self._to_compute: dict[int, list[Slice]] = {}
        for slice_ in self._slices():
            self._to_compute.setdefault(slice_.place, []).append(slice_)
        slices = [slice_ for same in self._to_compute.values() for slice_ in same]
        self._streams = Streams(self._traffic, slices, wanted.feeders, wanted.slices * wanted.slice_bytes)

    def emit(self) -> None:
        self._go()
        self._bring_inputs(0)
        for wave, number in self._order():
            self._turn(wave, number)
        self.emitter.end()

    def _order(self) -> list[tuple[int, int]]:
        """Waves and numbers of turns: wave after wave, and each stage of a pipeline a wave behind the stage before it.

        The stage before comes first: what it makes has a place while the stage after it is at the wave before.
        """
        stages = [self._round.stage_of(turn.index) for turn in self._turns]
        places = product(range(self._round.waves), range(len(self._turns)))
        return sorted(places, key=lambda place: (place[0] + stages[place[1]], stages[place[1]], place))

    def _frames(self, wave: int) -> range:
        """A frame for each group and lane, lane by lane."""
        frames = len(self._round.groups) * self._round.lanes
        return range(wave * frames, (wave + 1) * frames)

    def _bring_inputs(self, wave: int) -> None:
        for frame in self._frames(wave):
            self.emitter.bring_inputs(frame)

    def _turn(self, wave: int, number: int) -> None:
        """A turn of a wave; meanwhile the next wave's inputs are fetched."""
        place, turn = wave * len(self._turns) + number, self._turns[number]
        self._streams.open(place + LEAD)
        if wave + 1 < self._round.waves and turn.last:
            self._fetch(wave + 1, turn.index)
        if place in self._to_compute:
            self._compute_slices(wave, place, turn)
        else:
            self._compute_whole(wave, turn)

    def _fetch(self, wave: int, index: int) -> None:
        """Part of a wave's inputs, an op at a time, so that DRAM and DMA have time for the rest."""
        calm = 0 if self._round.cuts else self._calm  # the first stage's PEs have room, and begin the next wave soon
        ops = self._round.cuts[0] if self._round.cuts else len(self._graph.ops)
        parts = min(FETCH_PARTS, ops - calm)
        if 0 <= index - calm < parts:
            for frame in self._frames(wave):
                self.emitter.fetch_part(frame, index - calm, parts)

    def _compute_whole(self, wave: int, turn: Turn) -> None:
        """Frame by frame, what others need of it sent at once."""
        for frame in self._frames(wave):
            if not self.emitter.is_last(turn.op.output):
                self._ask([frame], turn)
            for tile in turn.tiles(self.emitter.assignments[frame]):
                self.emitter.compute(frame, turn.index, tile)
            self._send(frame, turn)

    def _compute_slices(self, wave: int, place: int, turn: Turn) -> None:
        """Slice by slice, each for all frames."""
        last = self.emitter.is_last(turn.op.output)
        if not last:
            self._ask(self._frames(wave), turn)
        first = self._frames(wave).start
        for slice_ in self._to_compute[place]:
            for piece in slice_.pieces:
                self.emitter.compute(first + piece.frame, turn.index, piece.tile, piece.box, slice_.block)
            self._streams.release(slice_)
        if last:  # outputs may lie where slices lay
            self._ask(self._frames(wave), turn)
        for frame in self._frames(wave):
            self._send(frame, turn)

    def _ask(self, frames: Sequence[int], turn: Turn) -> None:
        if self._is_sent(turn):
            self.emitter.ask(frames, turn.op.output, turn.holds if self._is_apart(turn) else whatever)

    def _send(self, frame: int, turn: Turn) -> None:
        if self._is_sent(turn):
            self.emitter.send(frame, turn.op.output, turn.holds if self._is_apart(turn) else whatever)

    def _is_sent(self, turn: Turn) -> bool:
        """Bands of what is between two ops go one by one, what the second makes of them goes when it is whole."""
        return turn.last or self._is_apart(turn)

    def _is_apart(self, turn: Turn) -> bool:
        return turn.op.name in self._round.bands

    def _go(self) -> None:
        """The root starts everybody."""
        root, *others = self._traffic.programs
        go = Block("go", SIGNAL)
        if others:
            self._traffic.send([signal(root, go, others)])
        for pe in others:
            self._traffic.wait_for(pe, go)

    def _slices(self) -> Iterator[Slice]:
        """In the order in which they are computed."""
        for wave in range(self._round.waves):
            for number, turn in enumerate(self._turns):
                if turn.op.name in self._round.streamed:
                    place = wave * len(self._turns) + number
                    yield from slices_of(turn.op, place, self._pieces(wave, turn), self._source)

    def _pieces(self, wave: int, turn: Turn) -> list[list[Piece]]:
        """Of each frame and tile of a turn."""
        found = []
        for number, frame in enumerate(self._frames(wave)):
            for tile in turn.tiles(self.emitter.assignments[frame]):
                boxes = cut_in_slices(tile.box, partial(self._size, turn.op), self._round.slice_bytes)
                found.append([Piece(number, tile, box) for box in boxes])
        return found

    def _source(self, op: Op, box: Box) -> Block:
        """The constants of a box in DRAM."""
        form = self._engines[op.engine].cost(self._graph.net, op, box).constants_form
        return Block(streamed_name(op.name, box, form), self._size(op, box))

    def _size(self, op: Op, box: Box) -> int:
        """The constants of a box but for the command, which holds addresses and stays in the image."""
        return self._engines[op.engine].cost(self._graph.net, op, box).constant_bytes - self.emitter.command_bytes(op)

    def dram(self) -> Iterator[Buffer]:
        """What lies in DRAM: the slices, then the inputs of every frame."""
        end = max(len(program.steps) for program in self._traffic.programs.values()) - 1
        slices = dict.fromkeys(slice_.source for same in self._to_compute.values() for slice_ in same)
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
