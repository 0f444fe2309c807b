"""Ops by channel become depthwise convolutions of one pixel with the same results for every value."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from codegen.random_ops import Bundle
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import DepthwiseConv2d, Multiply, Prelu
from npukit.net.passes.by_channel import with_filters_by_channel
from npukit.net.reference import run_reference

SHAPES = ((1, 16, 16, 6), (256, 6), (1, 4, 64, 6))


def cycles(net: Net, op: Op) -> float:
    return 1 if isinstance(op.attributes, DepthwiseConv2d) else inf


@pytest.mark.parametrize("kind", [Multiply, Prelu])
def test_every_value_of_each_channel_is_the_same(kind: type[Multiply | Prelu]) -> None:
    rewritten = 0
    for seed in range(30):
        bundle = Bundle(np.random.default_rng(seed))
        held = bundle.quantization()
        slopes = bundle.constant(np.clip(bundle.int8((6,)), held.zero_point - 127, held.zero_point + 127), held)
        clamped = Multiply(bundle.clamp()) if kind is Multiply else Prelu()
        bundle.add(clamped, bundle.activation(SHAPES[seed % len(SHAPES)]), slopes)
        net = check_net(bundle.net())
        made = check_net(with_filters_by_channel(net, cycles))
        rewritten += "depthwise_conv2d" in {op.kind for op in made.ops}
        every = np.repeat(np.arange(-128, 128), 6).astype(np.int8).reshape(net.tensor(net.inputs[0]).shape)
        np.testing.assert_array_equal(run_reference(made, [every]), run_reference(net, [every]))
    assert rewritten == 30


def test_a_factor_beyond_int8_without_an_equal_weight_stays_a_product() -> None:
    kinds = set[str]()
    for seed in range(30):
        bundle = Bundle(np.random.default_rng(seed))
        constant = bundle.constant(np.full(4, 127, np.int8), bundle.quantization())
        bundle.add(Multiply(), bundle.activation((1, 2, 128, 4)), constant)
        net = with_filters_by_channel(bundle.net(), cycles)
        kinds |= {op.kind for op in net.ops}
        every = np.repeat(np.arange(-128, 128), 4).astype(np.int8).reshape(1, 2, 128, 4)
        np.testing.assert_array_equal(run_reference(net, [every]), run_reference(bundle.net(), [every]))
    assert kinds == {"multiply", "depthwise_conv2d"}
