"""The network-on-chip in time, as the hardware manual describes it (section 4.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from npukit.board.board import Noc
from npukit.plan.routes import Link, Routes


@dataclass(frozen=True)
class Carried:
    """A packet's times: when its tail has left the source, and when it is whole at each destination."""

    left: int
    arrived: dict[int, int]


class Network:
    """Links, each free from some cycle on. Packets are granted links in the order of the calls."""

    def __init__(self, noc: Noc, routes: Routes) -> None:
        self._noc, self._routes = noc, routes
        self._free: dict[tuple[Link, int], int] = defaultdict(int)
        self.busy: dict[Link, int] = defaultdict(int)

    def carry(self, start: int, source: int, destinations: Sequence[int], flits: int) -> Carried:
        """One descriptor, which the DMA engine of the source takes up at `start`."""
        start += self._noc.setup_cycles
        if list(destinations) == [source]:
            return Carried(start + 2 * flits, {source: start + 2 * flits})
        heads: dict[tuple[Link, ...], int] = {(): start}
        arrived: dict[int, int] = {}
        for destination in destinations:
            path = self._routes.path(source, destination)
            for length, link in enumerate(path):
                if path[: length + 1] not in heads:
                    heads[path[: length + 1]] = self._grant(link, heads[path[:length]], flits)
            arrived[destination] = heads[path] + max(self._taken(link, flits) for link in path)
        first = {path[0]: at for path, at in heads.items() if len(path) == 1}
        return Carried(max(at - self._hop(link) + self._taken(link, flits) for link, at in first.items()), arrived)

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
