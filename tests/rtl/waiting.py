"""The graph of waiting of the network: which place of packets may wait for which other.

The routes are written here once more from the hardware manual (sections 4 and 4.4), apart from the emulator's.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import NamedTuple

from npukit.board.board import Mesh

DATA, REQUEST, ACKNOWLEDGEMENT = range(3)
OWN, TO_DRAM = "PE", "DRAM"
DIAGONAL, ALONG_X, ALONG_Y, LAST_CHIP = range(4)

Way = tuple[int, int]


class Place(NamedTuple):
    """A buffer. `side`: where packets come from: a direction, `OWN` or `TO_DRAM`. `border`: in front of a chip link."""

    x: int
    y: int
    side: Way | str
    kind: int
    part: int = 0
    border: bool = False


class Step(NamedTuple):
    """A packet's next step, with the part of its way, and True if it goes around the torus."""

    way: Way
    part: int = 0
    around: bool = False


class Network:
    """The routes of a board."""

    def __init__(self, mesh: Mesh) -> None:
        self.torus = mesh.chip_links != "grid"
        self.chips, self.pes = (mesh.chips.columns, mesh.chips.rows), (mesh.pes.columns, mesh.pes.rows)
        self.columns, self.rows = (chips * pes for chips, pes in zip(self.chips, self.pes, strict=True))

    def routers(self) -> Iterator[Way]:
        return product(range(self.columns), range(self.rows))

    def chip_of(self, at: Way) -> Way:
        return at[0] // self.pes[0], at[1] // self.pes[1]

    def has_dram(self, at: Way) -> bool:
        return at[0] % self.pes[0] == 0 and at[1] % self.pes[1] == 0

    def crosses(self, at: Way, way: Way) -> bool:
        """True if the step leaves the chip."""
        return any((at[i] + way[i]) // self.pes[i] != at[i] // self.pes[i] for i in range(2))

    def after(self, at: Way, way: Way) -> Way:
        return (at[0] + way[0]) % self.columns, (at[1] + way[1]) % self.rows

    def on_grid(self, at: Way, end: Way) -> Way:
        """Along x, then along y."""
        dx, dy = end[0] - at[0], end[1] - at[1]
        return (_sign(dx), 0) if dx else (0, _sign(dy))

    def to_chip(self, at: Way, chip: Way) -> Step:
        """On a torus, the step towards another chip."""
        here = self.chip_of(at)
        over, part = self._over(here, chip)
        inside = [at[i] % self.pes[i] for i in range(2)]
        side = [self.pes[i] - 1 if over[i] > 0 else 0 if over[i] < 0 else inside[i] for i in range(2)]
        if side != inside:
            way = (_sign(side[0] - inside[0]), 0) if side[0] != inside[0] else (0, _sign(side[1] - inside[1]))
            return Step(way, part)
        around = any(not 0 <= here[i] + over[i] < self.chips[i] for i in range(2))
        return Step(over, part, around)

    def _over(self, here: Way, chip: Way) -> tuple[Way, int]:
        """The next border of the shortest way, and the part of the way."""
        direct = [chip[i] - here[i] for i in range(2)]
        around = [direct[i] - _sign(direct[i]) * self.chips[i] for i in range(2)]
        choices = [tuple(direct), (direct[0], around[1]), (around[0], direct[1]), tuple(around)]
        x, y = min(choices, key=lambda way: max(map(abs, way)) if way[0] * way[1] > 0 else abs(way[0]) + abs(way[1]))
        if x * y > 0:
            return (_sign(x), _sign(y)), DIAGONAL
        return ((_sign(x), 0), ALONG_X) if x else ((0, _sign(y)), ALONG_Y)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


class Waiting:
    """The graph: for each place, the places for which its packets may wait."""

    def __init__(self, network: Network) -> None:
        self.network, self.edges = network, dict[Place, set[Place]]()
        if network.torus:
            self._torus()
        else:
            self._grid()
        self._serve()

    def _add(self, place: Place, other: Place) -> None:
        self.edges.setdefault(place, set()).add(other)

    def _move(self, at: Way, side: Way | str, before: int, way: Way, part: int) -> None:
        """A packet that came from a side in a part of its way goes on in a direction."""
        network, there = self.network, self.network.after(at, way)
        for kind in (DATA, REQUEST, ACKNOWLEDGEMENT):
            first, last = Place(*at, side, kind, before), Place(*there, (-way[0], -way[1]), kind, part)
            if network.crosses(at, way):
                border = Place(*at, way, kind, part, border=True)
                self._add(first, border)
                self._add(border, last)
            else:
                self._add(first, last)

    def _starts(self, at: Way) -> tuple[str, ...]:
        return (OWN, TO_DRAM) if self.network.has_dram(at) else (OWN,)

    def _grid(self) -> None:
        """Packets along x go on along x, or turn; packets along y go on along y."""
        for at in self.network.routers():
            ways = [way for way in ((1, 0), (-1, 0), (0, 1), (0, -1)) if self._exists(at, way)]
            for way in ways:
                for start in self._starts(at):
                    self._move(at, start, 0, way, 0)
                for came in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    if self._exists(at, (-came[0], -came[1])) and (came == way or (came[1] == 0 and way[0] == 0)):
                        self._move(at, (-came[0], -came[1]), 0, way, 0)

    def _exists(self, at: Way, way: Way) -> bool:
        return 0 <= at[0] + way[0] < self.network.columns and 0 <= at[1] + way[1] < self.network.rows

    def _torus(self) -> None:
        """Follow the ways to each chip, then the ways within it."""
        network = self.network
        for chip in product(range(network.chips[0]), range(network.chips[1])):
            entries = self._to_chip(chip)
            inside = [at for at in network.routers() if network.chip_of(at) == chip]
            for at, end in product(inside, inside):
                if at != end:
                    self._within(at, end, entries)

    def _to_chip(self, chip: Way) -> dict[Way, set[tuple[Way, int]]]:
        """The ways to a chip. Returns its routers behind borders, with sides and parts of arrival."""
        network, entries = self.network, dict[Way, set[tuple[Way, int]]]()
        known = set[tuple[Way, Way | str, int, bool]]()
        todo: list[tuple[Way, Way | str, int, bool]] = []
        for at in network.routers():
            todo += [(at, start, 0, False) for start in self._starts(at) if network.chip_of(at) != chip]
        while todo:
            state = todo.pop()
            if state in known:
                continue
            known.add(state)
            at, side, before, around = state
            step = network.to_chip(at, chip)
            went_around = around and before // 2 == step.part
            part = 2 * step.part + went_around
            self._move(at, side, before, step.way, part)
            there, came = network.after(at, step.way), (-step.way[0], -step.way[1])
            if network.chip_of(there) == chip:
                entries.setdefault(there, set()).add((came, part))
            else:
                todo.append((there, came, part, went_around or step.around))
        return entries

    def _within(self, at: Way, end: Way, entries: dict[Way, set[tuple[Way, int]]]) -> None:
        """The ways within the last chip, from every place where a packet may come."""
        way, part = self.network.on_grid(at, end), 2 * LAST_CHIP
        for start in self._starts(at):
            self._move(at, start, 0, way, part)
        for side, before in entries.get(at, ()):
            self._move(at, side, before, way, part)
        straight = (-way[0], -way[1])
        turns = [straight] if way[1] == 0 else [straight, (1, 0), (-1, 0)]
        for side in turns:
            if self.network.chip_of(self.network.after(at, side)) == self.network.chip_of(at):
                self._move(at, side, part, way, part)

    def _serve(self) -> None:
        """Requests wait for room for the data of the place that serves them, data at a DRAM for room for the
        acknowledgement."""
        for place in {*self.edges, *(other for others in self.edges.values() for other in others)}:
            if place.border or place.kind == ACKNOWLEDGEMENT:
                continue
            at = place.x, place.y
            for start in self._starts(at):
                if place.kind == REQUEST:
                    self._add(place, Place(*at, start, DATA))
                elif start == TO_DRAM:
                    self._add(place, Place(*at, start, ACKNOWLEDGEMENT))


def cycle_of(waiting: Waiting) -> list[Place]:
    """A cycle of the graph, or nothing."""
    try:
        TopologicalSorter(waiting.edges).prepare()
    except CycleError as found:
        return found.args[1]
    return []
