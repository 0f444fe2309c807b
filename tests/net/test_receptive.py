from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.random_ops import MAKERS, Bundle, random_inputs
from npukit.net.box import Box
from npukit.net.net import Net, Op, fuse
from npukit.net.receptive import cuttable_axes, input_rules, needs, needs_of_many
from npukit.net.reference.interpreter import evaluate
from oracles.tiles import tile_values
from plan.networks import Builder


def every_kind() -> Net:
    b = Builder("kinds", seed=7)
    x = b.conv(b.input(1, 13, 11, 5), 12, (3, 2), 2)
    x = b.depthwise(x, 3, 1)
    x = b.add(x, b.conv(x, 12, 3))
    x = b.pool(b.depthwise(x, 5, 2), 3, 2, maximum=True)
    x = b.pool(b.conv(x, 8), 2, 1)
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), 7)))


NET = every_kind()
CUT = [op for op in NET.ops if cuttable_axes(NET, op)]


def random_box(data: st.DataObject, net: Net, op: Op) -> Box:
    shape = net.tensor(op.output).shape
    starts, stops = [0] * len(shape), list(shape)
    for axis in cuttable_axes(net, op):
        starts[axis] = data.draw(st.integers(0, shape[axis] - 1))
        stops[axis] = data.draw(st.integers(starts[axis] + 1, shape[axis]))
    return Box(tuple(starts), tuple(stops))


def values() -> dict[str, np.ndarray]:
    given_input = np.random.default_rng(1).integers(-128, 128, NET.tensor(NET.inputs[0]).shape, np.int8)
    return evaluate(NET, [given_input])


VALUES = values()


def part(name: str, box: Box) -> np.ndarray:
    return VALUES[name][tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))]


@pytest.mark.parametrize("op", CUT, ids=lambda op: op.name)
@settings(max_examples=25)
@given(data=st.data())
def test_a_tile_computes_its_part_of_the_output_from_what_it_needs(op: Op, data: st.DataObject) -> None:
    box = random_box(data, NET, op)
    operands = [part(name, need) for name, need in zip(NET.activations(op), needs(NET, op, box), strict=True)]
    assert np.array_equal(tile_values(NET, op, box, operands), part(op.output, box))


@settings(max_examples=50)
@given(data=st.data())
def test_many_boxes_at_once_are_each_box_alone(data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(CUT))
    boxes = [random_box(data, NET, op) for _ in range(3)]
    stacked = np.array([list(zip(b.start, b.stop, strict=True)) for b in boxes])
    for index, (rule, name) in enumerate(zip(input_rules(NET, op), NET.activations(op), strict=True)):
        together = needs_of_many(rule, stacked, NET.tensor(name).shape)
        for row, box in zip(together, boxes, strict=True):
            alone = needs(NET, op, box)[index]
            assert (tuple(row[:, 0]), tuple(row[:, 1])) == (alone.start, alone.stop)


def residual_net(*, of_itself: bool) -> Net:
    """A convolution fused with an add. With `of_itself` the add's other operand is the convolution's own input."""
    b = Builder("residual", seed=5)
    x = b.input(1, 9, 7, 6)
    other = x if of_itself else b.conv(x, 6)
    net = b.net(b.add(b.conv(x, 6, 3), other))
    *before, convolution, addition = net.ops
    return net.with_ops((*before, fuse((convolution, addition))))


@pytest.mark.parametrize("of_itself", [True, False])
@settings(max_examples=25)
@given(data=st.data())
def test_a_tile_of_a_fused_op_computes_its_part_too(of_itself: bool, data: st.DataObject) -> None:
    net = residual_net(of_itself=of_itself)
    op, found = net.ops[-1], evaluate(net, [np.random.default_rng(3).integers(-128, 128, (1, 9, 7, 6), np.int8)])

    def cut(name: str, box: Box) -> np.ndarray:
        return found[name][tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))]

    assert cuttable_axes(net, op) == (1, 2, 3)
    box = random_box(data, net, op)
    operands = [cut(name, need) for name, need in zip(net.activations(op), needs(net, op, box), strict=True)]
    assert np.array_equal(tile_values(net, op, box, operands), cut(op.output, box))


def test_a_fused_op_that_is_to_stay_whole_is_not_cut() -> None:
    net = residual_net(of_itself=False)
    op = fuse(net.ops[-1].parts, whole=True)
    assert cuttable_axes(net, op) == ()
    assert needs(net, op, Box((0, 0, 0, 0), (1, 1, 1, 1))) == (Box.whole((1, 9, 7, 6)),) * 2


def test_a_part_of_a_softmax_needs_all_of_its_row() -> None:
    (softmax,) = [op for op in NET.ops if op.kind == "softmax"]
    assert cuttable_axes(NET, softmax) == (1,)
    assert needs(NET, softmax, Box((0, 2), (1, 3))) == (Box((0, 0), (1, 7)),)


@pytest.mark.parametrize("kind", sorted(set(MAKERS)))
@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 16), data=st.data())
def test_a_tile_of_any_kind_needs_no_more_than_its_rules_say(kind: str, seed: int, data: st.DataObject) -> None:
    bundle = Bundle(np.random.default_rng(seed))
    MAKERS[kind](bundle)
    net = bundle.net()
    op = net.ops[-1]
    given_inputs = random_inputs(net, np.random.default_rng(seed))
    found = evaluate(net, given_inputs)
    box = random_box(data, net, op)
    operands = [
        found[name][tuple(slice(a, b) for a, b in zip(need.start, need.stop, strict=True))]
        for name, need in zip(net.activations(op), needs(net, op, box), strict=True)
    ]
    want = found[op.output][tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))]
    assert np.array_equal(tile_values(net, op, box, operands), want)
