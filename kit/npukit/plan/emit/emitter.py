"""Emission of programs: frames and their assignments become steps, messages and lifetimes. Buffers have no addresses
yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from npukit.accel.interface import Accelerator, Cost
from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import CORE, Op
from npukit.plan.emit.messages import NO_FLAGS, OUTPUTS_FLAG, Parcel, Traffic, UsualFlags, signal
from npukit.plan.emit.pe_program import Block, Held, PeProgram
from npukit.plan.emit.regions import Ends, Region, Regions, Transfer, copies_to, transfers_of
from npukit.plan.emit.replicas import NO_REPLICAS, Replicas
from npukit.plan.ir.assignment import Assignment, Tile, pes_of
from npukit.plan.ir.names import ROOM, SCRATCH, in_frame
from npukit.plan.ir.plan import Compute, Restore, View
from npukit.plan.predict.memory import STATE_BYTES, initial_bytes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

TransferFilter = Callable[[Transfer], bool]
"""True for each transfer of a tensor to emit."""


class Emitter:
    """Emits the steps of frames op by op. Each step comes after the steps that it waits for."""

    def __init__(
        self,
        problem: Problem,
        assignments: Mapping[int, Assignment],
        regions: Mapping[int, Regions],
        ends: Ends,
        others: Collection[int] = (),
        together: int = 1,
        usual_flags: UsualFlags = NO_FLAGS,
        replicas: Replicas = NO_REPLICAS,
        *,
        low_memory: bool = False,
        patient: bool = False,
    ) -> None:
        """`assignments`, `regions`: by frame, of the first replica group. `others`: further PEs with programs.
        `together`: frames of a micro-batch. `low_memory`: multicasts with different first readers are separate.
        `patient`: a PE reserves the sources of messages until later messages confirm the arrival."""
        self._patient, self._low_memory, self.problem, self.ends = patient, low_memory, problem, ends
        self.graph, self.engines, self.assignments, self.regions = problem.graph, problem.engines, assignments, regions
        pes = {*pes_of(*assignments.values()), *others}
        flags = problem.board.noc.flags if problem.board.noc else 0
        self._root = problem.board.root_pe
        self.traffic = Traffic([self._root, *sorted(pes - {self._root})], flags, together, usual_flags, replicas)
        self._room: dict[tuple[int, str], Block] = {}
        """The signal that a receiver has room for a tensor, by frame and tensor."""
        self._transfers: dict[tuple[int, str], list[Transfer]] = {}

    def emit_frame(self, frame: int) -> None:
        if self.graph.kept:
            self.go()
        first = {home for op in self.graph.ops[:1] for home in self.graph.sources(op)}
        later = [name for name in self.graph.net.inputs if name not in first] if first else []
        self.bring_inputs(frame, later)
        for index, op in enumerate(self.graph.ops):
            for tile in self.assignments[frame][op.name]:
                self.compute(frame, index, tile)
            self.send(frame, op.output)
            for name in later if index == 0 else ():
                self.send(frame, name)

    def go(self) -> None:
        """Start all PEs. The root starts the PEs of its chip and the first PE of each other chip, which starts the rest
        of its chip."""
        (root, *others), count = self.traffic.programs, self.problem.board.mesh.pes.count
        chips: dict[int, list[int]] = {root // count: []}
        for pe in others:
            chips.setdefault(pe // count, []).append(pe)
        near, *far = chips.values()
        self._start(root, [*near, *(first for first, *_ in far)])
        for first, *rest in far:
            self._start(first, rest)

    def _start(self, pe: int, others: Sequence[int]) -> None:
        go = Block("go")
        if others:
            self.traffic.send([signal(pe, go, others)])
        for other in others:
            self.traffic.wait_for(other, go)

    def bring_inputs(self, frame: int, later: Collection[str] = ()) -> None:
        """Send inputs and states from their locations. PEs fetch inputs in DRAM themselves; one PE fetches for all that
        need the same box. `later`: inputs to send after the first op, so that they do not delay it."""
        self._restore(frame)
        inputs = self.graph.net.inputs
        for name in inputs if self.ends.inputs != DRAM else ():
            self._program(self.ends.inputs).use(self._held(frame, self.ends.inputs, name)[0], 0)
        for name in (*inputs, *self.graph.kept):
            if name not in later:
                self.send(frame, name)

    def _restore(self, frame: int) -> None:
        """Emit a step on each PE with states to restore initial values after a reset."""
        for pe, program in self.traffic.programs.items():
            pairs = (
                (self._owned(frame, pe, state), self._owned(frame, pe, made)) for state, made in self.graph.kept.items()
            )
            kept = [(state, made) for state, made in pairs if state and made]
            if kept:
                step = self.traffic.step(pe, Restore(tuple(state.name for state, _ in kept)))
                for state, becomes in kept:
                    program.use(state, 0)
                    program.use(state, step)
                    program.kept[state] = becomes
                    initial = next(each.initial for each in self.graph.net.states if each.input == state.tensor)
                    part = initial[state.box.slices]
                    program.hold(state, STATE_BYTES + initial_bytes(part))

    def _owned(self, frame: int, pe: int, tensor: str) -> Region | None:
        return next((region for region in self._held(frame, pe, tensor) if region.owned), None)

    def fetch_part(self, frame: int, part: int, parts: int) -> None:
        """Fetch part number `part` of `parts` of the inputs in DRAM (see `bring_inputs`). The parts come in order."""
        for name in self.graph.net.inputs:
            for same in self._by_number(self._all_parcels(frame, name)):
                pe, held = same[0].destinations[0]
                flag = self.traffic.programs[pe].flags[held] if part else None
                self.traffic.send([p for parcel in same for p in _part_of(parcel, part, parts)], flag)

    def signal_room(self, frames: Sequence[int], tensor: str, chosen: TransferFilter | None = None) -> None:
        """Emit signals from the receivers of a tensor to the senders that there is room for these frames.

        Without the signal, a receive buffer is reserved from the receiver's last step known to the sender. `chosen`:
        transfers to signal for.
        """
        asked: dict[int, list[int]] = {}
        for parcel in (parcel for frame in frames for parcel in self._all_parcels(frame, tensor, chosen)):
            for pe, _ in parcel.destinations:
                if pe not in (parcel.sender, DRAM):
                    asked.setdefault(pe, []).append(parcel.sender)
        room = Block(in_frame(ROOM + tensor, frames[0]))
        self._room.update(dict.fromkeys(((frame, tensor) for frame in frames), room))
        self.traffic.send([signal(pe, room, list(dict.fromkeys(senders))) for pe, senders in asked.items()])

    def send(self, frame: int, tensor: str, chosen: TransferFilter | None = None) -> None:
        """Send the `chosen` transfers of a tensor, to other PEs and to other regions of the same PE."""
        room = self._room.get((frame, tensor))
        for same in self._by_number(self._all_parcels(frame, tensor, chosen)):
            if room:
                for parcel in same:
                    self.traffic.wait_for(parcel.sender, room)
            self.traffic.send(same, OUTPUTS_FLAG if self.is_last(tensor) else None)

    def is_last(self, tensor: str) -> bool:
        return tensor in self.graph.outputs and not self.graph.consumers[tensor]

    def _all_parcels(self, frame: int, tensor: str, chosen: TransferFilter | None = None) -> list[Parcel]:
        if (frame, tensor) not in self._transfers:
            found = transfers_of(self.graph, self.regions[frame], tensor, apart=self._low_memory)
            self._transfers[frame, tensor] = found
        transfers = filter(chosen, self._transfers[frame, tensor]) if chosen else self._transfers[frame, tensor]
        return [parcel for transfer in transfers for parcel in self._parcels(transfer)]

    @staticmethod
    def _by_number(parcels: Sequence[Parcel]) -> list[list[Parcel]]:
        """Parcels grouped by destination region number. A group can count one flag."""

        def number(parcel: Parcel) -> int:
            held = parcel.destinations[0][1]
            return held.number if isinstance(held, Region) else 1

        return [list(same) for _, same in groupby(sorted(parcels, key=number), key=number)]

    def _parcels(self, transfer: Transfer) -> list[Parcel]:
        source, box = transfer.source, transfer.box
        parts = len(copies_to(self.graph, box, source, transfer.destinations[0]))
        to = tuple((region.pe, region) for region in transfer.destinations)
        if source.pe == DRAM and source.frame >= self.traffic.frames:  # only the receiver knows when there is room
            return [Parcel(pe, source.tensor, DRAM, source, box, ((pe, region),), parts) for pe, region in to]
        sender = to[0][0] if source.pe == DRAM else source.pe
        return [Parcel(sender, source.tensor, source.pe, source, box, to, parts)]

    def compute(self, frame: int, index: int, tile: Tile, piece: Box | None = None, block: Block | None = None) -> None:
        """Emit the computation of a tile, or of a `piece` of it with constants streamed to `block`."""
        op, pe = self.graph.ops[index], tile.pe
        box, engine = piece or tile.box, self.engines[op.engine]
        sources = self._inputs(frame, index, op, tile)
        reads = (*dict.fromkeys(sources), *([block] if block else []))
        held = self._held(frame, pe, op.output)
        (target,) = [region for region in held if region.owned and region.owned.contains(tile.box)]
        self._begin(frame, pe, op.engine, reads, target)
        cost = self.problem.cost(op, box, pe)
        part = f" from channel {piece.start[-1]}" if piece and piece.start[-1] else ""
        scratch = in_frame(f"{op.name}{part}{SCRATCH}", frame) if cost.scratch_bytes else None
        read = zip(sources, self.graph.net.activations(op), self.graph.boxes_read(op, box), strict=True)
        inputs = tuple(View(region.named(name), need) for region, name, need in read)
        constants, source = (block.name, block.source) if block else (None, None)
        output, cycles = View(target.name, box), cost.cycles - (cost.chained if self._chained(pe, op.engine) else 0)
        compute = Compute(op.name, op.engine, output, inputs, cycles, scratch, constants, source, frame)
        step = self.traffic.step(pe, compute)
        program = self._program(pe)
        self._hold(program, op, box, cost, step, streamed=block is not None)
        for held in (*reads, target):
            program.use(held, step)
        operands = (sources[i] for i in cost.aliases if _may_lie_on(target, sources[i], sources, index, tile))
        source, kept = next(operands, None), {*program.kept, *(held for held, _ in program.sending)}
        if source and source.tensor not in self.graph.outlasting and source not in kept:
            program.aliases[source] = target
        if engine.abilities.wait:
            self.traffic.started(pe, op.engine, step, reads, self._overwritten(pe, target))

    def _chained(self, pe: int, engine: str) -> bool:
        """True if the PE's next step on an engine continues the chain of the step before."""
        steps = self._program(pe).steps
        last = steps[-1] if steps else None
        return isinstance(last, Compute) and last.engine == engine and self.engines[engine].commands is not None

    def _begin(self, frame: int, pe: int, engine: str, reads: Sequence[Held], target: Region) -> None:
        """Emit the waits of a PE before a step of this engine."""
        self.traffic.overlap(pe, engine, reads, self._overwritten(pe, target))
        self.traffic.wait_for(pe, *reads)
        if self._patient:
            self.traffic.note_arrived(pe, pe)
        sending = {held for held, _ in self._program(pe).sending}
        if not self._patient or not sending.isdisjoint(self._overwritten(pe, target)):
            self.traffic.wait_until_sent(pe, frame)
        self.traffic.follow(pe, engine, chained=self.engines[engine].commands is not None)

    def _hold(self, program: PeProgram, op: Op, box: Box, cost: Cost, step: int, *, streamed: bool) -> None:
        """Record the commands of a step, and the constants unless streamed."""
        program.costs.append((step, cost))
        commands = command_bytes(self.engines[op.engine], cost)
        if streamed and op.engine != CORE and cost.commands == 1:
            program.pieces[step] = (commands, op.name, box.shape)
        else:
            program.commands[step] = commands
        program.hold(same_constants(self.graph, op, box, cost), 0 if streamed else cost.constant_bytes - commands)

    def _overwritten(self, pe: int, target: Region) -> list[Held]:
        """The region written by a step, and the state at the same address."""
        return [target, *(state for state, made in self._program(pe).kept.items() if made == target)]

    def _program(self, pe: int) -> PeProgram:
        return self.traffic.programs[pe]

    def _held(self, frame: int, pe: int, tensor: str) -> tuple[Region, ...]:
        return self.regions[frame][tensor].get(pe, ())

    def _inputs(self, frame: int, index: int, op: Op, tile: Tile) -> list[Region]:
        """The region of each activation that contains the box read by the tile."""
        found: list[Region] = []
        for home, box in self.graph.needs_of(op, tile.box):
            regions = self._held(frame, tile.pe, home)
            found.append(next(region for region in regions if (index, box) in region.needs))
        return found

    def end(self) -> None:
        """End the programs: the root waits for the outputs, every PE for accelerators and outgoing messages."""
        for pe in self.traffic.programs:
            self.traffic.join_all(pe)
        root = self._program(self._root)
        outputs = list(self._outputs(root.pe))
        self.traffic.wait_for(root.pe, *outputs)
        self._report_stored_outputs()
        late = [each for each in self.traffic.programs.values() if each is not root and not self._has_ended(each)]
        if late and self.graph.kept:  # PEs that compute a part of a state after their last message
            done = Block("done")
            self.traffic.send([signal(each.pe, done, [root.pe]) for each in late])
            self.traffic.wait_for(root.pe, done)
        for pe in self.traffic.programs:
            if self._patient:  # messages known to the root as arrived have left before the next frame
                self.traffic.note_arrived(pe, root.pe)
            self.traffic.end_of_sent(pe)
        for region in outputs:
            root.use(region, max(len(root.steps) - 1, 0))
        for program in self.traffic.programs.values():
            for made in program.kept.values():
                program.use(made, len(program.steps) - 1)
        assert not any(program.expected for program in self.traffic.programs.values()), "something is not waited for"
        for program in self.traffic.programs.values():  # no PE reads or writes after the root has the outputs
            assert program is root or self._has_ended(program), f"PE {program.pe} may not have ended"

    def _outputs(self, root: int) -> Iterator[Region]:
        """The regions of the outputs on the root, frame by frame."""
        end = len(self.graph.ops)
        for frame in self.assignments:
            for name in self.graph.outputs:
                held = self._held(frame, root, name)
                yield from (region for region in held if any(reader == end for reader, _ in region.needs))

    def _report_stored_outputs(self) -> None:
        """Emit signals from the PEs with outputs stored in DRAM, after the outputs have left. The root then reads an
        element back.

        The signals reach the router of DRAM behind the outputs, and DRAM serves requests in order.
        """
        senders = [pe for pe, program in self.traffic.programs.items() if any(not to for _, to in program.sending)]
        if not senders:
            return
        for pe in senders:
            self.traffic.wait_until_sent(pe)
        stored = Block("stored")
        self.traffic.send([signal(pe, stored, [self._root]) for pe in senders if pe != self._root])
        self.traffic.wait_for(self._root, stored)
        frame, tensor = max(self.assignments), self.graph.outputs[0]
        (source,), held = self._held(frame, DRAM, tensor), self._held(frame, self._root, tensor)
        first = Box(tuple(0 for _ in source.box.start), tuple(1 for _ in source.box.stop))
        target = Region(frame, self._root, tensor, len(held) + 1, first)
        self.traffic.send([Parcel(self._root, tensor, DRAM, source, first, ((self._root, target),), 1)])
        self.traffic.wait_for(self._root, target)

    def _has_ended(self, program: PeProgram) -> bool:
        """True if all compute steps of a PE are complete to the root's knowledge."""
        last = max((step for step, _ in program.costs), default=-1)
        return self.traffic.known_to(self._root).of(program.pe) > last


