"""Grouped convolutions run on an accelerator with all channels at once, equal to the reference in groups."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.random_ops import Bundle
from npukit.accel.engines import engines_of
from npukit.accel.groups import with_groups_joined
from npukit.board.board import load_board
from npukit.net import ops
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.reference import run_reference

ENGINES = engines_of(load_board("pe-mesh"))


def grouped(groups: int, depth: int, outputs: int) -> Net:
    bundle = Bundle(np.random.default_rng(groups))
    source = bundle.activation((1, 9, 8, groups * depth))
    weights = bundle.filter((groups * outputs, 3, 3, depth), 0, 9 * depth)
    bundle.add(ops.Conv2d((1, 1), (1, 1, 1, 1)), source, *weights)
    return check_net(bundle.net())


@pytest.mark.parametrize(("groups", "depth", "outputs"), [(2, 3, 4), (4, 4, 4), (8, 2, 1)])
def test_all_channels_at_once_make_the_same_sums(groups: int, depth: int, outputs: int) -> None:
    net = grouped(groups, depth, outputs)
    joined = check_net(with_groups_joined(net, ENGINES))
    assert joined.tensor(joined.ops[0].inputs[1]).shape == (groups * outputs, 3, 3, groups * depth)
    assert ENGINES["mac_array"].refusal(net, net.ops[0]) is not None
    assert ENGINES["mac_array"].refusal(joined, joined.ops[0]) is None
    given = np.random.default_rng(1).integers(-128, 128, (1, 9, 8, groups * depth), np.int8)
    assert np.array_equal(run_reference(joined, [given])[0], run_reference(net, [given])[0])


def test_groups_stay_where_the_zeros_would_take_much_memory_or_the_core_computes() -> None:
    large, small = grouped(8, 16, 16), grouped(4, 4, 4)
    assert with_groups_joined(large, ENGINES) is large
    assert with_groups_joined(small, ENGINES, "cpu") is small
