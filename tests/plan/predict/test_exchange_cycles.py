from __future__ import annotations

from dataclasses import replace
from itertools import compress, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import PePlan, Plan, Send
from npukit.plan.ir.text import awaited
from npukit.plan.predict.exchange_cycles import copies_of_many, exchange_cycles, fetch_cycles, hops_on
from npukit.plan.predict.simulate import simulate
from npukit.plan.tensors.boxes import Boxes, from_boxes, grid, to_boxes
from npukit.plan.tensors.core_cycles import BEGIN_CYCLES, END_CYCLES
from npukit.plan.tensors.dma_copies import copies
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import emitted_frame
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")
SHAPE = (1, 6, 6, 8)
HOPS = hops_on(BOARD, range(16))


@st.composite
def boxes_in_boxes(draw: st.DrawFn) -> tuple[Box, Box, Box]:
    """A box and two enclosing boxes."""
    spans = []
    for size in SHAPE:
        ends = sorted(draw(st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True)))
        outer = [[draw(st.sampled_from((0, ends[0]))), draw(st.sampled_from((ends[1], size)))] for _ in range(2)]
        spans.append([ends, *outer])
    inner, source, target = ([span[which] for span in spans] for which in range(3))
    found = [Box(tuple(a for a, _ in each), tuple(b for _, b in each)) for each in (inner, source, target)]
    return found[0], found[1], found[2]


@settings(max_examples=200, derandomize=True)
@given(boxes_in_boxes())
def test_copies_are_counted_as_they_are_made(boxes: tuple[Box, Box, Box]) -> None:
    made = copies(*boxes, 1)
    piece, source, target = (from_boxes([box]) for box in boxes)
    descriptors, flits = copies_of_many(piece, source, target, 1, 16)
    assert (descriptors[0], flits[0]) == (len(made), sum(copy.flits for copy in made))


LAYOUTS = ((1, 16, 1, 1), (1, 1, 16, 1), (1, 1, 1, 8), (1, 4, 4, 1), (1, 4, 1, 4))


def _taken(first: Boxes, second: Boxes) -> int:
    """Cycles of the messages between two ops with these layouts, until the last PE has its inputs."""
    b = Builder("two")
    graph = Graph(b.net(b.pool(b.pool(b.input(1, 16, 16, 32), 1, 1), 1, 1)))
    assignment = {
        op.name: tuple(Tile(pe, box) for pe, box in enumerate(to_boxes(boxes)))
        for op, boxes in zip(graph.ops, (first, second), strict=True)
    }
    plan = emitted_frame(Problem(graph, BOARD, engines(BOARD)), assignment)
    pes = [_exchanging(plan, pe, graph.ops[0].output) for pe in plan.pes]
    turned = [replace(plan, pes=tuple(pes[first:] + pes[:first])) for first in range(len(pes)) if pes[first].steps]
    return max(simulate(graph.net, BOARD, each).latency_cycles for each in turned) - BEGIN_CYCLES - END_CYCLES


def _exchanging(plan: Plan, pe: PePlan, tensor: str) -> PePlan:
    """The PE's plan reduced to sends of a tensor and waits for the tensor."""
    taken = awaited(plan, pe)
    numbers = [(step.message,) if isinstance(step, Send) else taken.get(place) for place, step in enumerate(pe.steps)]
    kept = [bool(each) and all(plan.messages[number].tensor == tensor for number in each) for each in numbers]
    return replace(pe, steps=tuple(compress(pe.steps, kept)))


@pytest.mark.exhaustive
def test_the_estimate_of_an_exchange_is_about_what_it_takes() -> None:
    assert BOARD.noc is not None
    layouts = [grid((1, 16, 16, 32), split, (1, 1, 1, 4)) for split in LAYOUTS]
    pairs = list(permutations(layouts, 2))
    estimated = [exchange_cycles(BOARD.noc, HOPS, *pair, 1) for pair in pairs]
    taken = [_taken(*pair) for pair in pairs]
    assert all(0.8 < time / estimate < 1.8 for time, estimate in zip(taken, estimated, strict=True))
    assert np.corrcoef(np.argsort(np.argsort(taken)), np.argsort(np.argsort(estimated)))[0, 1] > 0.9


def test_dram_gives_parts_one_after_the_other_and_rows_by_whole_flits() -> None:
    assert BOARD.noc
    shape, whole_rows, narrow = (1, 16, 16, 16), (1, 4, 1, 1), (1, 1, 4, 1)
    rows, columns = (
        fetch_cycles(BOARD.noc, shape, grid(shape, parts, (1, 1, 1, 1)), 1) for parts in (whole_rows, narrow)
    )
    bytes_ = 16 * 16 * 16 // BOARD.noc.dram_bytes_per_cycle
    assert rows == columns
    assert bytes_ < rows < bytes_ + 200
    thin = fetch_cycles(BOARD.noc, (1, 16, 16, 3), grid((1, 16, 16, 3), (1, 1, 16, 1), (1, 1, 1, 1)), 1)
    assert thin > 2 * fetch_cycles(BOARD.noc, (1, 16, 16, 3), grid((1, 16, 16, 3), (1, 16, 1, 1), (1, 1, 1, 1)), 1)
