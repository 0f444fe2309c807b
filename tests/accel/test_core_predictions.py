"""Predicted cycles of the core's ops against the emulator's, for C from TVM."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.core.core_predictions import SMALL, measured, random_net

import helpers
from npukit.accel.cpu import Cpu
from npukit.net.box import Box
from npukit.net.examples import examples

KINDS = ("add", "dense", "matmul", "mean", "minimum", "multiply", "resize_bilinear", "softmax", "total")
"""Kinds for which both compilers generate nearly the same code."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_ops_in_c_are_predicted(toolchain: str) -> None:
    compiler = helpers.toolchain(toolchain).name
    found = [each for each in measured(random_net(KINDS, 4), compiler, plain=True) if each.cycles >= SMALL]
    assert len(found) >= len(KINDS) / 2
    assert np.mean([abs(each.error) for each in found]) < 0.2, found
    assert max(abs(each.error) for each in found) < 0.4, found


def test_every_kind_of_op_has_a_prediction() -> None:
    for net in examples():
        op = net.ops[-1]
        if op.kind != "reshape":
            assert Cpu().cost(net, op, Box.whole(net.tensor(op.output).shape)).cycles > 0, op.kind
