"""Tables on a line become filters of one pixel with the same results for every byte."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.random_ops import Bundle
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import DepthwiseConv2d, Lookup
from npukit.net.passes.lines import AS_IT_IS, Ends, line_filter, with_lines
from npukit.net.reference import run_reference
from npukit.net.tables import EVERY, relu_table
from npukit.net.tensor import Quantization

SHAPES = ((1, 16, 16, 6), (256, 6), (1, 4, 64, 6), (2, 8, 16, 6))
MADE = Quantization((0.05,), (3,))


def always(net: Net, op: Op, made: Net, instead: Op) -> str:
    assert isinstance(instead.attributes, DepthwiseConv2d)
    assert made.tensor(instead.output).elements == net.tensor(op.output).elements
    return "mac_array"


def kinds_after(bundle: Bundle, table: np.ndarray, shape: tuple[int, ...], made: Quantization) -> set[str]:
    """The kinds of ops in place of a lookup. Their results for every byte equal the lookup's."""
    bundle.add(Lookup(), bundle.activation(shape), bundle.constant(table.astype(np.int8), None), quantization=made)
    net = check_net(bundle.net())
    changed = check_net(with_lines(net, always))
    every = np.resize(EVERY.astype(np.int8), shape)
    np.testing.assert_array_equal(run_reference(changed, [every]), run_reference(net, [every]))
    return {op.kind for op in changed.ops} - {"reshape"}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_relu_with_another_scale_is_a_filter(shape: tuple[int, ...]) -> None:
    found = list[set[str]]()
    for seed in range(20):
        bundle = Bundle(np.random.default_rng(seed))
        made = bundle.quantization()
        table = relu_table(bundle.quantization(), made, (made.zero_point, 127))
        found.append(kinds_after(bundle, table, shape, made))
    wanted = {"lookup"} if shape[0] == 2 else {"depthwise_conv2d"}
    assert found.count(wanted) >= 15


@pytest.mark.parametrize("threshold", [-127, -1, 0, 5, 127])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_and_a_negation_are_filters(threshold: int, sign: int) -> None:
    bundle = Bundle(np.random.default_rng(threshold + 128))
    assert kinds_after(bundle, sign * (threshold > EVERY), SHAPES[0], MADE) == {"depthwise_conv2d"}
    bundle = Bundle(np.random.default_rng(0))
    assert kinds_after(bundle, -1 - EVERY, SHAPES[0], bundle.quantization()) == {"depthwise_conv2d"}


def test_a_curve_stays_a_table() -> None:
    curve = np.clip(np.rint(EVERY**2 / 128) - 100, -128, 127)
    assert kinds_after(Bundle(np.random.default_rng(0)), curve, SHAPES[0], MADE) == {"lookup"}


def test_few_pixels_are_not_worth_constants_of_each_channel() -> None:
    assert kinds_after(Bundle(np.random.default_rng(0)), -1 - EVERY, (1, 3, 5, 6), MADE) == {"lookup"}


def test_each_channel_has_its_line() -> None:
    offsets = np.array([0, 5, -20])
    tables = np.clip(EVERY + offsets[:, None], -128, 127)
    ends = Ends(MADE, MADE, (-128, 127))
    found = line_filter(tables, ends, [AS_IT_IS] * 3)
    assert found is not None
    for table, weight, bias, scale in zip(tables, found.weights, found.biases, found.scales, strict=True):
        np.testing.assert_array_equal(ends.results(weight, bias, scale), table)
    assert line_filter(np.vstack([tables, EVERY**2 // 128 - 100]), ends, [AS_IT_IS] * 4) is None
