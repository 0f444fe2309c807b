"""Emission of a batch by its schedule (`schedule.py`): steps and messages, without decisions.

Constants that do not fit are streamed (`weight_tiles.py`). For each weight tile, one PE waits for the credits of the
computing PEs, then fetches the weight tile from DRAM and multicasts it to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.channel_bands import Bands, Turn
from npukit.plan.batch.schedule import Place, Schedule, scheduled
from npukit.plan.batch.weight_tiles import WeightTile, ask_for
from npukit.plan.emit.allocate import emit_frame, finished
from npukit.plan.emit.emitter import Emitter, TransferFilter
from npukit.plan.emit.messages import NO_FLAGS, UsualFlags
from npukit.plan.ir.names import in_frame
from npukit.plan.ir.plan import Buffer, Plan, orders_name
from npukit.plan.predict.memory import aligned, missing_bytes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

NEARLY_FITS = 6 << 10
"""Bytes that the flags of another emission may save. Without it MobileNetV1 on 152 PEs has three micro-batches instead
of four, and is 1.4 % slower (`planner_constants.py batches`)."""


def emit_batch(problem: Problem, wanted: Batch) -> Plan:
    """The plan of a batch, without predicted cycles. The plan may exceed the memory of PEs."""
    return emit_with_flags(problem, wanted)[0]


def emit_with_flags(problem: Problem, wanted: Batch, *, settle: bool = True) -> tuple[Plan, UsualFlags]:
    """The plan of a batch, and the flags settled on by later micro-batches.

    Without settled flags, several micro-batches are emitted twice: the second emission has the settled flags of the
    first. With `settle=False` that is only done if it may save enough memory.
    """
    if wanted.is_frame:
        return emit_frame(problem, wanted.groups[0], patient=wanted.patient), NO_FLAGS
    schedule, several = scheduled(problem, wanted), wanted.pipeline.micro_batches > 1
    emission = _Emission(problem, schedule, wanted.flags)
    if several and settle and not wanted.flags:
        emission = _Emission(problem, schedule, emission.usual_flags)
    plan = emission.plan()
    if several and 0 < missing_bytes(problem.board, plan) < NEARLY_FITS:
        emission = _Emission(problem, schedule, emission.usual_flags)
        plan = emission.plan()
    return plan, emission.usual_flags if several else NO_FLAGS


class _Emission:
    """The programs and messages of a schedule."""

    def __init__(self, problem: Problem, schedule: Schedule, usual_flags: UsualFlags) -> None:
        batch = schedule.batch
        self._problem, self._schedule, self._batch = problem, schedule, batch
        self._emitter = Emitter(
            problem,
            schedule.frames,
            schedule.regions,
            schedule.ends,
            batch.prefetchers,
            batch.frames_of_micro_batch,
            usual_flags,
            schedule.alike,
            low_memory=batch.low_memory,
        )
        self._traffic = self._emitter.traffic
        self._due = _SendAfter(problem.graph, batch.bands, low_memory=batch.low_memory)
        try:
            self._emit()
        finally:
            problem.work.done += self._traffic.size

    @property
    def usual_flags(self) -> UsualFlags:
        return self._traffic.usual_flags

    def plan(self) -> Plan:
        """The plan of the emitted programs."""
        batch, problem = self._batch, self._problem
        pages, low = batch.in_pages, batch.low_memory
        plan = finished(problem, self._traffic, "throughput", batch.frames, in_pages=pages, low_memory=low)
        return replace(plan, frames=batch.frames, dram=tuple(self._dram(plan)))

    def _emit(self) -> None:
        self._emitter.go()
        for frame in self._schedule.places[0].frames:
            self._emitter.bring_inputs(frame)
        for number, place in enumerate(self._schedule.places):
            self._ask_for_weight_tiles(number)
            if place.fetch:
                for frame in place.fetch.frames:
                    self._emitter.fetch_part(frame, place.fetch.part, place.fetch.parts)
            if place.weight_tiles:
                self._compute_weight_tiles(place)
            else:
                self._compute_whole(place)
        self._emitter.end()

    def _compute_whole(self, place: Place) -> None:
        """Compute frame by frame, and send the results of each frame at once."""
        turn = place.turn
        for frame in place.frames:
            if not self._asks_late(turn):
                self._ask([frame], turn)
            for tile in turn.tiles(self._schedule.frames[frame]):
                self._emitter.compute(frame, turn.index, tile)
            if self._asks_late(turn):
                self._ask([frame], turn)
            self._send(frame, turn)

    def _compute_weight_tiles(self, place: Place) -> None:
        """Compute weight tile by weight tile, each for all frames."""
        turn = place.turn
        if not self._asks_late(turn):
            self._ask(place.frames, turn)
        for weight_tile in place.weight_tiles:
            for piece in weight_tile.pieces:
                self._emitter.compute(piece.frame, turn.index, piece.tile, piece.box, weight_tile.block)
            self._ask_for_weight_tiles(weight_tile)
        if self._asks_late(turn):
            self._ask(place.frames, turn)
        for frame in place.frames:
            self._send(frame, turn)

    def _ask_for_weight_tiles(self, moment: int | WeightTile) -> None:
        residence = self._schedule.residence
        for weight_tile in residence.asked(moment):
            ask_for(self._traffic, weight_tile, residence.prefetcher(weight_tile))

    def _asks_late(self, turn: Turn) -> bool:
        """True if PEs signal room after computing only, because outputs may lie where weight tiles lay."""
        return self._batch.low_memory or self._emitter.is_last(turn.op.output)

    def _ask(self, frames: Sequence[int], turn: Turn) -> None:
        for tensor, chosen in self._due.after(turn):
            self._emitter.signal_room(frames, tensor, chosen)

    def _send(self, frame: int, turn: Turn) -> None:
        for tensor, chosen in self._due.after(turn):
            self._emitter.send(frame, tensor, chosen)

    def _dram(self, plan: Plan) -> Iterator[Buffer]:
        """The buffers in DRAM: weight tiles and orders, then the inputs of every frame, and large outputs."""
        graph, end = self._problem.graph, max(len(program.steps) for program in self._traffic.programs.values()) - 1
        blocks = dict.fromkeys(tile.source for place in self._schedule.places for tile in place.weight_tiles)
        wanted = [(block.name, "", block.box, block.bytes) for block in blocks]
        orders = [(orders_name(pe.pe), pe.bytes_in_pages) for pe in plan.pes if pe.orders.pages]
        wanted += [(name, "", Box.whole((size,)), size) for name, size in orders]
        ends = self._schedule.ends
        stored = (*(graph.net.inputs if ends.inputs == DRAM else ()), *(graph.outputs if ends.outputs == DRAM else ()))
        for frame in range(self._batch.frames):
            for name in stored:
                whole = Box.whole(graph.shape(name))
                wanted.append((in_frame(name, frame), name, whole, graph.net.tensor(name).bytes))
        offset = 0
        for name, tensor, box, size in wanted:
            yield Buffer(name, tensor, box, size, offset, 0, end)
            offset += aligned(size)


class _SendAfter:
    """The transfers to send after each op.

    A tensor between two ops in bands goes band by band. The result of the second op goes when whole.

    `low_memory`: a transfer waits until the op before the first reader is done.
    """

    def __init__(self, graph: Graph, bands: Bands, *, low_memory: bool) -> None:
        self._graph, self._bands, self._low_memory = graph, bands, low_memory
        self._made = {op.output: index for index, op in enumerate(graph.ops)}
        self._late: dict[int, list[str]] = {}
        for op in graph.ops:
            for due in dict.fromkeys(self._after(op.output, reader) for reader in self._readers(op.output)):
                self._late.setdefault(due, []).append(op.output)

    def after(self, turn: Turn) -> Iterator[tuple[str, TransferFilter | None]]:
        """The tensors to send after a turn, each with a filter of transfers; None: all."""
        if turn.op.name in self._bands:
            yield turn.op.output, lambda transfer: turn.holds(transfer.box)
        elif turn.last and self._low_memory:
            for tensor in self._late.get(turn.index, ()):
                yield tensor, lambda transfer: self._after(transfer.source.tensor, transfer.first_reader) == turn.index
        elif turn.last:
            yield turn.op.output, None

    def _readers(self, tensor: str) -> Iterator[int]:
        """The readers of a tensor by op number. The end of the frame counts as a reader of the outputs."""
        yield from self._graph.consumers[tensor]
        if tensor in self._graph.outlasting:
            yield len(self._graph.ops)

    def _after(self, tensor: str, reader: int) -> int:
        """The op after which a transfer to `reader` goes: the op before the reader, but not an op in bands."""
        made, due = self._made[tensor], reader - 1
        while due > made and self._graph.ops[due].name in self._bands:
            due -= 1
        return max(made, due)
