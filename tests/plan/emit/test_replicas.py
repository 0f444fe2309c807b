"""Groups with equal work: one is emitted and copied, and the plan equals a plan with each group emitted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from npukit.board.board import load_board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.emit.replicas import NO_REPLICAS, replicas_of
from npukit.plan.ir.plan import Message, PePlan, Plan, Send
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact, on_groups, on_rows
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")
ROOT = 0


def rows_net() -> Net:
    b = Builder("rows")
    return b.net(b.mean(b.conv(b.conv(b.input(1, 7, 7, 16), 48, 3), 32, 3)))


def planned(net: Net, interleaved: int = 1, micro_batches: int = 2, *, low_memory: bool = False) -> Plan:
    """Three groups of two PEs. The root fetches the constants."""
    groups, streamed = on_groups(on_rows(net, (0, 1)), 3, first=1), frozenset(op.name for op in net.ops[:2])
    wanted = Batch(groups, interleaved, micro_batches, StreamWeights(streamed, 1024), prefetchers=(ROOT,))
    wanted = replace(wanted, low_memory=low_memory, in_pages=low_memory)
    return emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), wanted)


def emitted_apart(net: Net, monkeypatch: pytest.MonkeyPatch, interleaved: int, micro_batches: int) -> Plan:
    with monkeypatch.context() as patched:
        patched.setattr("npukit.plan.batch.schedule.replicas_of", lambda *_: NO_REPLICAS)
        return planned(net, interleaved, micro_batches)


def what_it_does(plan: Plan, pe: PePlan) -> Counter[object]:
    """The PE's computations and messages, without signals: a signal may go to several groups or to a single group."""
    computed = [replace(step, submitted=False) for step in pe.computes()]
    sent = [plan.messages[step.message] for step in pe.steps if isinstance(step, Send)]
    return Counter([*computed, *(brought(message) for message in sent if message.tensor or message.source_pe == DRAM)])


def named(pe: PePlan) -> list[tuple[str, int]]:
    return sorted((buffer.name, buffer.bytes) for buffer in pe.buffers if buffer.bytes)


def brought(message: Message) -> object:
    landings = frozenset((landing.pe, landing.view) for landing in message.landings)
    return message.tensor, message.source_pe, message.source, landings


@pytest.mark.parametrize(("interleaved", "micro_batches"), [(1, 1), (1, 3), (2, 2)])
def test_a_batch_is_that_of_its_groups_one_by_one(
    interleaved: int, micro_batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = rows_net()
    together, apart = (
        planned(net, interleaved, micro_batches),
        emitted_apart(net, monkeypatch, interleaved, micro_batches),
    )
    assert together.alike == ((1, 2), (6, 7), (11, 12))
    assert [pe.pe for pe in together.pes] == [pe.pe for pe in apart.pes]
    assert len(together.messages) <= len(apart.messages)
    for one, other in zip(together.pes, apart.pes, strict=True):
        assert what_it_does(together, one) == what_it_does(apart, other)
        assert named(one) == named(other)
    cycles = [simulate(net, BOARD, plan).latency_cycles for plan in (together, apart)]
    assert cycles[0] == pytest.approx(cycles[1], rel=0.01)


@pytest.mark.exhaustive
def test_what_groups_that_are_alike_compute_is_exact() -> None:
    net = rows_net()
    assert_exact(net, planned(net, interleaved=2, micro_batches=2))


@pytest.mark.exhaustive
def test_where_their_own_pes_must_ask_for_constants_groups_are_not_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.plan.batch.schedule.most_listed", lambda board: 128)
    net = rows_net()
    plan = planned(net)
    assert not plan.alike
    assert_exact(net, plan)


def test_groups_that_differ_are_not_alike() -> None:
    net = rows_net()
    first, second = on_groups(on_rows(net, (0, 1)), 2, first=1)
    assert replicas_of((first, second), (ROOT,), ROOT, {}).count == 2
    assert replicas_of((first, first), (ROOT,), ROOT, {}) == NO_REPLICAS
    cpus = {tile.pe: "cortex-m3" for tiles in second.values() for tile in tiles}
    assert replicas_of((first, second), (ROOT,), ROOT, cpus) == NO_REPLICAS
    assert replicas_of((first, second), (ROOT, 1), ROOT, {}) == NO_REPLICAS
    other = {op: tiles[::-1] if op == net.ops[0].name else tiles for op, tiles in second.items()}
    assert replicas_of((first, other), (ROOT,), ROOT, {}) == NO_REPLICAS


@pytest.mark.parametrize(("interleaved", "micro_batches"), [(1, 1), (2, 3)])
def test_of_the_groups_beside_the_roots_one_is_emitted(
    interleaved: int, micro_batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = rows_net()
    wanted = Batch(on_groups(on_rows(net, (1, 0)), 3), interleaved, micro_batches)
    problem = Problem(Graph(net), BOARD, engines(BOARD))
    together = emit_batch(problem, wanted)
    assert together.alike == ((6, 5), (11, 10))
    assert_exact(net, together)
    monkeypatch.setattr("npukit.plan.batch.schedule.replicas_of", lambda *_: NO_REPLICAS)
    apart = emit_batch(problem, wanted)
    assert [pe.pe for pe in together.pes] == [pe.pe for pe in apart.pes]
    for one, other in zip(together.pes, apart.pes, strict=True):
        assert what_it_does(together, one) == what_it_does(apart, other)
        assert named(one) == named(other)
    cycles = [simulate(net, BOARD, plan).latency_cycles for plan in (together, apart)]
    assert cycles[0] == pytest.approx(cycles[1], rel=0.01)
