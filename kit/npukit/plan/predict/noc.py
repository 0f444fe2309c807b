"""Timing model of the network-on-chip, after the hardware manual (section 4.3); packets, bytes and cycles of a plan's
messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.board.board import Board, Noc
from npukit.board.noc import DRAM, INNER_CYCLES, REQUEST_FLITS, Packets
from npukit.net.net import Net
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.predict.dram import DramTiming
from npukit.plan.tensors.dma_copies import copies
from npukit.plan.tensors.routes import Link, Routes


@dataclass
class Flight:
    """Times of a descriptor: it is done; its last byte has arrived, per destination. `late`: cycles by which messages
    that came in meanwhile have delayed both since."""

    done: int
    arrived: dict[int, int]
    late: int = 0


Departure = tuple[int, int]
"""The first cycle in which a source provides a descriptor's data, and the end."""


class _Wire:
    """Occupancy of a link: the cycle from which each lane is free, and the cycles taken in total."""

    def __init__(self, lanes: int, *, border: bool) -> None:
        self.free, self.border, self.busy = [0] * lanes, border, 0

    def grant(self, at: int, taken: int) -> int:
        """The cycle at which a message's head begins to cross. `at`: its arrival. `taken`: cycles of the message."""
        lane = self.free.index(min(self.free)) if len(self.free) > 1 else 0
        passing = max(at, self.free[lane])
        self.free[lane] = passing + taken
        self.busy += taken
        return passing


@dataclass
class _Port:
    """The DMA of a PE at its SRAM: the cycles from which it is free to send and to receive, and its last message."""

    sends: int = 0
    receives: int = 0
    sent: Flight | None = None

    def receive(self, at: int, flits: int) -> int:
        """The cycle at which a message begins to come in. Receiving comes before sending."""
        begins = max(at, self.receives)
        self.receives = begins + flits
        if self.sends > begins and self.sent:
            self.sends += flits
            self.sent.late += flits
        return begins


_Tree = tuple[list[tuple[_Wire, int | None]], list[tuple[int, int | None, bool]]]
"""The links of a packet's route, each with the index of its predecessor or None. And for each destination the index of
its last link, and True if a chip border lies on the way."""


class Links:
    """The links of a board with their occupancy. Messages are granted links in the order of the calls, each as a whole:
    packets of messages that share a link take turns in the hardware."""

    def __init__(self, board: Board) -> None:
        assert board.noc is not None
        self._noc = noc = board.noc
        self._routes = Routes(board)
        self._wires: dict[Link, _Wire] = {}
        self._ports: dict[int, _Port] = defaultdict(_Port)
        self._drams: dict[int, DramTiming] = defaultdict(lambda: DramTiming(noc))
        self._trees: dict[tuple[int, tuple[int, ...]], _Tree] = {}

    @property
    def busy(self) -> dict[Link, int]:
        """Cycles for which each link was taken."""
        return {link: wire.busy for link, wire in self._wires.items() if wire.busy}

    def carry(self, start: int, sender: int, source: int, destinations: Sequence[int], load: Packets) -> Flight:
        """Carry one descriptor. Valid only if no descriptor with a later start departs earlier."""
        return self.deliver(self.departure(start, sender, source, load), sender, source, destinations, load)

    def departure(self, start: int, sender: int, source: int, load: Packets) -> Departure:
        """The cycles in which a descriptor leaves its source. `start`: the sender's DMA takes up the descriptor.

        Call `departure` in the order of the starts, and `deliver` in the order of the departures.
        """
        port = self._ports[sender]
        begin = max(start + self._noc.setup_cycles + load.lists, port.sends)
        if source < DRAM:
            port.sends = begin + load.flits
            return begin, port.sends
        port.sends = begin + REQUEST_FLITS + load.lists
        asked = begin + self._way(sender, self._routes.router(source)) + REQUEST_FLITS + load.lists + 1
        known = asked + self._noc.dram_latency_cycles
        return self._drams[source].access(known, known, load)

    def asked(self, sender: int) -> int:
        """The cycle at which the sender's last packet or request has left."""
        return self._ports[sender].sends

    def deliver(
        self, departure: Departure, sender: int, source: int, destinations: Sequence[int], load: Packets
    ) -> Flight:
        """Carry a message from its source. Each link of the union of the paths is crossed once."""
        start, end = departure
        if destinations[0] >= DRAM:
            return self._store(start, sender, source, destinations[0], load)
        flits = max(load.flits, end - start)
        flight = Flight(start + load.flits, {})
        for destination, (head, slow) in self._heads(start, source, destinations, load).items():
            read = load.flits if destination == source else 0  # a copy within a PE takes the port twice
            begins = self._ports[destination].receive(head + read, load.flits)
            flight.arrived[destination] = begins + max(flits, slow) + 1
        if source < DRAM:
            self._ports[source].sent = flight
        return flight

    def _heads(self, start: int, source: int, destinations: Sequence[int], load: Packets) -> dict[int, tuple[int, int]]:
        """The head's arrival at each destination's router, and the cycles from there until the tail is there."""
        links, ends = self._tree(self._routes.router(source), tuple(destinations))
        heads: list[int] = []
        hop, slow = self._noc.hop_cycles + load.lists, self._noc.border_cycles(load.flits)
        first = start + INNER_CYCLES + load.lists
        for wire, before in links:
            at = first if before is None else heads[before]
            if wire.border:  # the first packet crosses as a whole
                passing = wire.grant(at + load.longest + 1, slow)
                heads.append(passing + self._noc.border_cycles(load.longest) + self._noc.chip_hop_cycles)
            else:
                heads.append(wire.grant(at, load.flits) + hop)
        tail = slow - self._noc.border_cycles(load.longest) + load.longest
        return {to: (first if place is None else heads[place], tail if border else 0) for to, place, border in ends}

    def _store(self, start: int, sender: int, source: int, place: int, load: Packets) -> Flight:
        """Carry a message to DRAM. The descriptor is done when the DRAM's acknowledgement has come back."""
        router = self._routes.router(place)
        head, slow = self._heads(start, source, [router], load)[router]
        known = head + load.longest + 1
        _, end = self._drams[place].access(known, known, load)
        done = max(end, head + max(load.flits, slow) + load.longest + 1)
        return Flight(done + self._way(router, sender) + INNER_CYCLES, {place: done})

    def _way(self, source: int, destination: int) -> int:
        """Cycles of a short packet's head from a PE or DRAM to another."""
        borders = sum(link.border for link in self._routes.path(source, destination))
        hops = len(self._routes.path(source, destination)) - borders
        return INNER_CYCLES + hops * self._noc.hop_cycles + borders * self._noc.chip_hop_cycles

    def _tree(self, source: int, destinations: tuple[int, ...]) -> _Tree:
        """The union of the paths to some destinations, cached."""
        key = (source, destinations)
        if key not in self._trees:
            links, ends, places = list[tuple[_Wire, int | None]](), [], dict[Link, int]()
            for destination in destinations:
                place, border = None, False
                for link in self._routes.path(source, destination):
                    before, border = place, border or link.border
                    place = places.setdefault(link, len(places))
                    if place == len(links):
                        lanes = self._noc.chip_links_per_border if link.border else 1
                        links.append((self._wires.setdefault(link, _Wire(lanes, border=link.border)), before))
                ends.append((destination, place, border))
            self._trees[key] = links, ends
        return self._trees[key]


