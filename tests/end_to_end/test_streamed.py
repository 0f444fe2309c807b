"""Bottlenecks as in ResNet with all weights from DRAM, on groups of PEs in lock step: every tile, exact."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from fuzz.splits import BOARD, Example, emulated, outcome
from npukit.accel.core_kernels import USUAL, core_kernels_alone
from npukit.accel.engines import assign_engines, core_of, plugins_of, with_core
from npukit.board.noc import DRAM
from npukit.codegen.program import gather
from npukit.codegen.table import TABLE
from npukit.measure.bench import bench
from npukit.measure.cases import first_cases
from npukit.measure.golden import golden
from npukit.measure.validate import validate
from npukit.net.box import Box
from npukit.net.net import CORE, Net
from npukit.net.tensor import Quantization
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.text import print_plan
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.planner import plan_network
from npukit.plan.predict.memory import LAYER_BYTES, LAYER_NUMBER_BYTES, missing_bytes
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.op_order import in_overlapping_order
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent
from plan.batch.test_batch_emitter import on_rows
from plan.networks import Builder

WEIGHT_TILE_BYTES = 4096


def bottlenecks(*, softmax: bool = False) -> Net:
    b = Builder("bottlenecks")
    x = b.conv(b.input(1, 7, 7, 32), 128)
    for _ in range(2):
        x = b.add(b.conv(b.conv(b.conv(x, 48), 48, 3), 128), x)
    x = b.conv(x, 32, 3)
    return b.net(b.softmax(x) if softmax else x)


@pytest.mark.exhaustive
def test_weights_streamed_to_two_groups_that_cut_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PEs have four and three rows, so tiles differ. The last layer's slices are of four channels. Programs are tables.

    The softmax's table of exponentials comes from DRAM as well; the core's routine receives the table's address.
    """
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    engines = with_core(plugins_of(BOARD))
    net = in_overlapping_order(assign_engines(bottlenecks(softmax=True), engines), engines)
    engines |= {CORE: core_of(BOARD).with_kernels(partial(core_kernels_alone, net, USUAL))}
    groups = tuple(on_rows(net, pes) for pes in ((0, 1), (2, 3)))
    wanted = Batch(groups, 2, 1, StreamWeights(frozenset(op.name for op in net.ops), WEIGHT_TILE_BYTES))
    plan = emit_batch(Problem(Graph(net), BOARD, engines), wanted)
    assert not missing_bytes(BOARD, plan)
    weight_tiles = [message for message in plan.messages if message.source_pe == DRAM and not message.tensor]
    assert sum(buffer.bytes for buffer in plan.dram if not buffer.tensor) == sum(
        m.source.box.elements for m in weight_tiles
    )
    (table,) = [record for record in gather(net, plan, plan.pes[1], engines).records if record.symbol == TABLE]
    assert any(dict(row)["kind"] == "NET_PATCH" for row in table.rows)
    assert {step.engine for pe in plan.pes for step in pe.computes() if step.streamed} == {CORE, "mac_array"}
    assert parse_plan(print_plan(plan)) == plan
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked == sum(len(pe.tiles) for pe in plan.pes)


@pytest.mark.exhaustive
def test_sums_of_more_bits_than_an_accumulator_has_are_streamed_too(tmp_path: Path) -> None:
    """A driver function computes the sums, so none of their constants is a command of the chain."""
    b, engines = Builder("large sums"), with_core(plugins_of(BOARD))
    net = b.net(b.conv(b.input(1, 2, 2, 512), 16))
    (op,), source = net.ops, net.tensor(net.inputs[0]).quantization
    assert source is not None
    b.constants[op.inputs[2]][:] = 1 << 28
    output = Quantization((source.scale * 0.0025 * (1 << 21),), (-128,))
    net = replace(net, tensors={**net.tensors, op.output: replace(net.tensor(op.output), quantization=output)})
    assert engines["mac_array"].cost(net, op, Box.whole((1, 2, 2, 16))).commands == 0
    wanted = Batch(
        (on_rows(net, (0, 1)),), stream=StreamWeights(frozenset(op.name for op in net.ops), WEIGHT_TILE_BYTES)
    )
    plan = emit_batch(Problem(Graph(net), BOARD, engines), wanted)
    assert all(step.streamed for pe in plan.pes for step in pe.computes())
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches


@pytest.mark.exhaustive
def test_a_frame_whose_largest_tensor_fits_no_pe_is_made_in_bands(tmp_path: Path) -> None:
    """A bottleneck as in MobileNetV2: the tensor between its convolutions takes 144 KB on each of two PEs."""
    engines = with_core(plugins_of(BOARD))
    b = Builder("expanded")
    x = b.depthwise(b.conv(b.input(1, 48, 48, 8), 128), stride=2)
    net = in_overlapping_order(assign_engines(b.net(b.conv(x, 16)), engines), engines)
    plan = plan_network(net, BOARD, engines, max_pes=2)
    assert max(buffer.bytes for pe in plan.pes for buffer in pe.buffers) < 128 << 10
    assert plan.objective == "latency"
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches


