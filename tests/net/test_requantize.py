"""Rescaling against gemmlowp's definitions, written out in exact Python integers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_nets import image_net, sine_net

from npukit.net.requantize import (
    Multiplier,
    add_rescaling,
    factor_of_products,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    requantization,
    rescale,
    softmax_scaling,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
MULTIPLIERS = st.one_of(st.integers(2**30, 2**31 - 1), st.just(0))


def truncated(numerator: int, denominator: int) -> int:
    """Division as in C, rounded towards zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def high_multiply(a: int, b: int) -> int:
    product = a * b
    nudge = 2**30 if product >= 0 else 1 - 2**30
    return truncated(product + nudge, 2**31)


def divide_by_power(value: int, exponent: int) -> int:
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if value < 0 else 0)
    return (value >> exponent) + (1 if (value & mask) > threshold else 0)


@given(INT32, MULTIPLIERS, st.integers(-31, 30))
def test_equals_gemmlowp(value: int, multiplier: int, shift: int) -> None:
    left = (value << max(shift, 0)) & 0xFFFFFFFF
    left -= (left & 0x80000000) << 1
    expected = divide_by_power(high_multiply(left, multiplier), max(-shift, 0))
    assert multiply_by_quantized_multiplier(np.array([value]), multiplier, shift) == expected


@pytest.mark.parametrize("shift", [-1, -7, -31])
@pytest.mark.parametrize("multiplier", [2**30, 2**30 + 1, 2**31 - 1])
def test_halves_and_their_neighbours(multiplier: int, shift: int) -> None:
    half = (1 << (-shift - 1)) * 2**31 // multiplier
    values = np.array([sign * half + step for sign in (-1, 1) for step in range(-3, 4)])
    values = values[np.abs(values) < 2**31]
    expected = [divide_by_power(high_multiply(int(value), multiplier), -shift) for value in values]
    assert multiply_by_quantized_multiplier(values, multiplier, shift).tolist() == expected


@given(st.floats(min_value=2.0**-30, max_value=2.0**29))
def test_a_multiplier_is_the_real_to_31_bits(real: float) -> None:
    multiplier, shift = quantize_multiplier(real)
    assert 2**30 <= multiplier < 2**31
    exact = Fraction(multiplier) * Fraction(2) ** (shift - 31)
    assert abs(exact - Fraction(real)) <= Fraction(real) * Fraction(1, 2**31)


@given(st.floats(min_value=2.0**-14, max_value=1.0, exclude_max=True), st.integers(-1000, 1000), st.integers(-5, 5))
def test_products_that_round_once_are_the_nearest_integers(real: float, result: int, near: int) -> None:
    """Sums beside a half of a result, where the first of two roundings would decide."""
    total = min(max(round((result + 0.5) / real) + near, -(2**31)), 2**31 - 1)
    exact = Fraction(total) * Fraction(real)
    got = int(rescale(np.array([total]), factor_of_products(real, rounds_once=True))[0])
    assert abs(got - exact) <= Fraction(1, 2) + abs(exact) * Fraction(1, 2**17)


@given(st.floats(min_value=2.0**-30, max_value=2.0**10))
def test_factors_that_round_once_have_no_right_shift_or_too_few_bits(real: float) -> None:
    factor = factor_of_products(real, rounds_once=True)
    assert factor.shift >= 0 or factor == factor_of_products(real, rounds_once=False)
    assert factor.multiplier >= 2**16


def test_multipliers_at_the_edges() -> None:
    assert quantize_multiplier(0.0) == (0, 0)
    assert quantize_multiplier(1.0) == (2**30, 1)
    assert quantize_multiplier(np.nextafter(1.0, 0.0)) == (2**30, 1)
    assert quantize_multiplier(2.0**-40) == (0, 0)
    assert quantize_multiplier(2.0**40) == (2**31 - 1, 30)


def test_a_dense_layer_multiplies_its_two_scales_as_float32() -> None:
    net = sine_net()
    product = float(np.float32(0.1) * np.float32(0.25))
    factors = requantization(net, net.ops[1])
    assert (factors.multipliers.tolist(), factors.shifts.tolist()) == ([quantize_multiplier(product * 128)[0]], [2])


def test_a_convolution_has_a_factor_for_each_channel() -> None:
    net = image_net()
    factors = requantization(net, net.ops[0])
    reals = [0.02 * scale / 0.03 for scale in net.tensor("weights").quantization.scales]  # type: ignore[union-attr]
    assert list(zip(factors.multipliers, factors.shifts, strict=True)) == list(map(quantize_multiplier, reals))
    assert factors.multipliers.dtype == np.int32


def test_the_larger_operand_of_an_add_is_halved_exactly() -> None:
    net = image_net()
    factors = add_rescaling(net, net.ops[1])
    assert factors.first == Multiplier(2**30, 0)
    assert factors.second.multiplier == quantize_multiplier(0.02 / 0.06)[0]


def test_softmax_gives_up_below_the_range_of_its_exponent() -> None:
    scaling = softmax_scaling(0.1, 1.0)
    assert scaling.diff_min == -int(31 * 2**26 / 2**scaling.left_shift)
    assert scaling.multiplier * 2.0 ** (scaling.left_shift - 31) == pytest.approx(0.1 * 2**26)
