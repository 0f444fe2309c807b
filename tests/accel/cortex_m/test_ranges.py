"""Range analysis and requantisation against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accel.cortex_m import layers, reference
from npukit.accel.cortex_m.code.requantize import fast_requantization
from npukit.accel.cortex_m.layer import Requantization
from npukit.accel.cortex_m.ranges import accumulators
from npukit.net.value_ranges import Range


def fast(accumulator: np.ndarray, requantization: Requantization, exponent: int) -> np.ndarray:
    """What SMMLA and a saturating shift compute, in plain integers."""
    f = fast_requantization(requantization, exponent)
    prescaled = accumulator << f.prescale[0]
    addend = f.addends[0] - (f.ties[0] & (prescaled >> 63))
    return np.clip(((prescaled * f.multipliers[0] >> 32) + addend) >> exponent, -128, 127)


@pytest.mark.parametrize("seed", range(24))
def test_fast_requantization_is_double_rounding(seed: int):
    """At every half-way point and beside it, for multipliers at both ends."""
    rng = np.random.default_rng(seed)
    multiplier = (1 << 30, (1 << 30) + 1, (1 << 31) - 1, int(rng.integers(1 << 30, 1 << 31)))[seed % 4]
    shift, zero = int(rng.integers(-12, 3)), int(rng.integers(-128, 128)) if seed % 2 else -128
    requantization = Requantization(np.array([multiplier]), np.array([shift]), zero)
    exponent = max(-shift + 1, 1) + int(rng.integers(0, 3))
    halves = (np.arange(-300, 300) + 0.5) * 2.0 ** (31 - shift) / multiplier
    near = np.round(halves).astype(np.int64)[:, None] + np.arange(-3, 4)
    values = np.concatenate([near.ravel(), np.arange(-300, 300), rng.integers(-(1 << 16), 1 << 16, 5000)])
    values = values[np.abs(values) < 1 << (30 - (1 + exponent + shift))]
    np.testing.assert_array_equal(fast(values, requantization, exponent), reference.requantized(values, requantization))


def test_the_ends_of_an_interval_are_reached():
    rng = np.random.default_rng(3)
    layer = layers.conv(rng, (4, 4, 3), 5, (2, 2))
    low, high = rng.integers(-128, 0, 3), rng.integers(0, 128, 3)
    layer = replace(layer, input_range=Range(low, high))
    found = accumulators(layer)
    positive = layer.weights > 0
    centred = np.where(positive, high, low) - layer.input_zero
    np.testing.assert_array_equal(found.high, (layer.weights * centred).sum((1, 2, 3)) + layer.bias)


def test_padding_brings_zero_into_the_range():
    layer = layers.depthwise(np.random.default_rng(3), (4, 4, 1))
    layer = replace(layer, input_range=Range(np.array([50]), np.array([50])))
    padded, unpadded = accumulators(layer), accumulators(replace(layer, padding=(0, 0, 0, 0)))
    assert (padded.low < padded.high).all()
    assert (unpadded.low == unpadded.high).all()
