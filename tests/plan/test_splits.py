from __future__ import annotations

from npukit.board.board import load_board
from npukit.plan.bands import narrowed
from npukit.plan.graph import Graph
from npukit.plan.splits import WIDE_GRAIN, Splits
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def test_of_tensors_that_go_in_bands_a_tile_holds_one_band() -> None:
    b = Builder("expanded")
    wide = b.conv(b.input(1, 16, 16, 16), 64)
    graph = Graph(b.net(b.conv(b.depthwise(wide), 16)))
    splits = Splits(graph, engines(BOARD), 4, narrowed=narrowed(graph))
    rows, channels = (1, 4, 1, 1), (1, 1, 1, 4)
    assert narrowed(graph) == {wide}
    assert splits.held_bytes(0, rows) == 4 * 16 * 16 + 4 * 16 * WIDE_GRAIN
    assert splits.held_bytes(1, rows) == 6 * 16 * WIDE_GRAIN + 4 * 16 * 64, "what it makes is whole"
    assert splits.held_bytes(0, channels) == 16 * 16 * 16 + 16 * 16 * 16, "cut along channels there are no bands"
