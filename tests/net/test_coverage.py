"""Events of a net: each is reached exactly where a reference with the matching mistake gives another output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from net.small_nets import image_net, op_net, quantized
from npukit.measure.cases import noise
from npukit.net import requantize
from npukit.net.net import Net
from npukit.net.ops import AveragePool, Conv2d, Softmax
from npukit.net.ops.kind import ENTRIES, HALF, HIGH, LOW, PADDING, POOLED, ROUNDED, TIES, TWICE
from npukit.net.ops.softmax import exp_table
from npukit.net.reference import evaluate
from npukit.net.reference.coverage import Coverage, Watch
from npukit.net.tensor import Quantization, Tensor

CASES = 200


def conv_net(padding: int = 1) -> Net:
    """A convolution of seven channels: shifts of 2 to 8, results of both signs, some clamped at either end."""
    rng, factors = np.random.default_rng(3), tuple(2.0 ** -(2 + channel) * 1.3 for channel in range(7))
    values = rng.integers(-3, 4, (7, 3, 3, 2))
    weights = Tensor("weights", (7, 3, 3, 2), "int8", Quantization(factors, (0,) * 7, 0))
    attributes = Conv2d(padding=(padding, padding, padding, padding), clamp=(-90, 101))
    return op_net(
        attributes,
        [quantized("x", (1, 5, 5, 2), 1.0, 3)],
        quantized("y", (1, 3 + 2 * padding, 3 + 2 * padding, 7), 1.0, 11),
        {
            weights: np.clip(values << np.arange(7)[:, None, None, None] // 2, -128, 127).astype(np.int8),
            Tensor("bias", (7,), "int32"): rng.integers(-50, 50, 7).astype(np.int32),
        },
    )


def seen(net: Net, kind: str, count: int = CASES) -> tuple[list[np.ndarray], np.ndarray]:
    inputs = [noise(net, name, count) for name in net.inputs]
    return inputs, Watch(net).frame(inputs)[1]["it", kind]


def differs(net: Net, inputs: list[np.ndarray], mistaken: Net) -> np.ndarray:
    """An array [case, channel]: true where an output differs."""
    right, wrong = (evaluate(each, inputs)[net.outputs[0]] for each in (net, mistaken))
    return (right != wrong).reshape(len(right), -1, right.shape[-1]).any(axis=1)


def no_first(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    return (np.asarray(a, np.int64) * b) >> 31


def twice_first(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    return (np.asarray(a, np.int64) * b + (1 << 31)) >> 31


def no_second(value: np.ndarray, exponent: np.ndarray | int) -> np.ndarray:
    return (value - np.where(np.asarray(exponent) > 0, value < 0, 0)) >> np.asarray(exponent)


def no_ties(value: np.ndarray, exponent: np.ndarray | int) -> np.ndarray:
    return (value + ((np.int64(1) << np.asarray(exponent)) >> 1)) >> np.asarray(exponent)


@pytest.mark.parametrize(
    ("kind", "function", "mistake"),
    [
        (ROUNDED, "doubling_high_multiply", no_first),
        (TWICE, "doubling_high_multiply", twice_first),
        (HALF, "rounding_shift_right", no_second),
        (TIES, "rounding_shift_right", no_ties),
    ],
)
def test_a_rounding_shows_where_its_event_is_reached(
    kind: str, function: str, mistake: Callable[..., np.ndarray]
) -> None:
    net = conv_net()
    inputs, places = seen(net, kind)
    with mock.patch.object(requantize, function, mistake):
        wrong = evaluate(net, inputs)["y"]
    found = (wrong != evaluate(net, inputs)["y"]).reshape(CASES, -1, 7).any(axis=1)
    assert np.array_equal(places, found if places.shape[1] == 7 else found.any(axis=1, keepdims=True))
    assert places.any()
    assert not places.all() or kind in (HALF, TIES)  # HALF and TIES are events of the whole layer


@pytest.mark.parametrize(("kind", "clamp"), [(LOW, (-91, 101)), (HIGH, (-90, 102))])
def test_a_clamp_that_is_one_off_shows_where_its_event_is_reached(kind: str, clamp: tuple[int, int]) -> None:
    net = conv_net()
    attributes = replace(net.ops[0].attributes, clamp=clamp)  # pyright: ignore[reportCallIssue]
    inputs, places = seen(net, kind)
    assert np.array_equal(places, differs(net, inputs, net.with_ops((replace(net.ops[0], attributes=attributes),))))
    assert places.any()


def test_padding_shows_at_each_side_by_itself() -> None:
    net = conv_net()
    inputs = [np.full((1, 1, 5, 5, 2), 3, np.int8)]  # the zero point, like the padding
    inputs[0][0, 0, 0, 2] = 100  # in the top row, far from all other sides
    sides = Watch(net).frame(inputs)[1]["it", PADDING][0]
    assert sides[:4].tolist() == [True, False, False, False]
    assert ("it", PADDING) not in Watch(conv_net(0)).frame(inputs)[1]


def test_what_the_weights_rule_out_is_no_event() -> None:
    net = conv_net()
    watch = Watch(net)
    inputs = [noise(net, "x", 1)]
    most = evaluate(net, [np.where(np.ones((1, 1, 5, 5, 2), bool), np.int8(127), np.int8(0))])["y"]
    assert most.shape == (1, 1, 5, 5, 7)
    possible = watch.possible(watch.frame(inputs)[1])
    reached = Watch(net).frame([noise(net, "x", 3000)])[1]
    for key, places in possible.items():
        assert not (reached[key].any(axis=0) & ~places).any(), key


def test_entries_of_a_table_are_those_that_a_softmax_can_look_up() -> None:
    net = op_net(Softmax(1.0), [quantized("x", (1, 4), 0.5)], quantized("y", (1, 4), 1 / 256, -128), {})
    inputs, places = [np.array([[[0, -1, -3, -128]]], np.int8)], Watch(net)
    _, found = places.frame(inputs)
    assert np.flatnonzero(found["it", ENTRIES][0]).tolist() == [0, 1, 3, 128]
    possible = places.possible(found)["it", ENTRIES]
    assert np.array_equal(possible, exp_table(0.5, 1.0) > 0)


def test_means_are_rounded_up_for_either_sign() -> None:
    net = op_net(
        AveragePool((2, 2), (2, 2)), [quantized("x", (1, 2, 2, 1), 1.0)], quantized("y", (1, 1, 1, 1), 1.0), {}
    )
    values = np.array([[-1, -1, -1, 0], [1, 1, 1, 0], [4, 4, 4, 4]], np.int8).reshape(3, 1, 2, 2, 1)
    assert Watch(net).frame([values])[1]["it", POOLED].tolist() == [[True, False], [False, True], [False, False]]


def test_what_is_missing_is_counted_by_layer_and_kind() -> None:
    yes, no = np.array([True, True]), np.array([True, False])
    coverage = Coverage({("a", LOW): yes, ("b", LOW): no}, {("a", LOW): no, ("b", LOW): yes})
    assert (coverage.count, coverage.events, coverage.missing()) == (2, 3, {("a", LOW): 1})


def test_an_image_net_has_events_in_each_layer() -> None:
    net = image_net()
    _, found = Watch(net).frame([noise(net, name, 2) for name in net.inputs])
    assert {layer for layer, _ in found} == {op.name for op in net.ops}
