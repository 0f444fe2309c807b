"""Lower bound of a round's memory: a fitting round is never refused, a round far too large always."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npukit.board.board import Board, Grid, load_board
from npukit.net.net import Net
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.channel_bands import bands_for
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.bound import least_lacking
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.boards import with_memory
from plan.engines import engines
from plan.networks import Builder, small_mobilenet

BOARD = load_board("pe-mesh")
PES = (1, 2, 3, 4, 5)


def inverted() -> Net:
    """A wide tensor between two ops that may alternate in bands, and an addition in place."""
    b = Builder("inverted")
    x = b.conv(b.input(1, 56, 56, 8), 16, 1)
    return b.net(b.add(x, b.conv(b.depthwise(b.conv(x, 96, 1), 3), 16, 1)))


def rounds(net: Net, size: int, board: Board = BOARD, pes: tuple[int, ...] = PES) -> list[Batch]:
    """Rounds with and without bands, of one group with all possible constants streamed."""
    graph = Graph(net)
    group = LatencySearch(Problem(graph, board, engines(board), pes[:size]), QUICK, fetched=True).best()
    streamed = frozenset(op.name for op in net.ops if op.engine == "mac_array" and len(op.inputs) == 3)
    whole = Batch((group,), stream=StreamWeights(streamed, 2048, 2), prefetchers=(0,))
    return [whole, replace(whole, bands=bands_for(graph, BOARD, group))]


@pytest.mark.exhaustive
@pytest.mark.parametrize("net", [small_mobilenet(), inverted()], ids=["mobilenet", "inverted"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_what_fits_may_fit(net: Net, size: int) -> None:
    for wanted in rounds(net, size):
        for board in (BOARD, with_memory(24)):
            problem = Problem(Graph(net), board, engines(board))
            missing = missing_bytes(board, emit_batch(problem, wanted))
            assert least_lacking(problem, wanted).missing <= missing
            assert not least_lacking(problem, wanted).missing or missing


def test_orders_are_in_pages_on_the_roots_chip_alone() -> None:
    """PEs of other chips hold their orders in memory, with all descriptors."""
    one, net, free = with_memory(24), small_mobilenet(), list[int]()
    chips = one.mesh.model_copy(update={"chips": Grid(columns=2, rows=1)})
    board = one.model_copy(update={"mesh": chips})
    for pes in (PES, tuple(pe + 16 for pe in PES)):
        (wanted, *_) = (replace(each, in_pages=True) for each in rounds(net, 5, board, pes))
        problem = Problem(Graph(net), board, engines(board))
        bound = least_lacking(problem, wanted)
        assert bound.missing <= missing_bytes(board, emit_batch(problem, wanted))
        free.append(bound.use.free)
    assert free[0] > free[1] + 512


def test_tensors_that_are_too_large_for_a_pe_do_not_fit() -> None:
    b = Builder("wide")
    net = b.net(b.conv(b.conv(b.input(1, 96, 96, 16), 64, 1), 16, 1))
    (whole, *_) = rounds(net, 2)
    assert missing_bytes(BOARD, emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), whole))
    assert least_lacking(Problem(Graph(net), BOARD, engines(BOARD)), whole).missing
