"""The links a packet takes: first along x, then along y, on the grid of chips and then within the chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from npukit.board.board import Board


class Link(NamedTuple):
    """A link from the router of one PE to that of another; between two chips all links of the border are one."""

    source: int
    destination: int
    border: bool


@dataclass
class _Way:
    """A route: its links, and the PEs at both ends of each."""

    links: list[Link] = field(default_factory=list)
    hops: list[tuple[int, int]] = field(default_factory=list)


class Routes:
    """The routes of one board."""

    def __init__(self, board: Board) -> None:
        self._pes, self._chips = board.mesh.pes, board.mesh.chips
        self._dead = {ends for a, b in board.mesh.dead_links for ends in ((a, b), (b, a))}
        self.path = lru_cache(maxsize=None)(self._path)

    def tree(self, source: int, destinations: Sequence[int]) -> list[Link]:
        """The union of the paths, each link after the one that leads to it."""
        return list(dict.fromkeys(link for destination in destinations for link in self.path(source, destination)))

    def reaches(self, source: int, destination: int) -> bool:
        """True if no link on the way is dead."""
        return not self._dead or self._dead.isdisjoint(self._way(source, destination).hops)

    def _path(self, source: int, destination: int) -> tuple[Link, ...]:
        return tuple(self._way(source, destination).links)

    def _way(self, source: int, destination: int) -> _Way:
        way = _Way()
        here, chip_there = source, destination // self._pes.count
        while (here_chip := here // self._pes.count) != chip_there:
            here = self._cross(here, _step_to(here_chip, chip_there, self._chips.columns), way)
        self._within(here, destination % self._pes.count, way)
        return way

    def _cross(self, here: int, step: tuple[int, int], way: _Way) -> int:
        """The links to the border in a direction, and over it to the facing PE."""
        chip, place = divmod(here, self._pes.count)
        row, column = divmod(place, self._pes.columns)
        dx, dy = step
        edge = (self._edge(dx, self._pes.columns, column), self._edge(dy, self._pes.rows, row))
        here = self._within(here, edge[1] * self._pes.columns + edge[0], way)
        facing = (self._pes.columns - 1 - edge[0] if dx else edge[0], self._pes.rows - 1 - edge[1] if dy else edge[1])
        next_chip = chip + dy * self._chips.columns + dx
        there = next_chip * self._pes.count + facing[1] * self._pes.columns + facing[0]
        way.links.append(Link(chip, next_chip, border=True))
        way.hops.append((here, there))
        return there

    @staticmethod
    def _edge(direction: int, size: int, place: int) -> int:
        return {0: place, 1: size - 1, -1: 0}[direction]

    def _within(self, here: int, place: int, way: _Way) -> int:
        chip, at = divmod(here, self._pes.count)
        while at != place:
            dx, dy = _step_to(at, place, self._pes.columns)
            following = at + dy * self._pes.columns + dx
            hop = chip * self._pes.count + at, chip * self._pes.count + following
            way.links.append(Link(*hop, border=False))
            way.hops.append(hop)
            at = following
        return chip * self._pes.count + at


def _step_to(here: int, there: int, columns: int) -> tuple[int, int]:
    """One step on a grid, along x while that is not done."""
    dx, dy = there % columns - here % columns, there // columns - here // columns
    return (_sign(dx), 0) if dx else (0, _sign(dy))


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