@dataclass(frozen=True)
class Packet:
    """One descriptor. The last of a message carries the landings' flags, and with `counts_as_sent` the sender's flag
    too."""

    message: Message
    load: Packets
    last: bool
    counts_as_sent: bool
    bytes: int = 0

    def one_by_one(self) -> Iterator[Packet]:
        """A packet per landing. Only the last counts as sent."""
        landings = self.message.landings
        for landing in landings:
            message, load = replace(self.message, landings=(landing,)), replace(self.load, lists=0)
            yield replace(self, message=message, load=load, counts_as_sent=landing is landings[-1])


def packets_of(noc: Noc, net: Net, plan: Plan) -> list[list[Packet]]:
    """The packets of each message."""
    found: list[list[Packet]] = []
    for message in plan.messages:
        landing = message.landings[0]
        source = plan.buffer(message.source_pe, message.source.buffer)
        target = plan.buffer(landing.pe, landing.view.buffer)
        parts = copies(message.source.box, source.box, target.box, element_bytes(net, message))
        found.append([])
        for part in parts:
            load, last = noc.packets(part.rows, part.row_bytes, len(message.landings)), part is parts[-1]
            if message.source_pe == DRAM:
                load = replace(load, address=source.offset + part.source_offset, stride=part.source_stride)
            elif landing.pe == DRAM:
                load = replace(load, address=target.offset + part.destination_offset, stride=part.destination_stride)
            found[-1].append(Packet(message, load, last, last, part.rows * part.row_bytes))
    return found


def element_bytes(net: Net, message: Message) -> int:
    """Bytes of an element of a message. Messages without a tensor count bytes."""
    return np.dtype(net.tensor(message.tensor).dtype).itemsize if message.tensor else 1


def link_bytes(board: Board, net: Net, plan: Plan) -> Counter[Link]:
    """Bytes over each link per frame, or per batch for a plan with batches."""
    found: Counter[Link] = Counter()
    if board.noc is None:
        return found
    routes = Routes(board)
    ways: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for message in plan.messages:
        targets = tuple([routes.router(landing.pe) for landing in message.landings])
        ways[routes.router(message.source_pe), targets] += message_bytes(net, message)
    for (source, targets), moved in ways.items():
        for link in routes.tree(source, targets):
            found[link] += moved
    return found


def message_bytes(net: Net, message: Message) -> int:
    return message.source.box.elements * element_bytes(net, message)


def port_cycles(noc: Noc, net: Net, plan: Plan) -> Mapping[int, int]:
    """Cycles of a frame in which messages occupy each PE's SRAM port, 16 bytes per cycle."""
    found: Counter[int] = Counter()
    for message, packets in zip(plan.messages, packets_of(noc, net, plan), strict=True):
        for place in (message.source_pe, *(landing.pe for landing in message.landings)):
            found[place] += sum(packet.load.data for packet in packets)
    return found
