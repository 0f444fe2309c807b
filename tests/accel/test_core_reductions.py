"""Means, and places of the largest along rows, in assembly: exact however they are cut, predicted to the cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.cortex_m import laboratory
from accel.test_core_moves import BOARD, OBSERVED, cut, run
from codegen.random_ops import Bundle
from npukit.accel.cortex_m.reductions import reductions_of
from npukit.accel.cpu import Cpu
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import ArgMax, Mean
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

SHAPES = ((1, 5, 6, 32), (1, 3, 4, 7), (9, 70), (3,), (2, 1027), (1, 4100), (4, 1))


PIXELS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    *(((1, 16, 16, 32), (1, 2)), ((3, 4, 5, 9), (1, 2)), ((2, 300, 5), (1,)), ((2, 3, 4, 6), (0, 1, 2))),
    *(((5, 3, 4, 8), (0, 2)), ((1, 6, 1100, 4), (1,)), ((7, 3), (0,)), ((1, 2, 3, 5000), (1, 2)), ((256, 4), (0,))),
)
"""Shapes, and axes of means over pixels."""


def reductions(seed: int, *, rounds_once: bool = False) -> Net:
    """Both reductions of each shape, on numbers with many ties, and means over pixels."""
    bundle = Bundle(np.random.default_rng(seed), rounds_once=rounds_once)
    for number, shape in enumerate(SHAPES):
        axis = len(shape) - 1
        source = bundle.activation(shape)
        bundle.add(ArgMax(axis), source, dtype=("int32", "int64")[number % 2], plain=True)
        bundle.add(Mean((axis,)), source)
    for shape, axes in PIXELS:
        bundle.add(Mean(axes), bundle.activation(shape))
    return check_net(bundle.net())


@pytest.mark.parametrize("rounds_once", [False, True])
@pytest.mark.parametrize("pes", [1, 4])
def test_reductions_are_exact_and_predicted(pes: int, tmp_path: Path, *, rounds_once: bool) -> None:
    net = reductions(2, rounds_once=rounds_once)
    assert sum(reductions_of(net, op) is not None for op in net.ops) >= 2 * len(SHAPES) + len(PIXELS) - 2
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    for layer in run(net, planned, tmp_path).layers:
        assembled = not planned.kernels[layer.name].startswith("plain C")
        off = abs((layer.cycles or 0) - layer.predicted_cycles)
        assert pes > 1 or not assembled or off <= OBSERVED, layer


def test_other_reductions_are_c() -> None:
    bundle = Bundle(np.random.default_rng(1))
    source = bundle.activation((1, 4, 5, 6))
    bundle.add(ArgMax(2), source, dtype="int32", plain=True)
    bundle.add(Mean((2, 3)), source)
    bundle.add(Mean((3,)), bundle.activation((2, 3, 4, 6)))
    bundle.add(Mean((0, 2, 4)), bundle.activation((2, 3, 2, 3, 2, 6)))
    net = bundle.net()
    assert [reductions_of(net, op) for op in net.ops] == [None] * 4


def test_both_assemblers_make_the_same_bytes() -> None:
    net = reductions(3)
    for op in net.ops:
        made = reductions_of(net, op)
        for code in made.codes(net, op, Box.whole(net.tensor(op.output).shape)) if made else ():
            laboratory.check_code(f"{laboratory.PROLOGUE}{code.assembly}", code.bytes)
