"""The network-on-chip in time, as the hardware manual describes it (section 4.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.plan.plan import DRAM
from npukit.plan.routes import Link, Routes


@dataclass(frozen=True)
class Carried:
    """A packet's times: when its tail has left the source, and when it is whole at each destination."""

    left: int
    arrived: dict[int, int]


class Network:
    """Links, each free from some cycle on. Packets are granted links in the order of the calls."""

    def __init__(self, board: Board) -> None:
        assert board.noc is not None
        self._noc, self._routes, self._pes_of_a_chip = board.noc, Routes(board), board.mesh.pes.count
        self._free: dict[tuple[Link, int], int] = defaultdict(int)
        self._dram_free: dict[int, int] = defaultdict(int)
        self.busy: dict[Link, int] = defaultdict(int)

    def carry(self, start: int, sender: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """One descriptor, which the DMA engine of the sender takes up at `start`."""
        start += self._noc.setup_cycles
        if source >= DRAM:
            return self._from_dram(start, sender, source - DRAM, destinations, flits)
        if list(destinations) == [source]:
            return Carried(start + 2 * flits, {source: start + 2 * flits})
        return self._deliver(start, source, destinations, flits)

    def _from_dram(self, start: int, sender: int, chip: int, destinations: Sequence[int], flits: int) -> Carried:
        """A request to the chip's DRAM, then the data from the router of the chip's first PE."""
        router = chip * self._pes_of_a_chip
        asked = start + sum(map(self._hop, self._routes.path(sender, router))) + self._noc.dram_latency_cycles
        begin = max(asked, self._dram_free[chip])
        self._dram_free[chip] = begin + flits * self._noc.port_bytes_per_cycle // self._noc.dram_bytes_per_cycle
        return self._deliver(begin, router, destinations, flits)

    def _deliver(self, start: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """From a router on: each link of the union of the paths is crossed once."""
        heads: dict[tuple[Link, ...], int] = {(): start}
        arrived: dict[int, int] = {}
        for destination in destinations:
            path = self._routes.path(source, destination)
            for length, link in enumerate(path):
                if path[: length + 1] not in heads:
                    heads[path[: length + 1]] = self._grant(link, heads[path[:length]], flits)
            arrived[destination] = heads[path] + max([flits, *(self._taken(link, flits) for link in path)])
        first = [at - self._hop(path[0]) + self._taken(path[0], flits) for path, at in heads.items() if len(path) == 1]
        return Carried(max([start + flits, *first]), arrived)

    def _grant(self, link: Link, at: int, flits: int) -> int:
        """When the head has crossed a link that it reaches at a cycle."""
        lanes = self._noc.chip_links_per_border if link.border else 1
        lane = min(range(lanes), key=lambda n: (self._free[link, n], n))
        passing = max(at, self._free[link, lane])
        taken = self._taken(link, flits)
        self._free[link, lane] = passing + taken
        self.busy[link] += taken
        return passing + self._hop(link)

    def _hop(self, link: Link) -> int:
        return self._noc.chip_hop_cycles if link.border else self._noc.hop_cycles

    def _taken(self, link: Link, flits: int) -> int:
        if not link.border:
            return flits
        return flits * self._noc.port_bytes_per_cycle // self._noc.chip_link_bytes_per_cycle
