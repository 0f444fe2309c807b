"""Messages between programs during emission: their flags, waits and buffer lifetimes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES, DRAM, NO_FLAG
from npukit.net.box import Box
from npukit.plan.emit.pe_program import Arriving, Block, Held, PeProgram, Running, use_of
from npukit.plan.emit.replicas import NO_REPLICAS, Replicas
from npukit.plan.emit.vector_clocks import Clocks, Known
from npukit.plan.ir.plan import SENT_FLAG, Join, Landing, Message, Send, Step, View, Wait

OUTPUTS_FLAG = SENT_FLAG + 1
"""Counts outputs that arrive on the root and are awaited only at the end of the batch."""

FIRST_FREE_FLAG = OUTPUTS_FLAG + 1
"""The first flag for messages between PEs."""

FIRMWARE_FLAGS = 3
"""Number of a PE's last flags that belong to the firmware (`noc_copy`, `noc_call`). The third from the end synchronises
the start and end of chips with the same work."""


@dataclass(frozen=True)
class Parcel:
    """A message to send. `sender`: the PE whose DMA sends the message. `parts`: number of descriptors."""

    sender: int
    tensor: str
    source_pe: int
    source: Held
    box: Box
    destinations: tuple[tuple[int, Held], ...]
    parts: int


UsualFlags = Mapping[tuple[object, ...], tuple[int, ...]]
"""The flags taken so far for each use, by PE and use (`use_of`), the latest first."""

NO_FLAGS: UsualFlags = MappingProxyType({})


def descriptor_bytes(parts: int, reached: int) -> int:
    """Bytes of a message's descriptors: `parts` descriptors to `reached` PEs. Each descriptor of a multicast has a list
    of destinations."""
    return parts * (DESCRIPTOR_BYTES + (DESTINATION_BYTES * reached if reached > 1 else 0))


def signal(sender: int, block: Block, receivers: Sequence[int]) -> Parcel:
    return Parcel(sender, "", sender, block, block.box, tuple((pe, block) for pe in receivers), 1)


class Traffic:
    """The programs of PEs and the messages between them."""

    def __init__(
        self, pes: Sequence[int], flags: int, frames: int, usual_flags: UsualFlags, replicas: Replicas = NO_REPLICAS
    ) -> None:
        """`frames`: frames of a micro-batch. Each micro-batch repeats the flags of the previous micro-batch where
        possible. `replicas`: replica groups; `pes` are the PEs of the first group and the PEs of no group."""
        self.programs = {pe: PeProgram(pe) for pe in pes}
        self.messages: list[Message] = []
        self.frames, self.replicas = frames, replicas
        self._meeting_flag = flags - FIRMWARE_FLAGS - 1
        self.usual_flags = dict(usual_flags)
        """The flags of earlier micro-batches, by use."""
        self._clocks = Clocks(pes)
        self._free_from = np.zeros((len(pes), max(self._meeting_flag + 1, 0)), np.int64)
        """The first step, by PE and flag, after the last wait for the flag."""
        self._counts = np.zeros(self._free_from.shape, bool)
        """True, by PE and flag, while the flag counts messages without a wait so far."""
        self._latest: dict[int, None] = {}
        """The flags of messages, the latest first."""

    @property
    def size(self) -> int:
        """The number of steps and messages emitted."""
        return len(self.messages) + sum(len(program.steps) for program in self.programs.values())

    def step(self, pe: int, step: Step) -> int:
        """Append a step and return its index."""
        program = self.programs[pe]
        program.steps.append(step)
        self._clocks.complete(pe)
        return len(program.steps) - 1

    def known_to(self, pe: int) -> Known:
        return self._clocks.known_to(pe)

    def wait_for(self, pe: int, *held: Held) -> None:
        """Wait for all messages into these regions and blocks, unless an earlier wait covers them. A wait covers all
        messages counted by the flag: a wait for a part could end too early."""
        program = self.programs[pe]
        for flag in dict.fromkeys(program.flags[each] for each in held if each in program.expected):
            shared = [each for each in program.expected if program.flags[each] == flag]
            counted = {each: program.expected.pop(each) for each in shared}
            step = self.step(pe, Wait(flag, sum(map(len, counted.values()))))
            place = self._clocks.places[pe], flag
            self._free_from[place], self._counts[place] = step + 1, False
            for each, messages in counted.items():
                program.use(each, step)
                for message in messages:
                    message.awaited = step
            clocks = dict.fromkeys(message.known for messages in counted.values() for message in messages)
            self._clocks.learn(pe, list(clocks))

    def wait_until_sent(self, pe: int, frame: int | None = None) -> None:
        """Wait until the sources of all messages of a frame may be overwritten. None: of all frames.

        Messages leave in order, so earlier messages are awaited too.
        """
        program = self.programs[pe]
        count = len(program.sending)
        while count and frame not in (None, getattr(program.sending[count - 1][0], "frame", None)):
            count -= 1
        if count:
            self._may_be_overwritten(program, count, self.step(pe, Wait(SENT_FLAG, program.arrived + count)))
            program.arrived = 0

    def end_of_sent(self, pe: int) -> None:
        """Wait at the end of a frame for all messages of a PE, if the program waits for any. A count left over would
        add to the next frame's."""
        program = self.programs[pe]
        self.wait_until_sent(pe)
        if program.arrived and any(isinstance(step, Wait) and step.flag == SENT_FLAG for step in program.steps):
            self.step(pe, Wait(SENT_FLAG, program.arrived))
            program.arrived = 0

    def note_arrived(self, pe: int, to: int) -> None:
        """Release the sources of a PE's messages up to the last arrival known to PE `to`. Messages leave in order: all
        earlier messages have left as well."""
        program, known = self.programs[pe], self.known_to(to)
        awaited = ([(pe, message.awaited) for pe, message in to] for _, to in program.sending)
        arrived = (to and all(step is not None and known.of(pe) > step for pe, step in to) for to in awaited)
        count = max((n for n, each in enumerate(arrived, 1) if each), default=0)
        self._may_be_overwritten(program, count, len(program.steps) - 1)
        program.arrived += count

    @staticmethod
    def _may_be_overwritten(program: PeProgram, count: int, step: int) -> None:
        """Reserve the sources of the first `count` messages up to a step, then forget the messages."""
        for held, _ in program.sending[:count]:
            program.use(held, step)
        del program.sending[:count]

    def overlap(self, pe: int, engine: str, reads: Collection[Held], writes: Collection[Held]) -> None:
        """Prepare a step on an engine: join running engines in conflict with the step, let the others run on."""
        program = self.programs[pe]
        for other, running in [item for item in program.running.items() if item[0] != engine]:
            if running.hinders(reads, writes):
                self._join(pe, other)
            elif not running.submitted:
                program.submit(running)

    def follow(self, pe: int, engine: str, *, chained: bool) -> None:
        """Prepare a step on an engine that may be running: join the engine first, unless the step extends the engine's
        chain."""
        program = self.programs[pe]
        last = program.running.get(engine)
        if last and not (chained and not last.submitted and last.steps[-1] == len(program.steps) - 1):
            self._join(pe, engine)

    def started(self, pe: int, engine: str, step: int, reads: Collection[Held], writes: Collection[Held]) -> None:
        """Record a step given to an asynchronous engine."""
        running = self.programs[pe].running.setdefault(engine, Running())
        running.steps.append(step)
        running.reads.update(reads)
        running.writes.update(writes)

    def join_all(self, pe: int) -> None:
        """Join every running engine. Other PEs may then assume all steps so far complete."""
        for engine in list(self.programs[pe].running):
            self._join(pe, engine)

    def _join(self, pe: int, engine: str) -> None:
        program = self.programs[pe]
        running = program.running.pop(engine)
        if running.submitted:
            step = self.step(pe, Join(engine))
            program.scratch_until |= dict.fromkeys(running.steps, step)
            for held in (*running.reads, *running.writes):
                if program.kept.get(held) not in program.uses:  # the new value of the state reserves the place
                    program.use(held, step)

    def send(self, parcels: Sequence[Parcel], flag: int | None = None) -> None:
        """Send parcels with a common flag. On each receiver, all parcels land in the same region or block.

        A given `flag` may count other messages too, because a single wait covers all counts.
        """
        if counted := [parcel for parcel in parcels if parcel.destinations[0][0] != DRAM]:  # DRAM counts no flags
            self._take_flag(counted, flag)
        for parcel in parcels:
            self._send(parcel)

    def _take_flag(self, parcels: Sequence[Parcel], given: int | None) -> None:
        """Take a flag for these parcels on all receivers, because a multicast can count a single flag only."""
        destinations = dict.fromkeys(to for parcel in parcels for to in parcel.destinations)
        pes = list(dict.fromkeys(pe for pe, _ in destinations))
        places = [self._clocks.places[pe] for pe in pes]
        first_pe, first_held = next(iter(destinations))
        use = (first_pe, *use_of(first_held, self.frames))
        usual = self.usual_flags.get(use, ())
        flag = given or self._flag_for([parcel.sender for parcel in parcels], pes, usual)
        self.usual_flags[use] = (flag, *(other for other in usual if other != flag))
        self._counts[places, flag] = True
        if not given:
            self._latest = {flag: None} | self._latest
        for pe, held in destinations:
            self.programs[pe].flags[held] = flag

    def _flag_for(self, senders: Sequence[int], pes: Sequence[int], usual: Sequence[int]) -> int:
        """A flag for messages to these PEs: a free flag, else the latest flag that may count more messages. If there is
        none, all PEs meet.

        A flag may count more once every sender knows the receivers' last waits for the flag to be complete. The next
        wait then covers all counts.
        """
        known = self._clocks.least_known([self.known_to(pe) for pe in dict.fromkeys(senders)], pes)
        places = [self._clocks.places[pe] for pe in pes]
        may_count = np.all(self._free_from[places] <= known[:, None], axis=0)
        is_free = may_count & ~np.any(self._counts[places], axis=0)
        flags = (*usual, *range(FIRST_FREE_FLAG, self._meeting_flag))
        if (free := next((flag for flag in flags if is_free[flag]), None)) is not None:
            return free
        if (shared := next((flag for flag in self._latest if may_count[flag]), None)) is not None:
            return shared
        self._meet()
        return self._flag_for(senders, pes, usual)

    def _meet(self) -> None:
        """Let the root wait for all other PEs, then all others for the root. Every PE then knows all earlier waits."""
        root, *others = self.programs
        came, go_on = Block("came"), Block("go_on")
        self.send([signal(pe, came, [root]) for pe in others], self._meeting_flag)
        self.wait_for(root, came)
        for pe in others:
            self.send([signal(root, go_on, [pe])], self._meeting_flag)
            self.wait_for(pe, go_on)

    def _send(self, parcel: Parcel) -> None:
        program = self.programs[parcel.sender]
        self.join_all(parcel.sender)
        known = self.known_to(parcel.sender)
        sender, replicas = parcel.sender, self.replicas
        arriving = [(pe, Arriving(known)) for pe, _ in parcel.destinations if pe != DRAM]
        landings = list[Landing]()
        for (pe, held), (_, message) in zip(parcel.destinations, arriving, strict=False):
            receiver = self.programs[pe]
            receiver.expected.setdefault(held, []).extend([message] * replicas.times(sender, pe))
            receiver.use(held, known.of(pe))  # the first step that may be incomplete when the message arrives
            landings.append(Landing(pe, View(held.name, parcel.box), receiver.flags[held]))
        landings = landings or [Landing(DRAM, View(parcel.destinations[0][1].name, parcel.box), NO_FLAG)]
        source = View(parcel.source.name, parcel.box)
        self.messages.append(Message(parcel.tensor, parcel.source_pe, source, tuple(landings)))
        step = self.step(parcel.sender, Send(len(self.messages) - 1))
        if parcel.source_pe == parcel.sender:
            program.use(parcel.source, step)
            program.sending.append((parcel.source, arriving))
            program.aliases.pop(parcel.source, None)  # the source leaves once more
        reached = sum(replicas.times(pe, sender) for pe, _ in parcel.destinations)
        size = descriptor_bytes(parcel.parts, reached)
        if isinstance(parcel.source, Block) and not parcel.source.bytes:
            program.signals[step] = reached
            program.signal_bytes += size
        else:
            program.descriptors[step] = size
