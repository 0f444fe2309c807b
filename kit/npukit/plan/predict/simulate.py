"""Simulation of a plan in time: cores, engines, DMA queues, links and flags, event by event.

Times of engines and the network follow the hardware manual, times of the core `core_cycles.py`.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from npukit.board.board import Board
from npukit.board.cores import CORES, CoreType
from npukit.board.noc import DRAM, NO_FLAG
from npukit.net.box import Box
from npukit.net.net import CORE, Net
from npukit.plan.ir.plan import (
    PAGES,
    SENT_FLAG,
    Compute,
    Join,
    Landing,
    Message,
    PePlan,
    Plan,
    Predicted,
    Restore,
    Send,
    Step,
    View,
    Wait,
    orders_name,
)
from npukit.plan.predict.memory import MULTICAST_SIGNAL
from npukit.plan.predict.noc import Departure, Flight, Links, Packet, packets_of
from npukit.plan.predict.timeline import CORE as CORE_TRACK
from npukit.plan.predict.timeline import SEND, WAIT, Movement, Timeline, TimeSlice
from npukit.plan.tensors import core_cycles
from npukit.plan.tensors.routes import Link

PAGE_FLAG = NO_FLAG
"""Flag that counts pages of orders. No PE has it."""

ROUNDS = 2
"""Batches simulated back to back to measure the interval."""


@dataclass(frozen=True)
class Simulated:
    """Cycles: the end of each frame on the root, the busy time of each PE and of each link.

    `stolen`: cycles that messages took from accelerators in the first frame, by PE and step, without zeros.
    """

    frame_ends: tuple[int, ...]
    computing: dict[int, int]
    links: dict[Link, int]
    stolen: dict[tuple[int, int], int]

    @property
    def latency_cycles(self) -> int:
        return self.frame_ends[0]

    @property
    def interval_cycles(self) -> int:
        """Cycles between frames once the pipeline is full, averaged over the second half of the frames."""
        half = (len(self.frame_ends) - 1) // 2
        steps = len(self.frame_ends) - 1 - half
        return round((self.frame_ends[-1] - self.frame_ends[half]) / steps) if steps else self.frame_ends[0]


@dataclass
class _Pe:
    plan: PePlan
    is_table: bool
    core: CoreType
    step: int = 0
    frames: int = 0
    page: int = 0
    """Index of the next page of orders, if the orders come from DRAM."""
    asleep: bool = False
    since: int = 0
    """The arrival time of the core at its current step."""
    looked: int = 0
    """The time of the last or next look at the awaited flag."""
    awake_until: int = 0
    """End of the interval after the last look in which the core does not look again."""
    flags: Counter[int] = field(default_factory=Counter)
    queue: deque[tuple[Packet, int]] = field(default_factory=deque)
    """Packets, each with the time of its request."""
    sending: bool = False
    port: list[tuple[int, int]] = field(default_factory=list)
    computing: int = 0
    at_work: set[str] = field(default_factory=set)
    """Accelerators at work since a submission."""

    def looks_at(self, time: int) -> int:
        """The time at which the core sees an event at `time`. While awake, a waiting core does not look again."""
        if not self.asleep:
            return time
        return max(time, self.awake_until) if time > self.looked else self.looked

    @property
    def next_page(self) -> int | None:
        """The first step of the next page, or None."""
        pages = self.plan.orders.pages
        return pages[self.page].first if self.page < len(pages) else None

    @property
    def between(self) -> int:
        """Cycles from one step to the next."""
        return self.takes(core_cycles.ROW_CYCLES) if self.is_table else 0

    def takes(self, cycles: int) -> int:
        """The core's cycles for work of `cycles` cycles on a Cortex-M4."""
        return round(cycles * self.core.call_cycles)


_Chain = tuple[int, int, Sequence[Compute]]
"""A chain of an engine: its start, and the compute steps from this step of the plan on."""


