"""Programs: an assignment as steps, messages and lifetimes, before buffers have addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from npukit.accel.interface import Accelerator, Cost
from npukit.errors import DoesNotFit
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.assignment import Assignment, Tile
from npukit.plan.boxes import from_boxes, to_boxes
from npukit.plan.causality import Clocks, Known
from npukit.plan.graph import Graph
from npukit.plan.plan import SENT_FLAG, Compute, Landing, Message, Send, Step, View, Wait
from npukit.plan.receptive import needs
from npukit.plan.regions import Region, Regions, regions_of
from npukit.plan.transfers import Transfer, transfers_of

Engines = Mapping[str, Accelerator]

NEVER = 1 << 62
"""Later than any step."""


@dataclass
class Use:
    """The steps of its PE in which a region holds something."""

    first: int
    last: int

    def include(self, step: int) -> None:
        self.first, self.last = min(self.first, step), max(self.last, step)


@dataclass
class Program:
    """One PE's program as it grows."""

    pe: int
    steps: list[Step] = field(default_factory=list)
    costs: list[tuple[int, Cost]] = field(default_factory=list)
    uses: dict[Region, Use] = field(default_factory=dict)
    sending: list[Region] = field(default_factory=list)
    flags: dict[Region, int] = field(default_factory=dict)
    flag_free_from: dict[int, int] = field(default_factory=dict)
    """By flag, the first step at which nothing it counts is still to be waited for."""
    expected: dict[Region, list[Known]] = field(default_factory=dict)

    def use(self, region: Region, step: int) -> None:
        self.uses.setdefault(region, Use(step, step)).include(step)


