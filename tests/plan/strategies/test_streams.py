"""Streamed weights: the fewest ops, found in few steps; what cannot fit is not emitted."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from itertools import product

import pytest

from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import MemoryUse
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Outcome, Proposals
from npukit.plan.strategies.streams import fewest_streamed, streams
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import on_one_pe
from plan.engines import engines
from plan.networks import Builder
from plan.planning import searched

BOARD = load_board("pe-mesh")
LONG = 40


def problem(net: Net) -> Problem:
    return Problem(Graph(net), BOARD, engines(BOARD), (0,))


def long_net() -> Net:
    b = Builder("long")
    flow = b.input(1, 1, 1, 64)
    for _ in range(LONG):
        flow = b.conv(flow, 64, 1)
    return b.net(flow)


def noted(
    proposals: Generator[Candidate, Outcome, StreamWeights | None], found: list[StreamWeights | None]
) -> Proposals:
    """The proposals, with their result added to `found`."""
    found.append((yield from proposals))


@pytest.mark.parametrize("least", [0, 3])
def test_the_fewest_that_fit_are_found_near_a_guess_in_few_steps(least: int) -> None:
    given = problem(long_net())
    batch = Batch((on_one_pe(given.graph, 0),))
    for right, guess in product(range(3, LONG + 5, 4), range(3, LONG, 3)):
        asked, found, outcome = list[int](), list[StreamWeights | None](), None
        proposals = noted(fewest_streamed(given, batch, guess, least=least), found)
        with suppress(StopIteration):
            while True:
                asked.append(len(proposals.send(outcome).batch.stream.ops))  # pyright: ignore[reportArgumentType]
                outcome = Lacks(1, 0, MemoryUse(0, 0, 0, 0, 0)) if asked[-1] < right else Fits(Plan("", "", "", ()))
        assert (len(found[0].ops) if found[0] else LONG + 1) == min(right, LONG + 1)
        assert len(asked) == len(set(asked)) <= 3 + 2 * abs(right - guess).bit_length()


def test_a_tensor_larger_than_a_pe_is_refused_without_an_emission() -> None:
    b = Builder("wide")
    given = problem(b.net(b.conv(b.input(1, 112, 112, 16), 16, 1)))
    search = searched(given, streams)
    assert search.nearest
    assert given.work.done == 0


def test_a_long_net_is_emitted_seldom() -> None:
    """Two places of the input times six sizes of weight tiles: each finds separately how many ops to stream."""
    search = searched(problem(long_net()), streams)
    assert search.best
    assert len(search.log) <= 35
