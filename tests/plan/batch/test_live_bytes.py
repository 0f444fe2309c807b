from __future__ import annotations

import pytest

from fuzz.splits import BOARD
from npukit.accel.engines import assign_engines, plugins_of, with_core
from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.channel_bands import between, in_bands
from npukit.plan.batch.live_bytes import most_held
from npukit.plan.emit.regions import Ends, regions_of
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Compute, PePlan
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.predict.memory import aligned
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph, aliases
from npukit.plan.tensors.problem import Problem
from plan.networks import Builder


def held_while_computing(pe: PePlan, op: str) -> int:
    """Bytes of live tensors at the first step that computes an op."""
    step = next(place for place, step in enumerate(pe.steps) if isinstance(step, Compute) and step.op == op)
    buffers = {(each.offset, each.first): each for each in pe.buffers if each.tensor}
    return sum(aligned(each.bytes) for each in buffers.values() if each.first <= step <= each.last)


@pytest.mark.parametrize("low_memory", [False, True])
def test_no_pe_holds_more_than_foreseen(low_memory: bool) -> None:
    engines = with_core(plugins_of(BOARD))
    b = Builder("wide")
    x = b.conv(b.input(1, 8, 8, 16), 96)
    x = b.add(b.conv(b.conv(x, 32, 3), 96), x)
    graph = Graph(assign_engines(b.net(b.conv(x, 32)), engines))
    cuts = [((1, 2, 2, 1), (1, 1, 1, 1)), ((1, 1, 1, 2), (1, 1, 1, 16))]
    boxes = [to_boxes(grid(graph.shape(op.output), *cuts[place % 2])) for place, op in enumerate(graph.ops)]
    group = {op.name: tuple(map(Tile, range(4), cut)) for op, cut in zip(graph.ops, boxes, strict=True)}
    plan = emit_batch(Problem(graph, BOARD, engines), Batch((group,), low_memory=low_memory))
    regions = regions_of(graph, group, Ends(-1, 0), 0, low_memory=low_memory)
    foreseen = most_held(graph, [regions], aliases(graph, engines), late=low_memory)
    for op, bytes_foreseen in zip(graph.ops, foreseen, strict=True):
        held = [held_while_computing(pe, op.name) for pe in plan.pes if any(c.op == op.name for c in pe.computes())]
        assert max(held) <= bytes_foreseen


def test_of_bands_one_is_there_and_the_next_inputs_from_when_they_are_fetched() -> None:
    engines = with_core(plugins_of(BOARD))
    b = Builder("bands")
    graph = Graph(assign_engines(b.net(b.conv(b.depthwise(b.conv(b.input(1, 8, 8, 16), 64)), 16)), engines))
    group = {op.name: (Tile(1, Box.whole(graph.shape(op.output))),) for op in graph.ops}
    bands = {graph.ops[0].name: 4}
    thin, ends = between(graph, bands), Ends(DRAM, 0)
    regions = regions_of(graph, in_bands(graph, group, bands), ends, 0, thin)
    first, *_, last = most_held(graph, [regions], aliases(graph, engines), late=False, between=thin)
    assert first == 64 * (16 + 64 // 4)
    assert first < most_held(graph, [regions], aliases(graph, engines), late=False)[0]
    again = most_held(graph, [regions], aliases(graph, engines), late=False, between=thin, fetched_from=1)
    assert again[-1] == last + 64 * 16
    early = most_held(graph, [regions], aliases(graph, engines), late=False, between=thin, prefetch_distance=2)
    assert early[-1] >= last


def test_a_search_prefers_what_a_memory_holds() -> None:
    """The wide tensors fit only in four parts. Without the limit `room`, the fastest layouts gather more on a PE."""
    engines = with_core(plugins_of(BOARD))
    b = Builder("wide")
    x = b.conv(b.input(1, 16, 16, 16), 256)
    graph = Graph(assign_engines(b.net(b.conv(b.add(b.conv(b.conv(x, 64), 256), x), 64)), engines))
    room = 60 << 10
    order = range(1, 9)
    search = LatencySearch(Problem(graph, BOARD, engines, order), QUICK, fetched=True, room=room, weight_tile_size=4096)
    regions = dict(regions_of(graph, search.best(), Ends(-1, 0), 0, low_memory=True))
    (output,) = graph.outputs
    regions[output] = {pe: held for pe, held in regions[output].items() if pe}  # held whole by the root in any case
    assert max(most_held(graph, [regions], aliases(graph, engines), late=True)[1:]) <= room
