"""The integer reference against third-party models, and against the definitions written out in plain Python."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_nets import image_net, op_net, quantized, sine_net

from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import Add, AveragePool, Conv2d, DepthwiseConv2d, MaxPool, Softmax, convolution, dense
from npukit.net.ops.shapes import windows
from npukit.net.reference import evaluate, run_reference
from npukit.net.requantize import multiply_by_quantized_multiplier, requantization
from npukit.net.tensor import Quantization, Tensor

CASE = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.integers(0, 2**32 - 1))
"""Window height and width, stride, dilation, seed."""


def int8(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.integers(-128, 128, shape, np.int8)


def convolution_net(case: tuple[int, int, int, int, int], groups: int, depthwise: bool) -> tuple[Net, np.ndarray]:
    """A random convolution and a random input image."""
    height, width, stride, dilation, seed = case
    random = np.random.default_rng(seed)
    channels, outputs = 4, 8
    padding = tuple(int(side) for side in random.integers(0, 3, 4))
    window, size = (height, width), (int(random.integers(5, 8)), int(random.integers(5, 8)))
    rows, columns = windows(size, window, (stride, stride), padding, (dilation, dilation))  # type: ignore[arg-type]
    scales = tuple(float(scale) for scale in random.uniform(0.001, 0.02, outputs).astype(np.float32))
    shape = (1, height, width, outputs) if depthwise else (outputs, height, width, channels // groups)
    weights = Tensor("weights", shape, "int8", Quantization(scales, (0,) * outputs, 3 if depthwise else 0))
    kind = DepthwiseConv2d if depthwise else Conv2d
    attributes = kind((stride, stride), padding, (dilation, dilation), (-100, 90))  # type: ignore[arg-type]
    image = quantized("x", (1, *size, channels), 0.05, int(random.integers(-128, 128)))
    output = quantized("y", (1, rows, columns, outputs), 0.04, int(random.integers(-128, 128)))
    bias = random.integers(-3000, 3000, outputs, np.int32)
    constants = {weights: int8(random, *shape), Tensor("bias", (outputs,), "int32"): bias}
    return check_net(op_net(attributes, [image], output, constants)), int8(random, 1, *size, channels)


def plain_convolution(net: Net, image: np.ndarray, depthwise: bool) -> np.ndarray:
    """Each output by definition: positions outside the image count as zero."""
    (op,), weights = net.ops, net.constants["weights"].astype(int)
    attributes = op.attributes
    assert isinstance(attributes, Conv2d | DepthwiseConv2d)
    zero, output = net.tensor("x").quantization, net.tensor("y")
    assert zero is not None
    assert output.quantization is not None
    factors, result = requantization(net, op), np.zeros(output.shape, np.int8)
    per_group = image.shape[3] if depthwise else weights.shape[3]
    for y, x, channel in product(*map(range, output.shape[1:])):
        total = int(net.constants["bias"][channel])
        for ky, kx in product(range(weights.shape[1]), range(weights.shape[2])):
            row = y * attributes.strides[0] + ky * attributes.dilation[0] - attributes.padding[0]
            column = x * attributes.strides[1] + kx * attributes.dilation[1] - attributes.padding[1]
            if not (0 <= row < image.shape[1] and 0 <= column < image.shape[2]):
                continue
            if depthwise:
                source = channel // (output.shape[3] // image.shape[3])
                total += (int(image[0, row, column, source]) - zero.zero_point) * int(weights[0, ky, kx, channel])
                continue
            group = channel // (output.shape[3] // (image.shape[3] // per_group))
            for inner in range(per_group):
                value = int(image[0, row, column, group * per_group + inner]) - zero.zero_point
                total += value * int(weights[channel, ky, kx, inner])
        scaled = multiply_by_quantized_multiplier(
            np.array(total), int(factors.multipliers[channel]), int(factors.shifts[channel])
        )
        limited = min(max(int(scaled) + output.quantization.zero_point, attributes.clamp[0]), attributes.clamp[1])
        result[0, y, x, channel] = limited
    return result


@settings(max_examples=25)
@given(CASE, st.sampled_from([1, 2, 4]))
def test_convolution_is_its_definition(case: tuple[int, int, int, int, int], groups: int) -> None:
    net, image = convolution_net(case, groups, depthwise=False)
    assert np.array_equal(run_reference(net, [image])[0], plain_convolution(net, image, depthwise=False))


@pytest.mark.parametrize("most_bytes", [1, 3000, 20000])
def test_images_beyond_the_bytes_of_columns_are_computed_in_parts(
    most_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, image = convolution_net((3, 2, 2, 1, 4), 2, depthwise=False)
    images = np.stack([image, image[:, ::-1], image[:, :, ::-1]])
    whole = run_reference(net, [images])[0]
    monkeypatch.setattr(convolution, "CHUNK_BYTES", most_bytes)
    assert np.array_equal(run_reference(net, [images])[0], whole)


@pytest.mark.parametrize(("inputs", "zero"), [(512, 127), (513, -128), (2000, 127)])
def test_the_largest_sums_of_a_dense_layer_are_exact(inputs: int, zero: int) -> None:
    """All products are extreme, some a step less, to detect any rounding to an even number."""
    data, weights = np.full((2, inputs), -128 if zero > 0 else 127, np.int8), np.full((3, inputs), -128, np.int8)
    weights[1, 0], weights[2] = -127, 127
    wanted = (data.astype(np.int64) - zero) @ weights.T.astype(np.int64)
    np.testing.assert_array_equal(dense.products(data, zero, weights), wanted)


@settings(max_examples=25)
@given(CASE)
def test_depthwise_convolution_is_its_definition(case: tuple[int, int, int, int, int]) -> None:
    net, image = convolution_net(case, 4, depthwise=True)
    assert np.array_equal(run_reference(net, [image])[0], plain_convolution(net, image, depthwise=True))


def pool_net(kind: type[AveragePool] | type[MaxPool]) -> Net:
    attributes = kind((2, 2), (1, 1), (1, 1, 0, 0), (-120, 120))
    return check_net(
        op_net(attributes, [quantized("x", (1, 2, 2, 1), 0.1, 3)], quantized("y", (1, 2, 2, 1), 0.1, 3), {})
    )


def test_average_pool_counts_only_what_is_inside_and_rounds_halves_away_from_zero() -> None:
    image = np.array([[[[-1], [-2]], [[4], [-127]]]], np.int8)
    expected = [[[-1], [-2]], [[2], [-32]]]
    assert run_reference(pool_net(AveragePool), [image])[0].tolist() == [expected]


def test_max_pool_ignores_padding_and_clamps() -> None:
    image = np.array([[[[-128], [-5]], [[4], [127]]]], np.int8)
    assert run_reference(pool_net(MaxPool), [image])[0].tolist() == [[[[-120], [-5]], [[4], [120]]]]


def test_add_is_within_one_of_real_arithmetic() -> None:
    operands = [quantized("a", (256, 1), 0.031, 7), quantized("b", (1, 256), 0.077, -20)]
    net = check_net(op_net(Add(), operands, quantized("y", (256, 256), 0.09, 11), {}))
    every = np.arange(-128, 128)
    got = run_reference(net, [every[:, None].astype(np.int8), every[None].astype(np.int8)])[0]
    real = ((every[:, None] - 7) * 0.031 + (every[None] + 20) * 0.077) / 0.09 + 11
    assert np.abs(got - np.clip(real, -128, 127)).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("scale", [0.004, 0.1, 1.5])
def test_softmax_is_within_one_of_real_arithmetic(scale: float) -> None:
    net = check_net(op_net(Softmax(), [quantized("x", (20, 9), scale)], quantized("y", (20, 9), 1 / 256, -128), {}))
    data = int8(np.random.default_rng(1), 20, 9)
    exps = np.exp((data.astype(float) - data.max(axis=1, keepdims=True)) * scale)
    real = np.clip(exps / exps.sum(axis=1, keepdims=True) * 256 - 128, -128, 127)
    assert np.abs(run_reference(net, [data])[0] - real).max() <= 1


def test_cases_in_one_go_equal_cases_one_by_one() -> None:
    net = image_net()
    cases = int8(np.random.default_rng(2), 3, *net.tensor("image").shape)
    together = evaluate(net, [cases])
    for index, case in enumerate(cases):
        for name, value in evaluate(net, [case]).items():
            assert np.array_equal(together[name][index], value)


def test_inputs_that_do_not_fit_are_named() -> None:
    with pytest.raises(NpukitError, match=r"input x has shape \[1, 1\], not \[2\]"):
        run_reference(sine_net(), [np.zeros(2, np.int8)])
    with pytest.raises(NpukitError, match="input x is int8, not float64"):
        run_reference(sine_net(), [np.zeros((1, 1))])
    with pytest.raises(NpukitError, match="takes 1 inputs, not 0"):
        run_reference(sine_net(), [])
