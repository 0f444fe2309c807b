"""Timing model of the network-on-chip, after the hardware manual (section 4.3); packets, bytes and cycles of a plan's
messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.tensors.dma_copies import copies
from npukit.plan.tensors.routes import Link, Routes

Carried = tuple[int, dict[int, int]]
"""Times of a packet: its tail leaves the source; the whole packet has arrived, per destination."""


class _Wire:
    """Occupancy of a link: the cycle from which each lane is free, and the cycles taken in total."""

    def __init__(self, lanes: int, hop: int, *, border: bool) -> None:
        self.free, self.hop, self.border, self.busy = [0] * lanes, hop, border, 0

    def grant(self, at: int, taken: int) -> int:
        """The cycle at which a packet head begins to cross the link. `at`: the head's arrival. `taken`: cycles of the
        packet."""
        lane = self.free.index(min(self.free)) if len(self.free) > 1 else 0
        passing = max(at, self.free[lane])
        self.free[lane] = passing + taken
        self.busy += taken
        return passing


_Tree = tuple[list[tuple[_Wire, int | None]], list[tuple[int, int | None, bool]]]
"""The links of a packet's route, each with the index of its predecessor or None. And for each destination the index of
its last link, and True if a chip border lies on the way."""


class Links:
    """The links of a board with their occupancy. Packets are granted links in the order of the calls."""

    def __init__(self, board: Board) -> None:
        assert board.noc is not None
        self._noc, self._routes = board.noc, Routes(board)
        self._wires: dict[Link, _Wire] = {}
        self._dram_free: dict[int, int] = defaultdict(int)
        self._trees: dict[tuple[int, tuple[int, ...]], _Tree] = {}

    @property
    def busy(self) -> dict[Link, int]:
        """Cycles for which each link was taken."""
        return {link: wire.busy for link, wire in self._wires.items() if wire.busy}

    def carry(self, start: int, sender: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """Carry one descriptor. Valid only if no descriptor with a later start departs earlier."""
        return self.deliver(self.departure(start, sender, source, flits), source, destinations, flits)

    def departure(self, start: int, sender: int, source: int, flits: int) -> int:
        """The cycle at which a descriptor leaves its source. `start`: the sender's DMA takes up the descriptor.

        Call `departure` in the order of the starts, and `deliver` in the order of the departures.
        """
        start += self._noc.setup_cycles
        if source < DRAM:
            return start
        hops = sum(map(self._hop, self._routes.path(sender, self._routes.router(source))))
        begin = max(start + hops + self._noc.dram_latency_cycles, self._dram_free[source])
        self._dram_free[source] = begin + self._dram_cycles(flits)
        return begin

    def deliver(self, start: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """Carry a packet from its source, with departure at `start`. Each link of the union of the paths is crossed
        once."""
        if list(destinations) == [source]:
            return start + 2 * flits, {source: start + 2 * flits}
        if destinations[0] >= DRAM:
            return self._store(start, source, destinations[0], flits)
        links, ends = self._tree(self._routes.router(source), tuple(destinations))
        heads: list[int] = []
        left, slow = start + flits, self._noc.border_cycles(flits)
        for wire, before in links:
            taken = slow if wire.border else flits
            passing = wire.grant(start if before is None else heads[before], taken)
            heads.append(passing + wire.hop)
            if before is None:
                left = max(left, passing + taken)
        arrived = {
            destination: (start if place is None else heads[place]) + (slow if border else flits)
            for destination, place, border in ends
        }
        return left, arrived

    def _store(self, start: int, source: int, place: int, flits: int) -> Carried:
        """Carry a packet to DRAM, modelled as a further link at the DRAM's router, taken from the head's arrival on."""
        router = self._routes.router(place)
        near = source == router
        left, arrived = (start, {router: start + flits}) if near else self.deliver(start, source, [router], flits)
        taken = self._dram_cycles(flits)
        begin = max(arrived[router] - flits, self._dram_free[place])
        self._dram_free[place] = begin + taken
        done = begin + max(taken, flits)
        return done if near else left, {place: done}

    def _dram_cycles(self, flits: int) -> int:
        return flits * self._noc.port_bytes_per_cycle // self._noc.dram_bytes_per_cycle

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
                        links.append((self._wire(link), before))
                ends.append((destination, place, border))
            self._trees[key] = links, ends
        return self._trees[key]

    def _wire(self, link: Link) -> _Wire:
        if link not in self._wires:
            lanes = self._noc.chip_links_per_border if link.border else 1
            self._wires[link] = _Wire(lanes, self._hop(link), border=link.border)
        return self._wires[link]

    def _hop(self, link: Link) -> int:
        return self._noc.chip_hop_cycles if link.border else self._noc.hop_cycles


@dataclass(frozen=True)
class Packet:
    """One descriptor. The last of a message carries the landings' flags, and with `counts_as_sent` the sender's flag
    too."""

    message: Message
    flits: int
    last: bool
    counts_as_sent: bool
    bytes: int = 0

    def one_by_one(self) -> Iterator[Packet]:
        """A packet per landing. Only the last counts as sent."""
        landings = self.message.landings
        for landing in landings:
            message = replace(self.message, landings=(landing,))
            yield replace(self, message=message, counts_as_sent=landing is landings[-1])


def packets_of(net: Net, plan: Plan) -> list[list[Packet]]:
    """The packets of each message."""
    boxes = {(pe.pe, buffer.name): buffer.box for pe in plan.pes for buffer in pe.buffers}
    boxes |= {(DRAM, buffer.name): buffer.box for buffer in plan.dram}
    found: list[list[Packet]] = []
    for message in plan.messages:
        source, landing = boxes[message.source_pe, message.source.buffer], message.landings[0]
        target = boxes[landing.pe, landing.view.buffer]
        *parts, last = copies(message.source.box, source, target, element_bytes(net, message))
        ends = [*((part, False) for part in parts), (last, True)]
        found.append([Packet(message, part.flits, end, end, part.rows * part.row_bytes) for part, end in ends])
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


def port_cycles(net: Net, plan: Plan) -> Mapping[int, int]:
    """Cycles of a frame in which messages occupy each PE's SRAM port, 16 bytes per cycle."""
    found: Counter[int] = Counter()
    for message, packets in zip(plan.messages, packets_of(net, plan), strict=True):
        for place in (message.source_pe, *(landing.pe for landing in message.landings)):
            found[place] += sum(packet.flits for packet in packets)
    return found