class _Simulation:
    """The state of all PEs and links at a time. `network`: the links, if not the board's. `record`: collect the slices
    and movements of a timeline."""

    def __init__(
        self, net: Net, board: Board, plan: Plan, frames: int, network: Links | None = None, *, record: bool = False
    ) -> None:
        self._frames, self._record = frames, record
        self.slices: list[TimeSlice] = []
        self.movements: list[Movement] = []
        self._network = network or (Links(board) if board.noc else None)
        self._root = plan.pes[0].pe
        self._pes = {pe.pe: _Pe(pe, pe.is_table, CORES[board.cpu_of(pe.pe)]) for pe in plan.pes}
        self._events: list[tuple[int, int, Callable[[int], object]]] = []
        self._order = count()
        self._noc = board.noc
        self._packets = packets_of(board.noc, net, plan) if board.noc else []
        self._ends: list[int] = []
        self._stolen: dict[tuple[int, int], int] = {}

    def run(self) -> Simulated:
        for pe in self._pes.values():
            self._begin_frame(pe, 0)
        while self._events and len(self._ends) < self._frames:
            time, _, event = heapq.heappop(self._events)
            event(time)
        if len(self._ends) < self._frames:
            raise RuntimeError(f"the plan stands still after {len(self._ends)} of {self._frames} frames")
        links = dict(self._network.busy) if self._network else {}
        computing = {number: pe.computing for number, pe in self._pes.items()}
        return Simulated(tuple(self._ends), computing, links, self._stolen)

    def _at(self, time: int, event: Callable[[int], object]) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    def _after(self, pe: _Pe, time: int) -> None:
        """Continue after a step that ends at `time`."""
        self._at(time + pe.between, partial(self._go_on, pe))

    def _go_on(self, pe: _Pe, time: int) -> None:
        """Execute the core's next step, or begin the next frame."""
        if pe.step == len(pe.plan.steps):
            self._end_frame(pe, time)
            return
        pe.since = time
        if pe.step == pe.next_page:
            self._go_to_page(pe, time)
            return
        match pe.plan.steps[pe.step]:
            case Compute() as step:
                self._compute(pe, step, time)
            case Join():
                self._join(pe, time)
            case Restore():
                pe.step += 1
                self._after(pe, time + pe.takes(core_cycles.RESTORE_CYCLES))
            case Send():
                self._send(pe, time)
            case Wait() as step:
                self._wait(pe, step, time)

    def _begin_frame(self, pe: _Pe, time: int) -> None:
        """Begin a frame with its first step, after the request for the first page."""
        begun = time + (pe.takes(core_cycles.BEGIN_CYCLES) if pe.plan.pe == self._root else 0)
        fetched = self._fetch(pe, begun) + pe.between if pe.next_page is not None else begun
        self._at(fetched, partial(self._go_on, pe))

    def _end_frame(self, pe: _Pe, time: int) -> None:
        if pe.plan.pe == self._root:
            time += pe.takes(core_cycles.END_CYCLES)
            self._ends.append(time)
        pe.step, pe.page, pe.frames = 0, 0, pe.frames + 1
        if pe.plan.steps and pe.frames < self._frames:
            self._begin_frame(pe, time)

    def _compute(self, pe: _Pe, first: Compute, time: int) -> None:
        """Start a chain: all consecutive computes on one accelerator."""
        kind = first.engine, first.submitted
        same = _run_of(pe, lambda step: isinstance(step, Compute) and (step.engine, step.submitted) == kind)
        steps = (first,) if first.engine == CORE else tuple(step for step in same if isinstance(step, Compute))
        patched = pe.is_table and first.constants and first.engine != CORE
        start = time + pe.takes(core_cycles.START_CYCLES) + (pe.takes(core_cycles.PATCH_CYCLES) if patched else 0)
        cycles, chain = sum(step.cycles for step in steps), (start, pe.step, steps)
        pe.step += len(steps)
        pe.computing += cycles
        pe.port = [span for span in pe.port if span[1] > start]
        self._at(start + cycles, partial(self._computed, pe, chain, 0 if first.engine != CORE else None))
        if first.submitted:
            pe.at_work.add(first.engine)
            self._after(pe, start)

    def _computed(self, pe: _Pe, chain: _Chain, stolen: int | None, time: int) -> None:
        """End a chain. If the DMA took port cycles from the chain meanwhile, its end is postponed by as many."""
        start, _, steps = chain
        taken = _taken(pe, start, time)
        if stolen is not None and taken > stolen:
            end = start + sum(step.cycles for step in steps) + taken
            self._at(end, partial(self._computed, pe, chain, taken))
            return
        if self._record or (stolen and pe.frames == 0):
            self._note(pe, *chain)
        if steps[0].submitted:
            pe.at_work.remove(steps[0].engine)
            self._wake(pe, time)
        else:
            self._after(pe, time + pe.takes(core_cycles.STOP_CYCLES))

    def _note(self, pe: _Pe, start: int, first: int, steps: Sequence[Compute]) -> None:
        """Record the steps of a finished chain: slices for a timeline, and the cycles taken by messages in the first
        frame."""
        number = pe.plan.pe
        for index, step in enumerate(steps, first):
            track, stolen = (CORE_TRACK, 0) if step.engine == CORE else (step.engine, _stolen(pe, start, step.cycles))
            if stolen and pe.frames == 0:
                self._stolen[number, index] = stolen
            end = start + step.cycles + stolen
            if self._record:
                self.slices.append(TimeSlice(number, track, step.op, start, end, step.op, index, step.frame))
            start = end

    def _join(self, pe: _Pe, time: int) -> None:
        """Sleep until the accelerator has completed all submitted work."""
        step = pe.plan.steps[pe.step]
        assert isinstance(step, Join)
        pe.asleep = step.engine in pe.at_work
        if not pe.asleep:
            pe.step += 1
            self._after(pe, time + pe.takes(core_cycles.STOP_CYCLES))

    def _wake(self, pe: _Pe, time: int) -> None:
        """Check again the condition that the core waits for."""
        if not pe.asleep:
            return
        step = pe.plan.steps[pe.step]
        if pe.step == pe.next_page:
            self._go_to_page(pe, time)
        elif isinstance(step, Join):
            self._join(pe, time)
        else:
            assert isinstance(step, Wait), "a core sleeps only in steps that wait"
            self._wait(pe, step, time)

    def _go_to_page(self, pe: _Pe, time: int) -> None:
        """Wait for a page, request the following one, and continue in the page."""
        end = self._awaited(pe, PAGE_FLAG, 1, time)
        if end is None:
            return
        pe.page += 1
        if pe.next_page is not None:
            end = self._fetch(pe, end + pe.between)
        self._after(pe, end)

    def _fetch(self, pe: _Pe, time: int) -> int:
        """Request the next page. Returns the time when the request, two rows of the table, is done."""
        size, landing = pe.plan.orders.pages[pe.page].bytes, Landing(pe.plan.pe, View(PAGES, Box((), ())), PAGE_FLAG)
        assert self._noc is not None
        message = Message("", DRAM, View(orders_name(pe.plan.pe), Box((), ())), (landing,))
        packet = Packet(message, self._noc.packets(1, size), last=True, counts_as_sent=False, bytes=size)
        asked = time + pe.takes(core_cycles.FETCH_CYCLES)
        self._at(asked, partial(self._queue, pe, packet))
        return asked + pe.between

    def _send(self, pe: _Pe, time: int) -> None:
        """Start a chain of messages: all consecutive sends."""
        if self._is_row(pe, pe.plan.steps[pe.step]):
            self._signal(pe, time)
            return
        for step in _run_of(pe, lambda step: isinstance(step, Send) and not self._is_row(pe, step)):
            assert isinstance(step, Send)
            pe.queue.extend((packet, time) for packet in self._packets[step.message])
            pe.step += 1
        sent = time + pe.takes(core_cycles.SEND_CYCLES)
        self._called(pe, SEND, time, sent)
        if not pe.sending:
            pe.sending = True
            self._at(time + pe.takes(core_cycles.DOORBELL_CYCLES) + 1, partial(self._transmit, pe))
        self._after(pe, sent)

    def _signal(self, pe: _Pe, time: int) -> None:
        """Send the signal of a table's row to each receiving PE in turn."""
        step = pe.plan.steps[pe.step]
        assert isinstance(step, Send)
        pe.step += 1
        signal = self._packets[step.message][0]
        if len(signal.message.landings) >= MULTICAST_SIGNAL:  # the list of PEs takes a row more
            signals, time = [signal], time + pe.between
        else:
            signals = signal.one_by_one()
        for packet in signals:
            sent = time + pe.takes(core_cycles.SIGNAL_CYCLES)
            self._called(pe, SEND, time, sent)
            self._at(sent, partial(self._queue, pe, packet))
            time = sent + pe.between
        self._at(time, partial(self._go_on, pe))

    def _is_row(self, pe: _Pe, step: Step) -> bool:
        """True if the step is a signal in a table, without descriptors."""
        if not (pe.is_table and isinstance(step, Send)):
            return False
        message = self._packets[step.message][0].message
        return not message.tensor and message.source_pe == pe.plan.pe

    def _queue(self, pe: _Pe, packet: Packet, time: int) -> None:
        pe.queue.append((packet, time))
        if not pe.sending:
            pe.sending = True
            self._transmit(pe, time + 1)

    def _transmit(self, pe: _Pe, time: int) -> None:
        """Transmit the next descriptor of a PE's queue."""
        if not pe.queue:
            pe.sending = False
            return
        assert self._network is not None
        packet, asked = pe.queue.popleft()
        leaves = self._network.departure(time, pe.plan.pe, packet.message.source_pe, packet.load)
        if packet.message.source_pe < DRAM:
            flight = self._depart(pe, packet, asked, leaves)
            self._land(flight, flight.done, partial(self._transmit, pe))
        else:  # messages with an earlier departure take their links first
            self._at(leaves[0], lambda _: self._depart(pe, packet, asked, leaves))
            self._at(self._network.asked(pe.plan.pe), partial(self._transmit, pe))

    def _depart(self, pe: _Pe, packet: Packet, asked: int, leaves: Departure) -> Flight:
        assert self._network is not None
        landings, source = packet.message.landings, packet.message.source_pe
        places = [landing.pe for landing in landings]
        flight = self._network.deliver(leaves, pe.plan.pe, source, places, packet.load)
        left, arrived = flight.done, flight.arrived
        if self._record:
            self.movements += [
                Movement(source, to, packet.bytes, leaves[0], end, pe.plan.pe, asked) for to, end in arrived.items()
            ]
        if source == pe.plan.pe:
            pe.port.append((left - packet.load.data, left))
        for landing in landings if landings[0].pe < DRAM else ():
            end, target = arrived[landing.pe], self._pes[landing.pe]
            target.port.append((end - packet.load.data, end))
            if packet.last:
                self._land(flight, end, partial(self._count, target, landing.flag))
        if packet.counts_as_sent and source == pe.plan.pe and pe.plan.awaits_sent:
            self._land(flight, left, partial(self._count, pe, SENT_FLAG))
        return flight

    def _land(self, flight: Flight, end: int, event: Callable[[int], None], late: int = 0) -> None:
        """Let an event happen at the end of a flight, or later if the flight is delayed meanwhile."""

        def land(time: int) -> None:
            if flight.late > late:
                self._land(flight, end, event, flight.late)
            else:
                event(time)

        self._at(end + late, land)

    def _count(self, pe: _Pe, flag: int, time: int) -> None:
        pe.flags[flag] += 1
        self._wake(pe, time)

    def _wait(self, pe: _Pe, step: Wait, time: int) -> None:
        if (end := self._awaited(pe, step.flag, step.count, time)) is not None:
            pe.step += 1
            self._after(pe, end)

    def _awaited(self, pe: _Pe, flag: int, count: int, time: int) -> int | None:
        """The time at which the core continues, if the flag has reached the count. Else None, and the core sleeps."""
        looks = pe.looks_at(time)
        if pe.flags[flag] < count:
            awake = core_cycles.LOOK_CYCLES if pe.asleep else core_cycles.DOZE_CYCLES
            pe.looked, pe.awake_until, pe.asleep = looks, looks + pe.takes(awake), True
            return None
        end = looks + pe.takes(core_cycles.WAKE_CYCLES if pe.asleep else core_cycles.WAIT_CYCLES)
        pe.asleep = False
        pe.flags[flag] -= count
        self._called(pe, WAIT, pe.since, end)
        return end

    def _called(self, pe: _Pe, name: str, start: int, end: int) -> None:
        """Record a firmware function on a PE's core."""
        if self._record:
            self.slices.append(TimeSlice(pe.plan.pe, CORE_TRACK, name, start, end))


