"""Scales of weights: integers that a file holds already stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from npukit.quantize.scales import of_weights, quantised

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("largest", [7, 50, 127])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_of_any_range_stay_exact(largest: int, axis: int) -> None:
    whole = RANDOM.integers(-largest, largest + 1, (40, 30)).astype(np.int8)
    whole[0], whole[:, 0] = largest, largest
    scales = RANDOM.uniform(1e-3, 2, 40 if axis == 0 else 30).astype(np.float32)
    real = whole.astype(np.float32) * (scales[:, None] if axis == 0 else scales)
    found = of_weights(real, axis, np.zeros(len(scales)))
    made, steps = quantised(real, found), np.array(found.scales, np.float32)
    np.testing.assert_allclose(made * (steps[:, None] if axis == 0 else steps), real, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", [lambda real: real * np.float32(1.1), lambda real: real[:, ::-1]])
def test_with_the_least_integer_of_int8(change: Callable[[np.ndarray], np.ndarray]) -> None:
    whole = RANDOM.integers(-128, 128, (4, 300)).astype(np.int8)
    whole[:, 0] = -128
    real = change(whole * np.float32(0.03))
    assert np.array_equal(np.sort(quantised(real, of_weights(real, 0, np.zeros(4)))), np.sort(whole))


def test_other_weights_use_the_whole_range() -> None:
    real = RANDOM.normal(0, 1, (6, 50)).astype(np.float32)
    real[5] = 0
    found = of_weights(real, 0, np.zeros(6))
    assert np.allclose(found.scales[:5], np.abs(real[:5]).max(axis=1) / 127, rtol=1e-6)
    assert not quantised(real, found)[5].any()
