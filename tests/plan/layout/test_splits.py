from __future__ import annotations

from npukit.board.board import load_board
from npukit.plan.batch.channel_bands import narrowed
from npukit.plan.layout.splits import Splits
from npukit.plan.tensors.boxes import WIDE_GRAIN, to_boxes, volumes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def problem_of(graph: Graph) -> Problem:
    return Problem(graph, BOARD, engines(BOARD))


def test_of_tensors_that_go_in_bands_a_tile_holds_one_band() -> None:
    b = Builder("expanded")
    wide = b.conv(b.input(1, 16, 16, 16), 64)
    graph = Graph(b.net(b.conv(b.depthwise(wide), 16)))
    splits = Splits(problem_of(graph), 4)
    rows, channels = (1, 4, 1, 1), (1, 1, 1, 4)
    assert narrowed(graph) == {wide}
    assert splits.held_bytes(0, rows) == 4 * 16 * 16 + 4 * 16 * WIDE_GRAIN
    assert splits.held_bytes(1, rows) == 6 * 16 * WIDE_GRAIN + 4 * 16 * 64, "what it makes is whole"
    assert splits.held_bytes(0, channels) == 16 * 16 * 16 + 16 * 16 * 16, "cut along channels there are no bands"


def test_what_a_tile_holds_and_costs_is_that_of_the_worst_of_its_tiles() -> None:
    b = Builder("cut")
    x = b.conv(b.input(1, 19, 13, 3), 40, 3, 2)
    graph = Graph(b.net(b.dense(b.flatten(b.mean(b.conv(x, 40, 3))), 30)))
    splits, known = Splits(problem_of(graph), 6), engines(BOARD)
    for index, op in enumerate(graph.ops):
        for split in splits.candidates(4)[index]:
            tiles = splits.tiles(op.output, split)
            costs = [known[op.engine].cost(graph.net, op, box) for box in to_boxes(tiles)]
            assert splits.cost(index, split).cycles == max(cost.cycles for cost in costs)
            assert splits.cost(index, split).constant_bytes == max(cost.constant_bytes for cost in costs)
            operands = ((op.output, tiles), *splits.needs(index, split))
            most = sum(volumes(boxes).max() * splits.element_bytes(name, split) for name, boxes in operands)
            beside = max(cost.scratch_bytes for cost in costs) + splits.weight_tile_bytes(index, split)
            assert splits.held_bytes(index, split) == int(most) + beside


def test_ops_of_one_form_share_what_is_known_of_them() -> None:
    b = Builder("blocks")
    x = b.conv(b.input(1, 8, 8, 16), 32, 3)
    graph = Graph(b.net(b.conv(b.conv(b.conv(x, 32, 3), 32, 3), 32, 1)))
    splits = Splits(problem_of(graph), 4)
    assert splits.cost(1, (1, 2, 2, 1)) is splits.cost(2, (1, 2, 2, 1))
    assert splits.candidates(4)[1] is splits.candidates(4)[2]
    assert splits.cost(3, (1, 2, 2, 1)) != splits.cost(2, (1, 2, 2, 1))
    assert splits.on(2).candidates(4) != splits.candidates(4)


def test_pes_share_the_tokens_of_a_dense_layer_as_its_channels() -> None:
    b = Builder("tokens")
    graph = Graph(b.net(b.dense(b.input(1, 64, 96), 96)))
    splits = Splits(problem_of(graph), 16)
    best = splits.candidates(4)[0][0]
    assert best[1] > 1
    assert splits.cost(0, best).cycles < splits.cost(0, (1, 1, 16)).cycles