def _may_lie_on(target: Region, source: Region, sources: Sequence[Region], index: int, tile: Tile) -> bool:
    """True if a tile of op number `index` may alias an operand element by element: no later op on this PE reads the
    operand, and both have the same box."""
    last = max(reader for reader, _ in source.needs)
    return last == index and sources.count(source) == 1 and source.box == target.box == tile.box


def same_constants(graph: Graph, op: Op, box: Box, cost: Cost) -> Hashable:
    """The key of tiles with a shared copy of constants on a PE."""
    if cost.constants_key is None:
        return op.name, box
    return graph.constants_as[op.name], box.start[-1:], box.stop[-1:], cost.constants_key


TileConstants = tuple[int, Hashable, int, int]
"""PE of a tile, key of a shared copy of its constants, their bytes with the commands, and bytes of the commands."""


def constants_of(problem: Problem, op: Op, tile: Tile) -> TileConstants:
    cost = problem.cost(op, tile.box, tile.pe)
    key = same_constants(problem.graph, op, tile.box, cost)
    return tile.pe, key, cost.constant_bytes, command_bytes(problem.engines[op.engine], cost)


def resident_bytes(constants: Iterable[TileConstants]) -> Counter[int]:
    """Bytes of constants and commands on each PE. Constants shared by tiles count once."""
    found, there = Counter[int](), set[tuple[int, Hashable]]()
    for pe, key, size, command in constants:
        found[pe] += command if (pe, key) in there else size
        there.add((pe, key))
    return found


def streamed_bytes(engine: Accelerator, cost: Cost) -> int:
    """Bytes of a tile's constants without commands. Commands contain addresses and stay in the image."""
    return cost.constant_bytes - command_bytes(engine, cost)


def command_bytes(engine: Accelerator, cost: Cost) -> int:
    """Bytes of a tile's commands. Each tile of each frame has separate commands, because commands contain addresses."""
    return engine.commands.bytes * cost.commands if engine.commands else 0


def _part_of(parcel: Parcel, part: int, parts: int) -> list[Parcel]:
    """Part number `part` of a parcel cut into `parts` along the first axis longer than 1; empty if nothing is left."""
    box = parcel.box
    axis = next((axis for axis, size in enumerate(box.shape) if size > 1), 0)
    step = -(-box.shape[axis] // parts)
    start = box.start[axis] + part * step
    stop = min(start + step, box.stop[axis])
    if start >= stop:
        return []
    return [replace(parcel, box=box.cut(axis, start, stop))]
