"""Dead channels found and taken out, and nothing else changed: every output as the reference says it was before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers import models
from npukit.frontend.models import load_net_from_model
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops.table import total_macs
from npukit.net.passes.dead_channels import removed_channels, without_dead_channels
from npukit.net.reference import run_reference
from plan.networks import Builder

LOW, HIGH = -(1 << 28), 1 << 28
"""Biases that no sum can move from the end of the range."""


def with_bias(net: Net, op: int, *biases: tuple[int, int]) -> Net:
    """The net with some biases of an op changed."""
    name = net.ops[op].inputs[2]
    bias = net.constants[name].copy()
    for channel, value in biases:
        bias[channel] = value
    return replace(net, constants={**net.constants, name: bias})


def check(net: Net, removed: dict[str, tuple[int, int]]) -> Net:
    pruned = without_dead_channels(net)
    check_net(pruned)
    assert removed_channels(net, pruned) == removed
    random = np.random.default_rng(3)
    for _ in range(3):
        inputs = [random.integers(-128, 128, net.tensor(name).shape).astype(np.int8) for name in net.inputs]
        for got, want in zip(run_reference(pruned, inputs), run_reference(net, inputs), strict=True):
            np.testing.assert_array_equal(got, want)
    return pruned


def test_constants_at_either_end_become_biases() -> None:
    b = Builder("dead")
    x = b.conv(b.depthwise(b.conv(b.input(1, 6, 5, 3), 8)), 4)
    net = with_bias(b.net(b.dense(b.flatten(b.global_pool(x)), 5)), 1, (1, LOW), (6, HIGH))
    smaller = check(net, {"conv2d0": (2, 8), "depthwise_conv2d1": (2, 8)})
    assert smaller.tensor("conv2d0_out").shape == (1, 6, 5, 6)
    assert without_dead_channels(smaller) == smaller


def test_channels_nobody_looks_at_go() -> None:
    b = Builder("unread")
    net = b.net(b.dense(b.flatten(b.global_pool(b.conv(b.input(1, 4, 4, 3), 6))), 5))
    weights = net.constants[net.ops[-1].inputs[1]].copy()
    weights[:, 2] = 0
    net = replace(net, constants={**net.constants, net.ops[-1].inputs[1]: weights})
    check(net, {"conv2d0": (1, 6), "average_pool1": (1, 6)})


def test_under_padding_only_the_zero_point_goes() -> None:
    """The tensors' zero point is 3: a constant of -128 is not what padding brings in."""
    b = Builder("padded")
    net = b.net(b.conv(b.conv(b.input(1, 6, 5, 3), 8), 4, 3))
    check(with_bias(net, 0, (1, LOW)), {})


def test_sums_and_outputs_keep_their_channels() -> None:
    b = Builder("kept")
    x = b.conv(b.input(1, 6, 5, 3), 8)
    y = b.conv(x, 8)
    net = b.net(b.add(x, y), b.conv(x, 4))
    check(with_bias(with_bias(net, 0, (1, LOW)), 1, (2, LOW)), {})


def test_a_bias_that_would_overflow_keeps_everything() -> None:
    b = Builder("full")
    net = b.net(b.conv(b.conv(b.input(1, 6, 5, 3), 8), 4))
    net = with_bias(net, 0, (1, HIGH))
    weights = net.constants["weights1"].copy()
    weights[0, 0, 0, 1] = 127
    net = replace(net, constants={**net.constants, "weights1": weights})
    assert without_dead_channels(net) != net
    full = with_bias(net, 1, (0, (1 << 31) - 1))
    assert without_dead_channels(full) == full


def test_half_of_visual_wake_words_is_dead() -> None:
    net = load_net_from_model(models() / "vww_96_int8.tflite")
    pruned = without_dead_channels(net)
    golden = np.load(models() / "vww_96_int8.npz")
    for case in range(2):
        (scores,) = run_reference(pruned, [golden["in0"][case]])
        np.testing.assert_array_equal(scores.ravel(), golden["out0_tflm"][case])
    assert total_macs(pruned) < 0.5 * total_macs(net)


@pytest.mark.parametrize("name", ["kws_ref_model", "ad01_int8"])
def test_networks_without_dead_channels_stay_as_they_are(name: str) -> None:
    net = load_net_from_model(models() / f"{name}.tflite")
    assert without_dead_channels(net) == net
