"""Routes of packets: along x, then along y, over the whole board. And the order of PEs for plans.

If the chips form a hexagonal torus, packets go from chip to chip, along diagonals first, on the shortest way around,
and then within the chip. Neighbours in the order of PEs are neighbours on the mesh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import permutations, product
from typing import NamedTuple

from npukit.board.board import Board, Grid, Mesh
from npukit.board.cores import CORES
from npukit.board.noc import DRAM
from npukit.errors import DoesNotFit


class Link(NamedTuple):
    """A link between the routers of two PEs. All links of a border between two chips are one `Link`, between chip
    numbers."""

    source: int
    destination: int
    border: bool


_link = lru_cache(maxsize=None)(Link)
"""The unique object of each link. Routes between all PEs of a board have thousands of links each."""


_Hop = tuple[Link, tuple[int, int]]
"""A link of a route, with the PEs at both ends."""


def to_go(mesh: Mesh, here: int, there: int) -> tuple[int, int]:
    """Columns and rows of chips from chip `here` to chip `there` on the shortest way."""
    columns, rows = mesh.chips.columns, mesh.chips.rows
    dx, dy = there % columns - here % columns, there // columns - here // columns
    if mesh.chip_links == "grid":
        return dx, dy
    ways = product((dx, dx - _sign(dx) * columns), (dy, dy - _sign(dy) * rows))
    return min(ways, key=lambda way: borders_on(mesh, *way))


def borders_on(mesh: Mesh, dx: int, dy: int) -> int:
    """The number of borders crossed over `dx` columns and `dy` rows of chips."""
    diagonal = mesh.chip_links != "grid" and dx * dy > 0
    return max(abs(dx), abs(dy)) if diagonal else abs(dx) + abs(dy)


class Routes:
    """The routes of one board."""

    def __init__(self, board: Board) -> None:
        self._mesh, self._pes, self._chips = board.mesh, board.mesh.pes, board.mesh.chips
        self._dead = {ends for a, b in board.mesh.dead_links for ends in ((a, b), (b, a))}
        self.path = lru_cache(maxsize=None)(self._path)

    def tree(self, source: int, destinations: Sequence[int]) -> list[Link]:
        """The union of the paths, each link after its predecessor."""
        return list(dict.fromkeys(link for destination in destinations for link in self.path(source, destination)))

    def router(self, place: int) -> int:
        """The PE at whose router a place is attached: a chip's DRAM is at the router of the chip's first PE."""
        return (place - DRAM) * self._pes.count if place >= DRAM else place

    def reaches(self, source: int, destination: int) -> bool:
        """True if no link on the route is dead."""
        return not self._dead or self._dead.isdisjoint(ends for _, ends in self._route(source, destination))

    def _path(self, source: int, destination: int) -> tuple[Link, ...]:
        return tuple(link for link, _ in self._route(source, destination))

    def _route(self, source: int, destination: int) -> list[_Hop]:
        route, here, chip_there = list[_Hop](), source, destination // self._pes.count
        while self._mesh.chip_links != "grid" and here // self._pes.count != chip_there:
            dx, dy = to_go(self._mesh, here // self._pes.count, chip_there)
            diagonal = borders_on(self._mesh, dx, dy) < abs(dx) + abs(dy)
            step = (_sign(dx), _sign(dy)) if diagonal else _along_x_first(dx, dy)
            here = self._cross(here, step, route)
        return route + self._along_x_and_y(here, destination)

    def _along_x_and_y(self, here: int, destination: int) -> list[_Hop]:
        """Along x, then along y, on a chip or over a grid of chips."""
        route: list[_Hop] = []
        there = self._position(destination)
        while here != destination:
            x, y = self._position(here)
            dx, dy = _along_x_first(there[0] - x, there[1] - y)
            following = self._at(x + dx, y + dy)
            ends, chips = (here, following), (here // self._pes.count, following // self._pes.count)
            border = chips[0] != chips[1]
            route.append((_link(*(chips if border else ends), border=border), ends))
            here = following
        return route

    def _position(self, pe: int) -> tuple[int, int]:
        """Column and row on the board."""
        (chip, place), columns, chips = divmod(pe, self._pes.count), self._pes.columns, self._chips.columns
        return chip % chips * columns + place % columns, chip // chips * self._pes.rows + place // columns

    def _at(self, x: int, y: int) -> int:
        """The PE at a column and row of the board."""
        (chip_x, place_x), (chip_y, place_y) = divmod(x, self._pes.columns), divmod(y, self._pes.rows)
        chip = chip_y * self._chips.columns + chip_x
        return chip * self._pes.count + place_y * self._pes.columns + place_x

    def _cross(self, here: int, step: tuple[int, int], route: list[_Hop]) -> int:
        """Add the links to the border in direction `step` and over it. Returns the facing PE."""
        chip, place = divmod(here, self._pes.count)
        row, column = divmod(place, self._pes.columns)
        dx, dy = step
        edge = {0: column, 1: self._pes.columns - 1, -1: 0}[dx], {0: row, 1: self._pes.rows - 1, -1: 0}[dy]
        border = chip * self._pes.count + edge[1] * self._pes.columns + edge[0]
        route += self._along_x_and_y(here, border)
        facing = (self._pes.columns - 1 - edge[0] if dx else edge[0], self._pes.rows - 1 - edge[1] if dy else edge[1])
        chip_row, chip_column = divmod(chip, self._chips.columns)
        next_row, next_column = (chip_row + dy) % self._chips.rows, (chip_column + dx) % self._chips.columns
        next_chip = next_row * self._chips.columns + next_column
        there = next_chip * self._pes.count + facing[1] * self._pes.columns + facing[0]
        route.append((_link(chip, next_chip, border=True), (border, there)))
        return there


def _along_x_first(dx: int, dy: int) -> tuple[int, int]:
    return (_sign(dx), 0) if dx else (0, _sign(dy))


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def pes_in_order(board: Board) -> list[int]:
    """The live PEs along a snake through each chip, with the chips along a snake too. The root comes first."""
    chips, pes = board.mesh.chips, board.mesh.pes
    numbers = (chip * pes.count + place for chip in _snake(chips) for place in _snake(pes))
    order = [pe for pe in numbers if pe not in board.mesh.dead_pes]
    if not order:
        raise DoesNotFit(f"every PE of {board.name} is dead", tries=["another board"])
    return _all_reachable(board, [board.root_pe, *(pe for pe in order if pe != board.root_pe)])


def pes_of_chips(board: Board, chips: int) -> int:
    """The number of live PEs on the first `chips` chips of the order."""
    order = [pe // board.mesh.pes.count for pe in pes_in_order(board)]
    first = list(dict.fromkeys(order))[:chips]
    return sum(chip in first for chip in order)


def pes_to_use(board: Board, most: int | None, engines: Collection[str] = ()) -> list[int]:
    """The first `most` PEs of the order. Without a limit, the PEs of the root's chip.

    If PEs differ, PEs with more of the engines come first, then PEs with a faster core, then PEs with more memory.
    Kinds of PEs with different engines, none with more than the other, take turns.
    """
    order, chip = _best_equipped_first(board, engines), board.mesh.pes.count
    return order[:most] if most else [pe for pe in order if pe // chip == board.root_pe // chip]


def _best_equipped_first(board: Board, engines: Collection[str]) -> list[int]:
    root, *others = pes_in_order(board)
    lacking = {pe: frozenset(name for name in engines if pe in board.lacking.get(name, ())) for pe in others}
    kinds = set(lacking.values())
    better_ones = {kind: sum(other < kind for other in kinds) for kind in kinds}
    before: Counter[frozenset[str]] = Counter()
    keys: dict[int, tuple[float, ...]] = {}
    for pe, kind in lacking.items():
        core, memory = CORES[board.cpu_of(pe)], board.memory_bytes_of(pe) or board.memory[0].size
        keys[pe] = better_ones[kind], not core.has_dsp, core.c_cycles, -memory, before[kind]
        before[kind] += 1
    return [root, *sorted(others, key=lambda pe: keys[pe])]


def _all_reachable(board: Board, order: list[int]) -> list[int]:
    """The PEs without PEs behind dead links. Each round removes the PE in most unreachable pairs, never the root."""
    routes = Routes(board)
    pairs = [(a, b) for a, b in permutations(order, 2) if not routes.reaches(a, b)] if board.mesh.dead_links else []
    while pairs:
        hindered = Counter(pe for pair in pairs for pe in pair if pe != order[0])
        worst = max(hindered, key=lambda pe: (hindered[pe], pe))
        order = [pe for pe in order if pe != worst]
        pairs = [pair for pair in pairs if worst not in pair]
    return order


def _snake(grid: Grid) -> Iterator[int]:
    """Row by row, every second row backwards."""
    for row in range(grid.rows):
        columns = range(grid.columns)
        for column in columns if row % 2 == 0 else reversed(columns):
            yield row * grid.columns + column