@dataclass
class Programs:
    """All PEs' programs. Steps are emitted op by op, so that each follows whatever it waits for."""

    graph: Graph
    engines: Engines
    assignment: Assignment
    root: int
    flags: int
    by_pe: dict[int, Program] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    transfers: list[Transfer] = field(default_factory=list)

    def __post_init__(self) -> None:
        pes = sorted({tile.pe for tiles in self.assignment.values() for tile in tiles} - {self.root})
        self.by_pe = {pe: Program(pe) for pe in (self.root, *pes)}
        self.clocks = Clocks(list(self.by_pe))
        self.regions: Regions = regions_of(self.graph, self.assignment, self.root)

    def emit(self) -> None:
        """The whole frame."""
        for name in self.graph.net.inputs:
            self.by_pe[self.root].use(self._held(self.root, name)[0], 0)
            self._send_all(name)
        for index, op in enumerate(self.graph.ops):
            for tile in self.assignment[op.name]:
                self._compute(index, op, tile)
            self._send_all(op.output)
        self._end()

    def _held(self, pe: int, tensor: str) -> tuple[Region, ...]:
        return self.regions[tensor].get(pe, ())

    def _step(self, pe: int, step: Step) -> int:
        """Append a step; its index."""
        program = self.by_pe[pe]
        program.steps.append(step)
        self.clocks.complete(pe)
        return len(program.steps) - 1

    def _compute(self, index: int, op: Op, tile: Tile) -> None:
        program = self.by_pe[tile.pe]
        sources = self._inputs(index, op, tile)
        for region in dict.fromkeys(sources):
            self._wait_for(program, region)
        self._wait_until_sent(program)
        cost = self.engines[op.engine].cost(self.graph.net, op, tile.box)
        (target,) = [region for region in self._held(tile.pe, op.output) if region.owned]
        views = self._views(op, tile.box, sources)
        scratch = f"{op.name} scratch" if cost.scratch_bytes else None
        step = self._step(
            tile.pe, Compute(op.name, op.engine, View(target.name, tile.box), views, cost.cycles, scratch)
        )
        program.costs.append((step, cost))
        for region in (*sources, target):
            program.use(region, step)

    def _inputs(self, index: int, op: Op, tile: Tile) -> list[Region]:
        """For each activation the region that holds what the tile needs of it."""
        found: list[Region] = []
        for home, boxes in self.graph.needs(op, from_boxes([tile.box])):
            need = (index, to_boxes(boxes)[0])
            found.append(next(region for region in self._held(tile.pe, home) if need in region.needs))
        return found

    def _views(self, op: Op, box: Box, sources: Sequence[Region]) -> tuple[View, ...]:
        names = self.graph.net.activations(op)
        boxes = needs(self.graph.net, op, box)
        return tuple(View(region.named(name), need) for region, name, need in zip(sources, names, boxes, strict=True))

    def _wait_for(self, program: Program, region: Region) -> None:
        """Wait for what arrives in a region, unless that was waited for before."""
        expected = program.expected.pop(region, None)
        if expected is None:
            return
        flag = program.flags[region]
        step = self._step(program.pe, Wait(flag, len(expected)))
        program.use(region, step)
        program.flag_free_from[flag] = step + 1
        for known in expected:
            self.clocks.learn(program.pe, known)

    def _wait_until_sent(self, program: Program) -> None:
        """Wait until everything sent so far may be overwritten."""
        if program.sending:
            step = self._step(program.pe, Wait(SENT_FLAG, len(program.sending)))
            for region in program.sending:
                program.use(region, step)
            program.sending.clear()

    def _send_all(self, tensor: str) -> None:
        transfers = transfers_of(self.graph, self.regions, tensor)
        for number in sorted({transfer.number for transfer in transfers}):
            self._take_flag([transfer for transfer in transfers if transfer.number == number])
        for transfer in transfers:
            self._send(transfer)

    def _take_flag(self, transfers: Sequence[Transfer]) -> None:
        """One flag for all that these transfers reach, as a multicast can count only one.

        A flag may be taken again if every sender knows that every receiver has waited for what it counted before.
        """
        senders = [self.clocks.known_to(pe) for pe in dict.fromkeys(transfer.source.pe for transfer in transfers)]
        regions = dict.fromkeys(region for transfer in transfers for region in transfer.destinations)
        receivers = [self.by_pe[region.pe] for region in regions]

        def is_free(flag: int) -> bool:
            since = [(pe.pe, pe.flag_free_from.get(flag, 0)) for pe in receivers]
            return all(known.of(pe) >= step for known in senders for pe, step in since)

        flag = next((flag for flag in range(SENT_FLAG + 1, self.flags) if is_free(flag)), None)
        if flag is None:
            raise DoesNotFit(
                f"{transfers[0].source.tensor} arrives while all {self.flags - 1} flags of a PE count other things",
                tries=["fewer PEs: --pes N"],
            )
        for region, program in zip(regions, receivers, strict=True):
            program.flags[region] = flag
            program.flag_free_from[flag] = NEVER

    def _send(self, transfer: Transfer) -> None:
        source = transfer.source
        program = self.by_pe[source.pe]
        known = self.clocks.known_to(source.pe)
        landings = tuple(self._land(region, transfer.box, known) for region in transfer.destinations)
        self.transfers.append(transfer)
        self.messages.append(Message(source.tensor, source.pe, View(source.name, transfer.box), landings))
        program.use(source, self._step(source.pe, Send(len(self.messages) - 1)))
        program.sending.append(source)

    def _land(self, region: Region, box: Box, known: Known) -> Landing:
        program = self.by_pe[region.pe]
        program.expected.setdefault(region, []).append(known)
        # From the first step that may not be complete yet when the message arrives.
        program.use(region, known.of(region.pe))
        return Landing(region.pe, View(region.name, box), program.flags[region])

    def _end(self) -> None:
        """The root waits for the outputs, everybody for what they sent."""
        root = self.by_pe[self.root]
        for name in self.graph.outputs:
            self._wait_for(root, self._held(self.root, name)[0])
        for program in self.by_pe.values():
            self._wait_until_sent(program)
        for name in self.graph.outputs:
            root.use(self._held(self.root, name)[0], max(len(root.steps) - 1, 0))
        self._check_that_the_root_knows_the_end()

    def _check_that_the_root_knows_the_end(self) -> None:
        """When the frame ends nobody still reads or writes: the root's outputs follow from every compute step."""
        known = self.clocks.known_to(self.root)
        for program in self.by_pe.values():
            last = max((step for step, _ in program.costs), default=-1)
            assert known.of(program.pe) > last or program.pe == self.root, f"PE {program.pe} may not have ended"