def simulate(net: Net, board: Board, plan: Plan, frames: int = 1, network: Links | None = None) -> Simulated:
    """Simulate consecutive frames. The root starts each frame at the end of the previous one. `network`: other links
    than the board's."""
    return _Simulation(net, board, plan, frames, network).run()


def predicted_timeline(net: Net, board: Board, plan: Plan) -> Timeline:
    """The predicted timeline of one frame."""
    simulation = _Simulation(net, board, plan, 1, record=True)
    return Timeline(
        model=plan.model,
        board=board.name,
        clock_hz=board.core.clock_hz,
        frames=((0, simulation.run().latency_cycles),),
        slices=tuple(simulation.slices),
        together=plan.frames,
        movements=tuple(simulation.movements),
        root=plan.pes[0].pe,
    ).from_zero()


def _taken(pe: _Pe, start: int, end: int) -> int:
    """Port cycles taken by messages between `start` and `end`."""
    taken = 0
    for begin, stop in pe.port:
        if begin < end and stop > start:
            taken += min(stop, end) - max(begin, start)
    return taken


def _stolen(pe: _Pe, start: int, cycles: int) -> int:
    """Cycles taken by messages from an accelerator's step. The step lasts longer by as many cycles."""
    stolen = -1
    while (taken := _taken(pe, start, start + cycles + max(stolen, 0))) > stolen:
        stolen = taken
    return stolen


def _run_of(pe: _Pe, belongs: Callable[[Step], bool]) -> Sequence[Step]:
    """The consecutive steps of one chain, from the current step on."""
    steps, end = pe.plan.steps, pe.step
    while end < len(steps) and end != pe.next_page and belongs(steps[end]):
        end += 1
    return steps[pe.step : end]


def with_predictions(net: Net, board: Board, plan: Plan, rounds: int = 1) -> Plan:
    """The plan with its predicted latency and interval, and the cycles taken by messages from engines.

    `rounds`: the number of batches simulated back to back.
    """
    seen = simulate(net, board, plan, rounds)
    predicted = Predicted(seen.latency_cycles, seen.interval_cycles // plan.frames)
    stolen: dict[int, dict[int, int]] = {}
    for (pe, step), cycles in seen.stolen.items():
        stolen.setdefault(pe, {})[step] = cycles
    pes = (pe.with_stolen(stolen[pe.pe]) if pe.pe in stolen else pe for pe in plan.pes)
    return replace(plan, predicted=predicted, pes=tuple(pes))
