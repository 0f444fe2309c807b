"""Ranges of channels hold every value of the reference, and are as narrow as possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.net.value_ranges import value_ranges
from plan.networks import Builder


def all_tensors(net: Net) -> Net:
    """The net with every activation as an output."""
    return replace(net, outputs=tuple(op.output for op in net.ops))


def mixed() -> Net:
    b = Builder("mixed")
    x = b.depthwise(b.conv(b.input(1, 6, 5, 3), 8, 3), 8)
    return b.net(b.dense(b.flatten(b.global_pool(b.conv(x, 6))), 5))


def test_every_value_of_random_inputs_lies_in_its_range() -> None:
    net = all_tensors(mixed())
    found, random = value_ranges(net), np.random.default_rng(5)
    assert set(found) == set(net.outputs)
    for _ in range(20):
        (name,) = net.inputs
        inputs = [random.integers(-128, 128, net.tensor(name).shape).astype(np.int8)]
        for tensor, values in zip(net.outputs, run_reference(net, inputs), strict=True):
            assert (values >= found[tensor].low).all(), tensor
            assert (values <= found[tensor].high).all(), tensor


def test_the_ends_of_a_range_are_reached() -> None:
    """The inputs that drive a channel's sum to either limit: for each weight, the matching end of int8."""
    b = Builder("one")
    net = b.net(b.conv(b.input(1, 1, 1, 4), 3))
    (op,), (found,) = net.ops, value_ranges(net).values()
    for channel, weights in enumerate(net.constants[op.inputs[1]].reshape(3, 4)):
        highest = np.where(weights > 0, 127, -128).astype(np.int8).reshape(1, 1, 1, 4)
        lowest = np.where(weights > 0, -128, 127).astype(np.int8).reshape(1, 1, 1, 4)
        assert run_reference(net, [highest])[0][0, 0, 0, channel] == found.high[channel]
        assert run_reference(net, [lowest])[0][0, 0, 0, channel] == found.low[channel]


def test_what_is_known_of_a_constant_channel_is_known_behind_it() -> None:
    b = Builder("constant")
    net = b.net(b.conv(b.conv(b.input(1, 4, 4, 3), 2), 2))
    first = net.ops[0].inputs[1]
    silent = np.zeros_like(net.constants[first])
    found = value_ranges(replace(net, constants={**net.constants, first: silent}))
    for tensor in (op.output for op in net.ops):
        assert (found[tensor].low == found[tensor].high).all()


def test_inputs_and_sums_of_two_tensors_have_no_range() -> None:
    b = Builder("sum")
    x = b.conv(b.input(1, 4, 4, 3), 4)
    net = b.net(b.add(x, b.conv(x, 4)))
    found = value_ranges(net)
    assert not {*net.inputs, net.outputs[0]} & set(found)
    assert len(found) == 2
