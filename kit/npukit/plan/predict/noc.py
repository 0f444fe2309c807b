"""Timing model of the network-on-chip, after the hardware manual (section 4.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.ir.plan import Buffer, Message, Plan
from npukit.plan.tensors.dma_copies import Copy, copies
from npukit.plan.tensors.routes import Link, Routes

START = -1
"""Index of the predecessor of a path's first link: none."""


@dataclass(frozen=True)
class Carried:
    """Times of a packet: its tail leaves the source; the whole packet has arrived, per destination."""

    left: int
    arrived: dict[int, int]


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


@dataclass(frozen=True)
class _Tree:
    """The links of a packet's route, each with the index of its predecessor, and the last link to each destination."""

    links: tuple[tuple[_Wire, int], ...]
    ends: tuple[tuple[int, int, bool], ...]
    """Destination, index of its last link, whether a chip border lies on the way."""


class Links:
    """The links of a board with their occupancy. Packets are granted links in the order of the calls."""

    def __init__(self, board: Board) -> None:
        assert board.noc is not None
        self._noc, self._routes, self._pes_of_a_chip = board.noc, Routes(board), board.mesh.pes.count
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
        chip = source - DRAM
        way = self._routes.path(sender, self._router(source))
        begin = max(start + sum(map(self._hop, way)) + self._noc.dram_latency_cycles, self._dram_free[chip])
        self._dram_free[chip] = begin + flits * self._noc.port_bytes_per_cycle // self._noc.dram_bytes_per_cycle
        return begin

    def deliver(self, start: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """Carry a packet from its source, with departure at `start`. Each link of the union of the paths is crossed
        once."""
        if list(destinations) == [source]:
            return Carried(start + 2 * flits, {source: start + 2 * flits})
        if destinations[0] >= DRAM:
            return self._store(start, source, destinations[0], flits)
        tree = self._tree(self._router(source), tuple(destinations))
        heads: list[int] = []
        left, slow = start + flits, self._noc.border_cycles(flits)
        for wire, before in tree.links:
            taken = slow if wire.border else flits
            passing = wire.grant(start if before == START else heads[before], taken)
            heads.append(passing + wire.hop)
            if before == START:
                left = max(left, passing + taken)
        arrived = {
            destination: (start if place == START else heads[place]) + (slow if border else flits)
            for destination, place, border in tree.ends
        }
        return Carried(left, arrived)

    def _store(self, start: int, source: int, place: int, flits: int) -> Carried:
        """Carry a packet to DRAM, modelled as a further link at the DRAM's router, taken from the head's arrival on."""
        router, chip = self._router(place), place - DRAM
        near = source == router
        brought = Carried(start, {router: start + flits}) if near else self.deliver(start, source, [router], flits)
        taken = flits * self._noc.port_bytes_per_cycle // self._noc.dram_bytes_per_cycle
        begin = max(brought.arrived[router] - flits, self._dram_free[chip])
        self._dram_free[chip] = begin + taken
        done = begin + max(taken, flits)
        return Carried(done if near else brought.left, {place: done})

    def _router(self, source: int) -> int:
        """The PE at a source's router: a chip's DRAM is at the router of the chip's first PE."""
        return (source - DRAM) * self._pes_of_a_chip if source >= DRAM else source

    def _tree(self, source: int, destinations: tuple[int, ...]) -> _Tree:
        key = (source, destinations)
        if key not in self._trees:
            self._trees[key] = self._tree_of([(each, self._routes.path(source, each)) for each in destinations])
        return self._trees[key]

    def _tree_of(self, paths: Sequence[tuple[int, Sequence[Link]]]) -> _Tree:
        """The union of the paths to some destinations."""
        places: dict[Link, int] = {}
        links, ends = list[tuple[_Wire, int]](), list[tuple[int, int, bool]]()
        for destination, path in paths:
            place, border = START, False
            for link in path:
                before, border = place, border or link.border
                place = places.setdefault(link, len(places))
                if place == len(links):
                    links.append((self._wire(link), before))
            ends.append((destination, place, border))
        return _Tree(tuple(links), tuple(ends))

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

    def is_signal_of(self, pe: int) -> bool:
        """True if the packet is a signal from this PE."""
        return not self.message.tensor and self.message.source_pe == pe

    def one_by_one(self) -> Iterator[Packet]:
        """A packet per landing. Only the last counts as sent."""
        landings = self.message.landings
        for landing in landings:
            message = replace(self.message, landings=(landing,))
            yield replace(self, message=message, counts_as_sent=landing is landings[-1])


def packets_of(net: Net, plan: Plan) -> list[list[Packet]]:
    """The packets of each message."""
    buffers = {(pe.pe, b.name): b for pe in plan.pes for b in pe.buffers} | {(DRAM, b.name): b for b in plan.dram}
    return [_packets(net, buffers, message) for message in plan.messages]


def _packets(net: Net, buffers: dict[tuple[int, str], Buffer], message: Message) -> list[Packet]:
    landing = message.landings[0]
    source = buffers[message.source_pe, message.source.buffer].box
    target = buffers[landing.pe, landing.view.buffer].box
    size = np.dtype(net.tensor(message.tensor).dtype).itemsize if message.tensor else 1
    parts = copies(message.source.box, source, target, size)
    return [_packet(message, part, last=part is parts[-1]) for part in parts]


def _packet(message: Message, part: Copy, *, last: bool) -> Packet:
    return Packet(message, part.flits, last, last, part.rows * part.row_bytes)
