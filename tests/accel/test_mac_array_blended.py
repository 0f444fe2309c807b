"""Bilinear resizes on the MAC array: exact on the emulator however they are cut, predicted to the cycle, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.test_core_moves import BOARD, cut, run
from accel.test_mac_array_additions import ARRAY
from codegen.random_ops import Bundle
from npukit.accel.cpu import Cpu
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import ResizeBilinear
from npukit.net.places import linear
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem


def resizes(*sides: tuple[int, int, str], shape: tuple[int, ...] = (1, 6, 8, 5)) -> Net:
    """Images of `shape`, resized to each size along both axes."""
    bundle = Bundle(np.random.default_rng(1))
    for height, width, mode in sides:
        places = (linear(size, made, mode) for size, made in zip(shape[1:3], (height, width), strict=True))
        source = bundle.activation(shape)
        bundle.add(ResizeBilinear(*places), source, quantization=bundle.tensors[source].quantization)
    net = check_net(bundle.net())
    return net.with_ops(tuple(op.placed("mac_array") for op in net.ops))


TAKEN = (
    (12, 16, "half_pixel"),
    (12, 16, "asymmetric"),
    (24, 32, "half_pixel"),
    (3, 4, "half_pixel"),
    (6, 4, "asymmetric"),
    (11, 8, "align_corners"),
    (6, 1, "half_pixel"),
)


@pytest.mark.parametrize("pes", [1, 4])
def test_resizes_are_exact_and_predicted(pes: int, tmp_path: Path) -> None:
    net = resizes(*TAKEN)
    assert [ARRAY.refusal(net, op) for op in net.ops] == [None] * len(TAKEN)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu(), "mac_array": ARRAY}, max_pes=pes), cut(net, pes))
    found = run(net, planned, tmp_path)
    assert found.latency_cycles == pytest.approx(found.predicted_latency_cycles, rel=0.05)


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ((48, 64, "half_pixel"), "it blends in 256 ways, the MAC array takes 64"),
        ((6, 12, "half_pixel"), "its weights are up to 1710"),
        ((19, 23, "align_corners"), "it blends in 437 ways, the MAC array takes 64"),
    ],
)
def test_other_resizes_stay_on_the_core(side: tuple[int, int, str], reason: str) -> None:
    net = resizes(side)
    assert ARRAY.refusal(net, net.ops[0]) == reason
