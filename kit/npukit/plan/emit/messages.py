"""Messages between programs while they are emitted: flags, waits, and what follows from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES, DRAM
from npukit.errors import DoesNotFit
from npukit.net.box import Box
from npukit.plan.emit.pe_program import Arriving, Block, Held, PeProgram, Running, Sent, use_of
from npukit.plan.emit.regions import Region
from npukit.plan.emit.replicas import NO_REPLICAS, Replicas
from npukit.plan.emit.vector_clocks import Clocks, Known
from npukit.plan.ir.plan import NO_FLAG, SENT_FLAG, Join, Landing, Message, Send, Step, View, Wait

OUTPUTS_FLAG = SENT_FLAG + 1
"""Counts what arrives on the root of outputs that nothing but the end of the batch waits for."""

FIRST_FREE_FLAG = OUTPUTS_FLAG + 1
"""The first flag that messages between PEs may take."""

NEVER = 1 << 62
"""Later than any step."""

FIRMWARE_FLAGS = 3
"""The last of a PE's flags are the firmware's own (`noc_copy`, `noc_call`); by the third from the end chips that do the
same start and end together."""


@dataclass(frozen=True)
class Parcel:
    """A message to be sent: the PE whose DMA sends it, its source, its destinations, the number of its descriptors."""

    sender: int
    tensor: str
    source_pe: int
    source: Held
    box: Box
    destinations: tuple[tuple[int, Held], ...]
    parts: int

    @property
    def is_stored(self) -> bool:
        """True if it goes to DRAM, which counts no flag."""
        return self.destinations[0][0] == DRAM


UsualFlags = Mapping[tuple[object, ...], tuple[int, ...]]
"""The flags that have counted a use, by PE and use, the last one first."""

SIGNAL = 0
"""Bytes of a message of which only the flag matters."""


def descriptor_bytes(parts: int, reached: int) -> int:
    """The bytes of a message's descriptors, in so many parts to so many PEs: one to several has a list of them."""
    return parts * (DESCRIPTOR_BYTES + (DESTINATION_BYTES * reached if reached > 1 else 0))


def signal(sender: int, block: Block, receivers: Sequence[int]) -> Parcel:
    return Parcel(sender, "", sender, block, block.box, tuple((pe, block) for pe in receivers), 1)


