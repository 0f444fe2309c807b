"""Lookups in a table for each channel, in assembly: exact however they are cut, predicted, made of arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.cortex_m import laboratory
from accel.test_core_moves import BOARD, OBSERVED, cut, run
from codegen.random_ops import Bundle
from npukit.accel.cortex_m.lookups import lookups_of
from npukit.accel.cpu import Cpu
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import Lookup
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

SHAPES = ((1, 5, 6, 32), (1, 8, 9, 3), (9, 70), (40, 1), (1, 1, 7, 130))


def lookups(seed: int) -> Net:
    bundle = Bundle(np.random.default_rng(seed))
    for shape in SHAPES:
        bundle.add(Lookup(), bundle.activation(shape), bundle.constant(bundle.int8((shape[-1], 256)), None))
    return check_net(bundle.net())


@pytest.mark.parametrize("pes", [1, 4])
def test_lookups_by_channel_are_exact_and_predicted(pes: int, tmp_path: Path) -> None:
    net = lookups(2)
    assert all(lookups_of(net, op) for op in net.ops)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    for layer in run(net, planned, tmp_path).layers:
        assert pes > 1 or abs((layer.cycles or 0) - layer.predicted_cycles) <= OBSERVED, layer


def test_both_assemblers_make_the_same_bytes() -> None:
    net = lookups(3)
    for op in net.ops:
        made = lookups_of(net, op)
        for code in made.codes(net, op, Box.whole(net.tensor(op.output).shape)) if made else ():
            laboratory.check_code(f"{laboratory.PROLOGUE}{code.assembly}", code.bytes)
