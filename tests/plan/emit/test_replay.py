"""Repeated stretches of a long program: found, and shorter than the whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.net.net import Net
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.emit.replay import Stretch, keys_of_steps, rows_of, stretches
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.predict.memory import Lifetime, in_turn, pack
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order
from plan.batch.test_batch_emitter import BOARD, assert_exact
from plan.engines import engines
from plan.networks import Builder


def units_done(found: list[Stretch]) -> list[int]:
    """The units in the order of execution, by number."""
    return [unit for part in found for unit in range(part.first, part.first + part.count)]


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=60), st.data())
def test_stretches_do_the_same_in_no_more_rows(likes: list[int], data: st.DataObject) -> None:
    of_kind = [data.draw(st.integers(1, 3)) for _ in range(5)]
    rows = [of_kind[like] for like in likes]
    found = stretches(likes, rows)
    assert [likes[unit] for unit in units_done(found)] == likes
    assert rows_of(found, rows) <= sum(rows)


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=60))
def test_what_is_done_again_is_written_in_one_piece(likes: list[int]) -> None:
    found = stretches(likes, [2] * len(likes))
    written = [range(part.first, part.first + part.count) for part in found if not part.again]
    for part in found:
        if part.again:
            assert any(part.first in piece and part.first + part.count - 1 in piece for piece in written)


def test_a_second_wave_is_one_row() -> None:
    micro_batch = [*range(40)]
    found = stretches(micro_batch * 3, [1] * 120)
    assert found == [Stretch(0, 40, again=False), Stretch(0, 40, again=True), Stretch(0, 40, again=True)]


def test_bytes_are_had_in_turn_or_not_at_all() -> None:
    first, second = Lifetime(100, 0, 4), Lifetime(100, 10, 14)
    together = in_turn([first, second])
    assert together == Lifetime(100, 0, 14, ((0, 4), (10, 14)))
    assert in_turn([first, Lifetime(100, 4, 6)]) is None
    assert together is not None
    assert pack([together, Lifetime(100, 5, 9)]) == (0, 0)


def three_waves() -> tuple[Net, Batch]:
    b = Builder("waves")
    x = b.conv(b.input(1, 16, 16, 3), 32, 3, 2)
    net = b.net(b.dense(b.flatten(b.mean(b.conv(b.depthwise(x, 3, 1), 64, 1))), 40))
    order = pes_in_order(BOARD)
    assignment = LatencySearch(Problem(Graph(net), BOARD, engines(BOARD), order[1:4]), QUICK, fetched=True).best()
    return net, Batch(
        (assignment,),
        1,
        3,
        StreamWeights(frozenset(op.name for op in net.ops if "conv" in op.name)),
    )


def test_micro_batches_are_alike_to_the_last_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a program stored as a table, the third wave repeats nearly all of the second."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    net, wanted = three_waves()
    plan = emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), wanted)
    assert_exact(net, plan, rounds=2)
    for pe in plan.pes[1:]:
        likes = keys_of_steps(plan, pe)
        assert len(set(likes)) < 0.6 * len(likes)
