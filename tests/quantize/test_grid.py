"""Weights on a grid of 4 bits keep its steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from npukit.quantize.grid import grid_of
from npukit.quantize.scales import of_weights


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(8, 40))
def test_the_integers_of_a_grid_are_found(seed: int, channels: int, depth: int) -> None:
    random = np.random.default_rng(seed)
    integers = random.integers(-8, 8, (channels, depth))
    weights = (integers * random.uniform(1e-4, 10, (channels, 1))).astype(np.float32)
    steps = grid_of(weights)
    assert steps is not None
    found = weights / steps[:, np.newaxis]
    assert np.abs(found - np.rint(found)).max() < 1e-3
    assert found.min() > -8.1
    assert found.max() < 7.1
    scales = np.array(of_weights(weights, 0, np.zeros(channels)).scales)
    assert np.allclose(scales, steps, rtol=1e-6)


def test_other_weights_have_no_grid() -> None:
    weights = np.random.default_rng(1).normal(0, 1, (4, 30)).astype(np.float32)
    assert grid_of(weights) is None
    on_one_row = weights.copy()
    on_one_row[0] = np.arange(30) % 8
    assert grid_of(on_one_row) is None
    assert grid_of(np.ones((4, 2))) is None, "two weights a channel say nothing"


def test_a_bias_beyond_the_grid_has_the_last_word() -> None:
    weights = np.arange(-7, 8, dtype=np.float32)[np.newaxis]
    assert of_weights(weights, 0, np.array([0.5])).scales == (1.0,)
    assert of_weights(weights, 0, np.array([3.0])).scales == (3.0,)
