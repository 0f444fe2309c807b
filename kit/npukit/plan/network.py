"""The network-on-chip in time, as the hardware manual describes it (section 4.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.plan.plan import DRAM
from npukit.plan.routes import Link, Routes

START = -1
"""Stands for the link before the first."""


@dataclass(frozen=True)
class Carried:
    """A packet's times: when its tail has left the source, and when it is whole at each destination."""

    left: int
    arrived: dict[int, int]


@dataclass(frozen=True)
class _Tree:
    """The links of a packet's way, each with the place of the one before it; of each destination its last link."""

    links: tuple[tuple[Link, int], ...]
    ends: tuple[tuple[int, int, bool], ...]
    """Destination, place, whether a chip border lies on the way."""


class Network:
    """Links, each free from some cycle on. Packets are granted links in the order of the calls."""

    def __init__(self, board: Board) -> None:
        assert board.noc is not None
        self._noc, self._routes, self._pes_of_a_chip = board.noc, Routes(board), board.mesh.pes.count
        self._free: dict[Link, list[int]] = {}
        self._dram_free: dict[int, int] = defaultdict(int)
        self._trees: dict[tuple[int, tuple[int, ...]], _Tree] = {}
        self.busy: dict[Link, int] = defaultdict(int)

    def carry(self, start: int, sender: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """One descriptor, where none that starts later leaves earlier."""
        return self.deliver(self.departure(start, sender, source, flits), source, destinations, flits)

    def departure(self, start: int, sender: int, source: int, flits: int) -> int:
        """When a descriptor that the sender's DMA takes up at `start` leaves its source, which is asked if it is DRAM.

        To be called in the order of the starts; `deliver` in the order of the departures.
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
        """From when it leaves its source on: each link of the union of the paths is crossed once."""
        if list(destinations) == [source]:
            return Carried(start + 2 * flits, {source: start + 2 * flits})
        tree = self._tree(self._router(source), tuple(destinations))
        heads: list[int] = []
        left = start + flits
        for link, before in tree.links:
            heads.append(self._grant(link, start if before == START else heads[before], flits))
            if before == START:
                left = max(left, heads[-1] - self._hop(link) + self._taken(link, flits))
        slow = self._slow(flits)
        arrived = {
            destination: (start if place == START else heads[place]) + (slow if border else flits)
            for destination, place, border in tree.ends
        }
        return Carried(left, arrived)

    def _router(self, source: int) -> int:
        """DRAM sits at the router of its chip's first PE."""
        return (source - DRAM) * self._pes_of_a_chip if source >= DRAM else source

    def _tree(self, source: int, destinations: tuple[int, ...]) -> _Tree:
        key = (source, destinations)
        if key not in self._trees:
            links = self._routes.tree(source, destinations)
            paths = [self._routes.path(source, destination) for destination in destinations]
            before = {link: other for path in paths for link, other in zip(path[1:], path, strict=False)}
            places = {link: place for place, link in enumerate(links)}
            self._trees[key] = _Tree(
                tuple((link, places[before[link]] if link in before else START) for link in links),
                tuple(
                    (destination, places[path[-1]] if path else START, any(link.border for link in path))
                    for destination, path in zip(destinations, paths, strict=True)
                ),
            )
        return self._trees[key]

    def _grant(self, link: Link, at: int, flits: int) -> int:
        """When the head has crossed a link that it reaches at a cycle."""
        free = self._free.get(link)
        if free is None:
            free = self._free[link] = [0] * (self._noc.chip_links_per_border if link.border else 1)
        lane = free.index(min(free))
        passing = max(at, free[lane])
        taken = self._taken(link, flits)
        free[lane] = passing + taken
        self.busy[link] += taken
        return passing + self._hop(link)

    def _hop(self, link: Link) -> int:
        return self._noc.chip_hop_cycles if link.border else self._noc.hop_cycles

    def _taken(self, link: Link, flits: int) -> int:
        return self._slow(flits) if link.border else flits

    def _slow(self, flits: int) -> int:
        """How long a chip border's link is taken."""
        return flits * self._noc.port_bytes_per_cycle // self._noc.chip_link_bytes_per_cycle
