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
from npukit.plan.batch.channel_bands import Turn
from npukit.plan.batch.schedule import Place, Schedule, scheduled
from npukit.plan.batch.weight_tiles import WeightTile, ask_for
from npukit.plan.emit.allocate import emit_frame, finished
from npukit.plan.emit.emitter import Emitter, TransferFilter
from npukit.plan.emit.messages import NO_FLAGS, UsualFlags
from npukit.plan.ir.names import in_frame
from npukit.plan.ir.plan import Buffer, Plan, orders_name
from npukit.plan.predict.memory import aligned, missing_bytes
from npukit.plan.tensors.problem import Problem


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
    schedule, several = scheduled(problem, wanted), wanted.micro_batches > 1
    emission = _Emission(problem, schedule, wanted.flags)
    if several and settle and not wanted.flags:
        emission = _Emission(problem, schedule, emission.traffic.usual_flags)
    plan = emission.plan()
    if several and 0 < missing_bytes(problem.board, plan) < 6 << 10:  # the most that other flags save
        emission = _Emission(problem, schedule, emission.traffic.usual_flags)
        plan = emission.plan()
    return plan, emission.traffic.usual_flags if several else NO_FLAGS


class _Emission(Emitter):
    """The programs and messages of a schedule.

    A tensor between two ops in bands goes band by band. The result of the second op goes when whole. If memory is
    short, a transfer waits until the op before the first reader is done.
    """

    def __init__(self, problem: Problem, schedule: Schedule, usual_flags: UsualFlags) -> None:
        self._schedule, self._batch, batch = schedule, schedule.batch, schedule.batch
        super().__init__(
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
        self._made = {op.output: index for index, op in enumerate(self.graph.ops)}
        self._late: dict[int, list[str]] = {}
        for op in self.graph.ops:
            readers = [*self.graph.consumers[op.output], *[len(self.graph.ops)] * (op.output in self.graph.outlasting)]
            for due in dict.fromkeys(self._sent_after(op.output, reader) for reader in readers):
                self._late.setdefault(due, []).append(op.output)
        try:
            self._emit()
        finally:
            problem.work.done += self.traffic.size

    def plan(self) -> Plan:
        """The plan of the emitted programs."""
        batch, problem = self._batch, self.problem
        pages, low = batch.in_pages, batch.low_memory
        plan = finished(problem, self.traffic, "throughput", batch.frames, in_pages=pages, low_memory=low)
        return replace(plan, frames=batch.frames, dram=tuple(self._dram(plan)))

    def _emit(self) -> None:
        self.go()
        for frame in self._schedule.places[0].frames:
            self.bring_inputs(frame)
        for number, place in enumerate(self._schedule.places):
            self._fetch_weight_tiles(number)
            if place.fetch:
                for frame in place.frames:
                    self.fetch_part(frame + self._batch.frames_of_micro_batch, *place.fetch)
            if place.weight_tiles:
                self._compute_weight_tiles(place)
            else:
                for frame in place.frames:  # the results of each frame go at once
                    self._compute_whole(frame, place.turn)
        self.end()

    def _compute_whole(self, frame: int, turn: Turn) -> None:
        self._ask([frame], turn, late=False)
        for tile in turn.tiles(self._schedule.frames[frame]):
            self.compute(frame, turn.index, tile)
        self._ask([frame], turn, late=True)
        self._send(frame, turn)

    def _compute_weight_tiles(self, place: Place) -> None:
        """Compute weight tile by weight tile, each for all frames."""
        turn = place.turn
        self._ask(place.frames, turn, late=False)
        for weight_tile in place.weight_tiles:
            for frame, tile, box in weight_tile.pieces:
                self.compute(frame, turn.index, tile, box, weight_tile.block)
            self._fetch_weight_tiles(weight_tile)
        self._ask(place.frames, turn, late=True)
        for frame in place.frames:
            self._send(frame, turn)

    def _fetch_weight_tiles(self, moment: int | WeightTile) -> None:
        for weight_tile, prefetcher in self._schedule.fetches(moment):
            ask_for(self.traffic, weight_tile, prefetcher)

    def _ask(self, frames: Sequence[int], turn: Turn, *, late: bool) -> None:
        """Emit signals of room for the results of a turn, before computing, or after (`late`): if outputs may lie where
        weight tiles lay."""
        if late == (self._batch.low_memory or self.is_last(turn.op.output)):
            for tensor, chosen in self._due(turn):
                self.signal_room(frames, tensor, chosen)

    def _send(self, frame: int, turn: Turn) -> None:
        for tensor, chosen in self._due(turn):
            self.send(frame, tensor, chosen)

    def _due(self, turn: Turn) -> Iterator[tuple[str, TransferFilter | None]]:
        """The tensors to send after a turn, each with a filter of transfers; None: all."""
        if turn.op.name in self._batch.bands:
            yield turn.op.output, lambda transfer: turn.holds(transfer.box)
        elif turn.last and self._batch.low_memory:
            for tensor in self._late.get(turn.index, ()):
                yield tensor, lambda sent: self._sent_after(sent.source.tensor, sent.first_reader) == turn.index
        elif turn.last:
            yield turn.op.output, None

    def _sent_after(self, tensor: str, reader: int) -> int:
        """The op after which a transfer to `reader` goes: the op before the reader, but not an op in bands."""
        made, due = self._made[tensor], reader - 1
        while due > made and self.graph.ops[due].name in self._batch.bands:
            due -= 1
        return max(made, due)

    def _dram(self, plan: Plan) -> Iterator[Buffer]:
        """The buffers in DRAM: weight tiles and orders, then the inputs of every frame, and large outputs."""
        graph, end = self.graph, max(len(program.steps) for program in self.traffic.programs.values()) - 1
        blocks = dict.fromkeys(tile.source for place in self._schedule.places for tile in place.weight_tiles)
        wanted = [(block.name, "", block.box, block.bytes) for block in blocks]
        orders = [(orders_name(pe.pe), pe.bytes_in_pages) for pe in plan.pes if pe.orders.pages]
        wanted += [(name, "", Box.whole((size,)), size) for name, size in orders]
        ends = self.ends
        stored = (*(graph.net.inputs if ends.inputs == DRAM else ()), *(graph.outputs if ends.outputs == DRAM else ()))
        for frame in range(self._batch.frames):
            for name in stored:
                whole = Box.whole(graph.shape(name))
                wanted.append((in_frame(name, frame), name, whole, graph.net.tensor(name).bytes))
        offset = 0
        for name, tensor, box, size in wanted:
            yield Buffer(name, tensor, box, size, offset, 0, end)
            offset += aligned(size)