class Traffic:
    """The programs of some PEs and the messages between them."""

    def __init__(
        self, pes: Sequence[int], flags: int, frames: int, usual_flags: UsualFlags, alike: Replicas = NO_REPLICAS
    ) -> None:
        """`frames`: of a micro-batch. What a micro-batch does, the next does alike, where it can. These PEs are those
        of the first of the groups that are `alike`, and those of no group."""
        self.programs = {pe: PeProgram(pe) for pe in pes}
        self.messages: list[Message] = []
        self.frames, self.alike = frames, alike
        self._flags = flags - FIRMWARE_FLAGS
        self.usual_flags = dict(usual_flags)
        """Flags by use: those of the micro-batches before."""
        self._clocks = Clocks(pes)
        self._free_from = np.zeros((len(pes), max(self._flags, 0)), np.int64)
        """The first step, by PE and flag, at which nothing it counts is still to be waited for."""

    @property
    def size(self) -> int:
        """The steps and messages so far."""
        return len(self.messages) + sum(len(program.steps) for program in self.programs.values())

    def step(self, pe: int, step: Step) -> int:
        """Append a step; its index."""
        program = self.programs[pe]
        program.steps.append(step)
        self._clocks.complete(pe)
        return len(program.steps) - 1

    def known_to(self, pe: int) -> Known:
        return self._clocks.known_to(pe)

    def wait_for(self, pe: int, *held: Held) -> None:
        """Wait for all that arrives in some things, unless that was waited for before."""
        program = self.programs[pe]
        arriving = {each: program.expected.pop(each) for each in held if each in program.expected}
        for flag in dict.fromkeys(program.flags[each] for each in arriving):
            counted = {each: known for each, known in arriving.items() if program.flags[each] == flag}
            step = self.step(pe, Wait(flag, sum(map(len, counted.values()))))
            self._free_from[self._clocks.places[pe], flag] = step + 1
            for each, expected in counted.items():
                program.use(each, step)
                for message in expected:
                    message.awaited = step
            every = (message.known for expected in counted.values() for message in expected)
            self._clocks.learn(pe, list(dict.fromkeys(every)))

    def wait_until_sent(self, pe: int, frame: int | None = None) -> None:
        """Wait until everything the PE has sent of a frame may be overwritten; of all frames if none is given.

        Messages leave in order, so what was sent before that is waited for as well.
        """
        program = self.programs[pe]
        sending = program.sending
        count = next((n for n in range(len(sending), 0, -1) if frame in (None, _frame(sending[n - 1].held))), 0)
        if count:
            self._may_be_overwritten(program, count, self.step(pe, Wait(SENT_FLAG, program.arrived + count)))
            program.arrived = 0

    def end_of_sent(self, pe: int) -> None:
        """Waits at the end of a frame for all that a PE sent in it, if it has waited for some: what is left over would
        count in the next frame."""
        program = self.programs[pe]
        self.wait_until_sent(pe)
        if program.arrived and any(isinstance(step, Wait) and step.flag == SENT_FLAG for step in program.steps):
            self.step(pe, Wait(SENT_FLAG, program.arrived))
            program.arrived = 0

    def note_arrived(self, pe: int, to: int) -> None:
        """Let go of what the PE has sent as far as it is known to a PE that it has arrived, or what was sent since."""
        program, known = self.programs[pe], self.known_to(to)
        count = max((n for n, sent in enumerate(program.sending, 1) if sent.has_arrived(known)), default=0)
        self._may_be_overwritten(program, count, len(program.steps) - 1)
        program.arrived += count

    @staticmethod
    def _may_be_overwritten(program: PeProgram, count: int, step: int) -> None:
        """Hold the sources of the first messages up to a step."""
        for sent in program.sending[:count]:
            program.use(sent.held, step)
        del program.sending[:count]

    def overlap(self, pe: int, engine: str, reads: Collection[Held], writes: Collection[Held]) -> None:
        """Prepares a step on one engine: others that it need not wait for run on, the rest are joined."""
        program = self.programs[pe]
        for other, running in [item for item in program.running.items() if item[0] != engine]:
            if running.hinders(reads, writes):
                self._join(pe, other)
            elif not running.submitted:
                program.submit(running)

    def follow(self, pe: int, engine: str, *, chained: bool) -> None:
        """Prepares a step on an engine that may be running: unless it goes on with its chain, that is done first."""
        program = self.programs[pe]
        last = program.running.get(engine)
        if last and not (chained and not last.submitted and last.steps[-1] == len(program.steps) - 1):
            self._join(pe, engine)

    def started(self, pe: int, engine: str, step: int, reads: Collection[Held], writes: Collection[Held]) -> None:
        """A step has been given to an engine that runs by itself."""
        running = self.programs[pe].running.setdefault(engine, Running())
        running.steps.append(step)
        running.reads.update(reads)
        running.writes.update(writes)

    def join_all(self, pe: int) -> None:
        """Wait for everything that runs: who learns of the steps so far may count on it that they are done."""
        for engine in list(self.programs[pe].running):
            self._join(pe, engine)

    def _join(self, pe: int, engine: str) -> None:
        program = self.programs[pe]
        running = program.running.pop(engine)
        if running.submitted:
            step = self.step(pe, Join(engine))
            program.scratch_until |= dict.fromkeys(running.steps, step)
            for held in (*running.reads, *running.writes):
                if program.kept.get(held) not in program.uses:  # what becomes of a state holds its place from there on
                    program.use(held, step)

    def send(self, parcels: Sequence[Parcel], flag: int | None = None) -> None:
        """Parcels that count one flag: at each receiver they all land in one thing.

        With a flag given it may count others too, if all that it counts is waited for at once.
        """
        if counted := [parcel for parcel in parcels if not parcel.is_stored]:
            self._take_flag(counted, flag)
        for parcel in parcels:
            self._send(parcel)

    def _take_flag(self, parcels: Sequence[Parcel], given: int | None) -> None:
        """One flag for all that these parcels reach, as a multicast can count only one.

        A flag may be taken again if every sender knows that every receiver has waited for what it counted before.
        """
        senders = [self.known_to(pe) for pe in dict.fromkeys(parcel.sender for parcel in parcels)]
        destinations = dict.fromkeys(to for parcel in parcels for to in parcel.destinations)
        pes = list(dict.fromkeys(pe for pe, _ in destinations))
        places = [self._clocks.places[pe] for pe in pes]
        known = self._clocks.least_known(senders, pes)
        is_free = np.all(self._free_from[places] <= known[:, None], axis=0)
        first_pe, first_held = next(iter(destinations))
        use = (first_pe, *use_of(first_held, self.frames))
        usual = self.usual_flags.get(use, ())
        flags = (*usual, *range(FIRST_FREE_FLAG, self._flags))
        flag = given or next((flag for flag in flags if is_free[flag]), None)
        if flag is None:
            raise DoesNotFit(
                f"{parcels[0].source.name} arrives while all {self._flags} flags of a PE count other things",
                tries=["fewer PEs: --pes N"],
            )
        self.usual_flags[use] = (flag, *(other for other in usual if other != flag))
        self._free_from[places, flag] = NEVER
        for pe, held in destinations:
            self.programs[pe].flags[held] = flag

    def _send(self, parcel: Parcel) -> None:
        program = self.programs[parcel.sender]
        self.join_all(parcel.sender)
        known = self.known_to(parcel.sender)
        sender, alike = parcel.sender, self.alike
        arriving = [(pe, Arriving(known)) for pe, _ in parcel.destinations if pe != DRAM]
        landings = tuple(
            self._land(pe, held, parcel.box, message, alike.times(sender, pe))
            for (_, message), (pe, held) in zip(arriving, parcel.destinations, strict=False)
        ) or (Landing(DRAM, View(parcel.destinations[0][1].name, parcel.box), NO_FLAG),)
        self.messages.append(Message(parcel.tensor, parcel.source_pe, View(parcel.source.name, parcel.box), landings))
        step = self.step(parcel.sender, Send(len(self.messages) - 1))
        if parcel.source_pe == parcel.sender:
            program.use(parcel.source, step)
            program.sending.append(Sent(parcel.source, arriving))
            program.aliases.pop(parcel.source, None)  # it goes out once more
        reached = sum(alike.times(pe, sender) for pe, _ in parcel.destinations)
        size = descriptor_bytes(parcel.parts, reached)
        if isinstance(parcel.source, Block) and parcel.source.bytes == SIGNAL:
            program.signals[step] = reached
            program.signal_bytes += size
        else:
            program.descriptors[step] = size

    def _land(self, pe: int, held: Held, box: Box, message: Arriving, times: int) -> Landing:
        """Once, or so many times as there are groups that send the like."""
        program = self.programs[pe]
        program.expected.setdefault(held, []).extend([message] * times)
        # From the first step that may not be complete yet when the message arrives.
        program.use(held, message.known.of(pe))
        return Landing(pe, View(held.name, box), program.flags[held])


def _frame(held: Held) -> int | None:
    return held.frame if isinstance(held, Region) else None
