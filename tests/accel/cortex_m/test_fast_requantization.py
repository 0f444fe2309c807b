"""Requantisation in two instructions, and the intervals of accumulators, against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accel.cortex_m import layers, reference
from npukit.accel.cortex_m.code.requantize import fast_requantization
from npukit.accel.cortex_m.layout import NO_PADDING
from npukit.net.requantize import Requantization
from npukit.net.value_ranges import Range


def fast(accumulator: np.ndarray, requantization: Requantization, zero: int, exponent: int) -> np.ndarray:
    """What SMMLA and a saturating shift compute, in plain integers."""
    f = fast_requantization(requantization, zero, exponent)
    prescaled = accumulator << f.prescale[0]
    addend = f.addends[0] - (f.ties[0] & (prescaled >> 63))
    return np.clip(((prescaled * f.multipliers[0] >> 32) + addend) >> exponent, -128, 127)


@pytest.mark.parametrize("seed", range(24))
def test_fast_requantization_is_double_rounding(seed: int):
    """At every half-way point and beside it, for multipliers at both ends."""
    rng = np.random.default_rng(seed)
    multiplier = (1 << 30, (1 << 30) + 1, (1 << 31) - 1, int(rng.integers(1 << 30, 1 << 31)))[seed % 4]
    shift, zero = int(rng.integers(-12, 3)), int(rng.integers(-128, 128)) if seed % 2 else -128
    requantization = Requantization(np.array([multiplier]), np.array([shift]))
    exponent = max(-shift + 1, 1) + int(rng.integers(0, 3))
    halves = (np.arange(-300, 300) + 0.5) * 2.0 ** (31 - shift) / multiplier
    near = np.round(halves).astype(np.int64)[:, None] + np.arange(-3, 4)
    values = np.concatenate([near.ravel(), np.arange(-300, 300), rng.integers(-(1 << 16), 1 << 16, 5000)])
    values = values[np.abs(values) < 1 << (30 - (1 + exponent + shift))]
    expected = reference.requantized(values, requantization, zero)
    np.testing.assert_array_equal(fast(values, requantization, zero, exponent), expected)


def test_the_ends_of_an_interval_are_reached():
    rng = np.random.default_rng(3)
    layer = layers.conv(rng, (4, 4, 3), 5, (2, 2))
    low, high = rng.integers(-128, 0, 3), rng.integers(0, 128, 3)
    layer = replace(layer, input_range=Range(low, high))
    weights, bias = layer.filter.weights, layer.filter.bias
    centred = np.where(weights > 0, high, low) - layer.input_zero
    np.testing.assert_array_equal(layer.accumulators.high, (weights * centred).sum((1, 2, 3)) + bias)


def test_padding_brings_zero_into_the_range():
    rng, fifty = np.random.default_rng(3), Range(np.array([50]), np.array([50]))
    made = (layers.depthwise(rng, (4, 4, 1), padding=padding) for padding in ((1, 1, 1, 1), NO_PADDING))
    padded, unpadded = (replace(layer, input_range=fifty).accumulators for layer in made)
    assert (padded.low < padded.high).all()
    assert (unpadded.low == unpadded.high).all()
