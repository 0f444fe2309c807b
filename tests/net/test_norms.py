"""Norms in integers against norms in real numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.random_ops import Bundle
from npukit.net.ops.norm import inverse_root, norm_constants
from npukit.net.reference import evaluate
from npukit.net.tensor import Quantization


@settings(max_examples=200, derandomize=True)
@given(data=st.data())
def test_results_are_the_nearest_integers_to_the_real_ones(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 20)))
    length, centred = data.draw(st.integers(1, 1024)), data.draw(st.booleans())
    epsilon = 10.0 ** data.draw(st.integers(-8, -1))
    source = Quantization((float(np.exp(random.uniform(-6, 1))),), (int(random.integers(-128, 128)),))
    target = Quantization((float(np.exp(random.uniform(-5, -2))),), (int(random.integers(-128, 128)),))
    gains, biases = random.normal(size=(2, length))
    made = norm_constants(gains, biases, epsilon, source, target, centred=centred)
    bundle = Bundle(random)
    constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
    bundle.add(made.attributes, bundle.activation((4, length), source), *constants, quantization=target)
    spread = data.draw(st.sampled_from([1, 10, 128]))
    integers = random.integers(-spread, spread, (4, length)).astype(np.int8)
    got = evaluate(bundle.net(), [integers])["norm_0"]
    real = (integers.astype(np.float64) - source.zero_point) * source.scale
    real = real - real.mean(-1, keepdims=True) if centred else real
    normal = real / np.sqrt((real**2).mean(-1, keepdims=True) + epsilon)
    wanted = (normal * gains + biases) / target.scale + target.zero_point
    assert np.abs(got - np.clip(wanted, -128, 127)).max() < 0.51


def test_roots_of_any_size() -> None:
    random = np.random.default_rng(3)
    values = np.concatenate([[1, 2, 3, 4], (2.0 ** random.uniform(0, 61.9, 10000)).astype(np.int64)])
    values = np.concatenate([values, *(2 ** np.arange(1, 62, dtype=np.int64)[:, None] + [-1, 0, 1])])
    inverse, shift = inverse_root(values)
    assert inverse.min() >= 1 << 30
    assert inverse.max() < 1 << 31
    real = inverse * 2.0 ** (shift - 62) * np.sqrt(values.astype(np.float64))
    assert np.abs(real - 1).max() < 2.0**-27


def test_clamps_hold() -> None:
    made = norm_constants(
        np.ones(4), np.zeros(4), 1e-5, Quantization((0.1,), (0,)), Quantization((0.01,), (0,)), centred=True
    )
    bundle = Bundle(np.random.default_rng(1))
    constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
    bundle.add(replace(made.attributes, clamp=(-20, 30)), bundle.activation((1, 4)), *constants)
    result = evaluate(bundle.net(), [np.array([[-100, 0, 0, 100]], np.int8)])["norm_0"]
    assert (result.min(), result.max()) == (-20, 30)
