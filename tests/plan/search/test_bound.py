"""Lower bounds of a batch: never above its emitted plan, and high enough to refuse what is far too large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.accel.engines import core_of
from npukit.board.board import Board, Grid, load_board
from npukit.net.net import CORE, Net
from npukit.plan.batch.batch import Batch, frame
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.channel_bands import bands_for
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.predict.kernels import with_kernel_code, with_kernels
from npukit.plan.predict.memory import lacking_of, missing_bytes
from npukit.plan.predict.simulate import ROUNDS, with_predictions
from npukit.plan.search.bound import lacking_on_root, least_cycles, least_lacking
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import on_one_pe
from plan.boards import with_memory
from plan.emit.test_allocate import PES, assignments, small_nets
from plan.engines import engines
from plan.networks import Builder, small_mobilenet

BOARD = load_board("pe-mesh")


def problem_of(net: Net, board: Board = BOARD) -> Problem:
    return Problem(Graph(net), board, {**engines(board), CORE: core_of(board)})


@st.composite
def batches(draw: st.DrawFn, net: Net) -> Batch:
    """A frame, or a batch: one or two groups of five PEs, micro-batches, streamed constants, a prefetching PE."""
    group = draw(assignments(net))
    if draw(st.booleans()):
        return frame(group, patient=draw(st.booleans()))
    other = {op: tuple(replace(tile, pe=tile.pe + PES) for tile in tiles) for op, tiles in group.items()}
    filtered = [op.name for op in net.ops if op.engine == "mac_array" and len(op.inputs) == 3]
    return Batch(
        draw(st.sampled_from([(group,), (group, other)])),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 3)),
        StreamWeights(frozenset(draw(st.sets(st.sampled_from(filtered)))), draw(st.sampled_from([1024, 8192]))),
        prefetchers=draw(st.sampled_from([(), (15,)])),
        low_memory=draw(st.booleans()),
        in_pages=draw(st.booleans()),
    )


def figures(problem: Problem, batch: Batch) -> Iterator[tuple[str, float, float]]:
    """Each lower bound, with the figure of the emitted plan."""
    net, board = problem.net, problem.board
    plan = with_kernel_code(net, board, emit_batch(problem, batch), problem.engines[CORE])
    cycles = with_predictions(net, board, plan, ROUNDS if batch.frames > 1 else 1).predicted
    interval = cycles.interval_cycles + 1  # it is rounded down
    yield "cycles", least_cycles(problem, batch), interval if batch.frames > 1 else cycles.latency_cycles
    free = {pe.pe: pe.memory.free for pe in plan.pes}
    for name, bound in ("memory", least_lacking(problem, batch)), ("root", lacking_on_root(problem, batch)):
        if name == "root" and batch.is_frame:
            continue
        yield f"missing, {name}", bound.missing, missing_bytes(board, plan)
        size = board.memory_for("activations").size
        assert bound.use is not None
        yield f"in use, {name}", size - bound.use.free, size - free[bound.pe]


def test_bounds_of_random_batches_are_not_above_their_plans() -> None:
    """Prints how far below they are: each bound as a part of the plan's figure."""
    parts: dict[str, list[float]] = {}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        net = data.draw(small_nets())
        problem = problem_of(net, with_memory(data.draw(st.sampled_from([4, 10, 24, 128]))))
        problem = with_kernels(problem) if data.draw(st.booleans()) else problem
        for name, bound, figure in figures(problem, data.draw(batches(net))):
            assert bound <= figure, name
            if figure:
                parts.setdefault(name, []).append(bound / figure)

    check()
    for name, found in parts.items():
        found.sort()
        print(f"{name}: {found[0]:.2f} to {found[-1]:.2f}, half above {found[len(found) // 2]:.2f}")


def inverted() -> Net:
    """A wide tensor between two ops that may alternate in bands, and an addition in place."""
    b = Builder("inverted")
    x = b.conv(b.input(1, 56, 56, 8), 16, 1)
    return b.net(b.add(x, b.conv(b.depthwise(b.conv(x, 96, 1), 3), 16, 1)))


def streamed(problem: Problem, pes: tuple[int, ...]) -> Batch:
    """A batch of one group with all possible constants streamed."""
    group = LatencySearch(problem.on(pes), QUICK, fetched=True).best()
    names = frozenset(op.name for op in problem.net.ops if op.engine == "mac_array" and len(op.inputs) == 3)
    return Batch((group,), stream=StreamWeights(names, 2048, 2), prefetchers=(0,))


@pytest.mark.exhaustive
@pytest.mark.parametrize("net", [small_mobilenet(), inverted()], ids=["mobilenet", "inverted"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_bounds_with_many_weight_tiles_and_bands_are_not_above_their_plans(net: Net, size: int) -> None:
    for board in (BOARD, with_memory(24)):
        problem = problem_of(net, board)
        whole = streamed(problem, tuple(range(1, 1 + size)))
        for batch in (whole, replace(whole, bands=bands_for(problem.graph, board, whole.groups[0]))):
            for name, bound, figure in figures(problem, batch):
                assert bound <= figure, name


@pytest.mark.parametrize("room", [None, 0])
def test_bounds_with_each_op_on_a_pe_of_its_own_and_bands_are_not_above_their_plans(room: int | None) -> None:
    """The PE of the bands' second op begins after the first band. Weight tiles of any size may be faster together than
    the whole."""
    problem = problem_of(inverted())
    tiles = on_one_pe(problem.graph, 0).items()
    group = {name: tuple(replace(tile, pe=pe) for tile in own) for pe, (name, own) in enumerate(tiles, 1)}
    ops = frozenset(op.name for op in problem.net.ops if len(op.inputs) == 3)
    for names, count in product((frozenset[str](), ops), (1, 2, 6)):
        stream = StreamWeights(names, 512, 2, room)
        batch = Batch((group,), stream=stream, prefetchers=(0,), bands={"conv2d1": count} if count > 1 else {})
        for name, bound, figure in figures(problem, batch):
            assert bound <= figure, name


def test_orders_are_in_pages_on_the_roots_chip_alone() -> None:
    """PEs of other chips hold their orders in memory, with all descriptors."""
    one, net, free = with_memory(24), small_mobilenet(), list[int]()
    chips = one.mesh.model_copy(update={"chips": Grid(columns=2, rows=1)})
    problem = problem_of(net, one.model_copy(update={"mesh": chips}))
    for first in (1, 17):
        batch = replace(streamed(problem, tuple(range(first, first + 5))), in_pages=True)
        bound = least_lacking(problem, batch)
        assert bound.missing <= missing_bytes(problem.board, emit_batch(problem, batch))
        assert bound.use is not None
        free.append(bound.use.free)
    assert free[0] > free[1]


def test_tensors_that_are_too_large_for_a_pe_lack_memory() -> None:
    b = Builder("wide")
    problem = problem_of(b.net(b.conv(b.conv(b.input(1, 96, 96, 16), 64, 1), 16, 1)))
    assert least_lacking(problem, streamed(problem, (1, 2))).missing


def test_constants_that_ops_share_count_once() -> None:
    """A hundred dense layers with a shared matrix of 4 KB."""
    b = Builder("shared")
    x = b.input(1, 64)
    for _ in range(100):
        x = b.dense(x, 64)
    first, *others = b.ops
    same = [replace(op, inputs=(op.inputs[0], *first.inputs[1:])) for op in others]
    problem = problem_of(b.net(x).with_ops((first, *same))).on([0])
    whole = frame(on_one_pe(problem.graph, 0))
    assert not least_lacking(problem, whole).missing
    assert not lacking_of(BOARD, emit_batch(problem, whole)).missing
