"""Transposed convolutions rewritten as convolutions of all phases, equal to the reference of the originals."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.random_ops import Bundle
from npukit.accel.engines import engines_of
from npukit.accel.phases import with_phases
from npukit.board.board import load_board
from npukit.net import ops
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.reference import run_reference

ENGINES = engines_of(load_board("pe-mesh"))


def transposed(kernel: ops.Pair, strides: ops.Pair, padding: ops.Padding, images: int = 1) -> Net:
    bundle = Bundle(np.random.default_rng(sum(kernel)))
    source = bundle.activation((images, 4, 5, 6))
    weights = bundle.filter((3, *kernel, 6), 0, 6 * kernel[0] * kernel[1])
    bundle.add(ops.TransposeConv2d(strides, padding), source, *weights)
    return check_net(bundle.net())


@pytest.mark.parametrize(
    ("kernel", "strides", "padding"),
    [
        ((2, 2), (2, 2), (0, 0, 0, 0)),
        ((3, 3), (2, 2), (0, 0, 1, 1)),
        ((4, 4), (2, 2), (1, 1, 1, 1)),
        ((5, 3), (3, 1), (1, 0, 1, 2)),
        ((3, 5), (1, 2), (2, 1, 0, 2)),
        ((3, 3), (1, 1), (1, 1, 1, 1)),
        ((2, 1), (3, 2), (0, 0, -1, -1)),
    ],
)
@pytest.mark.parametrize("images", [1, 2])
def test_phases_make_the_same_numbers(kernel: ops.Pair, strides: ops.Pair, padding: ops.Padding, images: int) -> None:
    net = transposed(kernel, strides, padding, images)
    made = check_net(with_phases(net, ENGINES))
    assert {op.kind for op in made.ops} <= {"conv2d", "reshape", "transpose", "slice"}
    given = np.random.default_rng(1).integers(-128, 128, (images, 4, 5, 6), np.int8)
    assert np.array_equal(run_reference(made, [given])[0], run_reference(net, [given])[0])


def test_a_layer_cut_by_more_than_a_convolution_can_be_padded_stays() -> None:
    net = transposed((2, 2), (1, 1), (2, 0, 0, 0))
    assert with_phases(net, ENGINES) is net
