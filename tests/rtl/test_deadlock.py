"""The graph of waiting of the network (`waiting.py`): the kit's routes, and a bad turn shows."""

from __future__ import annotations

from random import Random

import pytest

from npukit.board.board import Board, Grid, load_board
from npukit.plan.tensors.routes import Routes
from rtl.waiting import DATA, Network, Place, Waiting, cycle_of


def board_of(links: str, chips: tuple[int, int], pes: tuple[int, int] = (2, 2)) -> Board:
    board = load_board("pe-mesh")
    grids = {name: Grid(columns=x, rows=y) for name, (x, y) in (("chips", chips), ("pes", pes))}
    return board.model_copy(update={"mesh": board.mesh.model_copy(update={"chip_links": links, **grids})})


@pytest.mark.parametrize("links", ["grid", "hexagonal torus"])
def test_nothing_waits_for_itself(links: str) -> None:
    assert not cycle_of(Waiting(Network(board_of(links, (4, 3)).mesh)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["pe-mesh", "pe-mesh-152", "pe-mesh-7296", "spinnaker2"])
def test_nothing_waits_for_itself_on_a_board(name: str) -> None:
    """The 48 chips of `spinnaker2-48` take two minutes: `make deadlock`."""
    assert not cycle_of(Waiting(Network(load_board(name).mesh)))


def test_a_turn_from_y_to_x_may_end_in_a_cycle() -> None:
    waiting = Waiting(Network(board_of("grid", (1, 1), (3, 3)).mesh))
    for x in range(3):
        for y in range(3):
            for way in ((1, 0), (-1, 0)):
                if 0 <= x + way[0] < 3:
                    there = Place(x + way[0], y, (-way[0], 0), DATA)
                    for side in ((0, 1), (0, -1)):
                        waiting.edges.setdefault(Place(x, y, side, DATA), set()).add(there)
    assert cycle_of(waiting)


def test_a_torus_without_parts_of_ways_has_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    move = Waiting._move
    monkeypatch.setattr(Waiting, "_move", lambda self, at, side, before, way, part: move(self, at, side, 0, way, 0))
    assert cycle_of(Waiting(Network(board_of("hexagonal torus", (4, 3)).mesh)))


@pytest.mark.parametrize("links", ["grid", "hexagonal torus"])
def test_the_routes_are_the_kit_s(links: str) -> None:
    board = board_of(links, (4, 3), (3, 2))
    network, routes, random = Network(board.mesh), Routes(board), Random(4)
    pes = board.mesh.pes
    numbers = {}
    for number in range(board.pe_count):
        (chip, place), columns = divmod(number, pes.count), board.mesh.chips.columns
        x, y = chip % columns * pes.columns + place % pes.columns, chip // columns * pes.rows + place // pes.columns
        numbers[x, y] = number
    for _ in range(300):
        at, end = random.choices(list(numbers), k=2)
        way = [numbers[at]]
        while at != end:
            inside = network.chip_of(at) == network.chip_of(end) or links == "grid"
            step = network.on_grid(at, end) if inside else network.to_chip(at, network.chip_of(end)).way
            at = network.after(at, step)
            way.append(numbers[at])
        ends = [ends for _, ends in routes._route(way[0], way[-1])]
        assert [first for first, _ in ends] + way[-1:] == way