@pytest.mark.exhaustive
def test_three_micro_batches_of_which_two_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some rows of the table repeat; the dense layer runs once for all waves: each weight tile comes once, for three
    frames. These rows, behind the waves, do not repeat."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    engines = with_core(plugins_of(BOARD))
    b = Builder("waves")
    x = b.conv(b.conv(b.input(1, 8, 7, 16), 64, 3), 32)
    net = in_overlapping_order(assign_engines(b.net(b.dense(b.flatten(b.mean(x)), 1000)), engines), engines)
    searches = (
        LatencySearch(Problem(Graph(net), BOARD, engines, pes), QUICK, fetched=True) for pes in ((0, 1), (2, 3))
    )
    groups = tuple(search.best() for search in searches)
    wanted = Batch(groups, 1, 3, StreamWeights(frozenset(op.name for op in net.ops), WEIGHT_TILE_BYTES))
    plan = emit_batch(Problem(Graph(net), BOARD, engines), wanted)
    assert not missing_bytes(BOARD, plan)
    (table,) = [record for record in gather(net, plan, plan.pes[1], engines).records if record.symbol == TABLE]
    kinds = [dict(row)["kind"] for row in table.rows]
    waves = len(kinds) - kinds[::-1].index("NET_AGAIN")
    again = [dict(row)["count"] for row in table.rows if dict(row)["kind"] == "NET_AGAIN"]
    assert sum(count for count in again if isinstance(count, int)) > waves / 2
    steps = [step for step in plan.pes[1].computes() if step.op == net.ops[-1].name]
    assert [*plan.pes[1].computes()][-len(steps) :] == steps
    pieces = [[step.frame for step in same] for _, same in groupby(steps, lambda step: step.streamed)]
    assert pieces == [[0, 2, 4]] * len({step.streamed for step in steps})
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked == -(-found.cases // plan.frames) * sum(len(pe.tiles) for pe in plan.pes)


@pytest.mark.exhaustive
def test_weight_tiles_that_fill_what_room_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weight tiles are larger and arrive sooner where tensors leave room, in the same memory. All waves leave a layer
    in the same place."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    engines = with_core(plugins_of(BOARD))
    b = Builder("narrow")
    x = b.conv(b.conv(b.input(1, 12, 12, 16), 512), 16)
    for _ in range(2):
        x = b.conv(x, 96, 3)
    net = in_overlapping_order(assign_engines(b.net(b.dense(b.flatten(b.mean(x)), 64)), engines), engines)
    group = LatencySearch(Problem(Graph(net), BOARD, engines, (1, 2)), QUICK, fetched=True).best()
    small = Batch(
        (group,),
        1,
        3,
        StreamWeights(frozenset(op.name for op in net.ops), WEIGHT_TILE_BYTES, 2),
    )
    plan = emit_batch(
        Problem(Graph(net), BOARD, engines), replace(small, stream=replace(small.stream, room=0, prefetch_distance=2))
    )
    plans = emit_batch(Problem(Graph(net), BOARD, engines), small), plan
    fewer = [sum(1 for _ in each.pes[1].computes()) for each in plans]
    assert fewer[1] < fewer[0]
    assert plans[1].pes[1].memory.activations <= plans[0].pes[1].memory.activations + 2 * WEIGHT_TILE_BYTES
    made = gather(net, plan, plan.pes[1], engines)
    assert 3 * len(set(made.layer_places)) <= len(made.layer_places) + 2 * len(net.ops)
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked == sum(len(pe.tiles) for pe in plan.pes)


@pytest.mark.exhaustive
def test_who_needs_channels_of_three_others_tells_them_at_once_that_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One multicast, with a table row for the list of receivers. The plan reserves the bytes of the records, and little
    more."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    engines = with_core(plugins_of(BOARD))
    b = Builder("channels")
    x = b.conv(b.conv(b.input(1, 6, 6, 16), 64), 64, 3)
    net = in_overlapping_order(assign_engines(b.net(b.conv(x, 64)), engines), engines)
    boxes = {op.name: to_boxes(grid(net.tensor(op.output).shape, (1, 1, 1, 4), (1, 1, 1, 16))) for op in net.ops}
    group = {name: tuple(map(Tile, range(1, 5), cut)) for name, cut in boxes.items()}
    wanted = Batch((group,), 1, 3, StreamWeights(frozenset(boxes), WEIGHT_TILE_BYTES))
    plan = emit_batch(Problem(Graph(net), BOARD, engines), wanted)
    made = gather(net, plan, plan.pes[1], engines)
    (table,) = [record for record in made.records if record.symbol == TABLE]
    kinds = [dict(row)["kind"] for row in table.rows]
    assert kinds.count("NET_SIGNALS") == kinds.count("NET_TO") > 0
    layers = LAYER_BYTES * len(set(made.layer_places)) + LAYER_NUMBER_BYTES * len(made.layers)
    taken = sum(record.bytes for record in made.records) + layers
    reserved = plan.pes[1].orders
    assert reserved
    assert taken <= reserved.bytes <= 1.25 * taken
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked == -(-found.cases // plan.frames) * sum(len(pe.tiles) for pe in plan.pes)


@pytest.mark.exhaustive
def test_little_memory_two_interleaved_frames_and_layouts_that_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers are cut by rows and by channels in turn. Messages arrive late, slices are as large as each layer's free
    memory, and each PE's orders come from DRAM in pages of few steps, as if the PE lacked memory."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    monkeypatch.setattr("npukit.plan.emit.orders.PAGE_BYTES", 0)
    monkeypatch.setattr("npukit.plan.emit.allocate.shortfall", lambda *_: 4 << 10)
    engines = with_core(plugins_of(BOARD))
    net = in_overlapping_order(assign_engines(bottlenecks(), engines), engines)
    cuts = [((1, 4, 1, 1), (1, 1, 1, 1)), ((1, 1, 1, 2), (1, 1, 1, 16))]
    boxes = {op.name: to_boxes(grid(net.tensor(op.output).shape, *cuts[place % 2])) for place, op in enumerate(net.ops)}
    group = {name: tuple(map(Tile, range(1, 5), cut)) for name, cut in boxes.items()}
    everything = frozenset(boxes)
    small = Batch((group,), 2, 1, StreamWeights(everything, 1024, 2))
    low_memory = replace(small, stream=replace(small.stream, room=24 << 10), low_memory=True, in_pages=True)
    plans = [emit_batch(Problem(Graph(net), BOARD, engines), wanted) for wanted in (small, low_memory)]
    pieces = [len(list(plan.pes[1].computes())) for plan in plans]
    assert pieces[0] > pieces[1] > len(plans[1].pes[1].tiles)
    made = gather(net, plans[1], plans[1].pes[1], engines)
    assert len(made.pages) > 10
    assert made.records[-1].symbol == TABLE
    assert len(made.records) < len(gather(net, plans[0], plans[0].pes[1], engines).records), "some are in pages"
    assert parse_plan(print_plan(plans[1])) == plans[1]
    assert sum(page.bytes for page in made.pages) <= plans[1].pes[1].bytes_in_pages
    assert plans[1].pes[1].tile_numbers != tuple(sorted(plans[1].pes[1].tile_numbers)), "lanes take turns"
    cases = first_cases(golden(net).cases, 3)
    with emulated(Example(net, BOARD, plans[1], engines), tmp_path) as target:
        found = validate(target, net, plans[1], cases, Silent())
        measured = bench(target, net, plans[1], cases, BOARD.core.clock_hz, 1, Silent())
    assert found.passed, found.mismatches
    assert found.tiles_checked == 2 * sum(len(pe.tiles) for pe in plans[1].pes), "three cases are two rounds"
    assert simulate(net, BOARD, plans[1]).latency_cycles == pytest.approx(measured.latency_cycles, rel=0.05)


@pytest.mark.exhaustive
def test_a_crowded_root_has_a_table_beside_pes_with_code_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is treated as too small for all reserved code."""
    monkeypatch.setattr("npukit.plan.emit.allocate.shortfall", lambda _, use: max(0, use.code - (12 << 10)))
    engines = with_core(plugins_of(BOARD))
    net = assign_engines(bottlenecks(), engines)
    group = {
        op.name: tuple(map(Tile, range(1, 3), to_boxes(grid(net.tensor(op.output).shape, (1, 2, 1, 1), (1,) * 4))))
        for op in net.ops
    }
    everything = frozenset(op.name for op in net.ops)
    wanted = Batch(
        (group,), stream=StreamWeights(everything, 1024, 2), prefetchers=(0,), low_memory=True, in_pages=True
    )
    plan = emit_batch(Problem(Graph(net), BOARD, engines), wanted)
    assert [(pe.is_table, len(pe.orders.pages)) for pe in plan.pes] == [(True, 0), (False, 0), (False, 0)]
    found = outcome(Example(net, BOARD, plan, engines), tmp_path)
    assert found.passed, found.mismatches
    assert found.tiles_checked == 3 * sum(len(pe.tiles) for pe in plan.pes)
