"""Matrix-vector products, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.code.assembly import CodeWorth
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.dense import dense
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops.table import macs


def with_one_multiplier(layer: OpView) -> OpView:
    r = layer.requantization
    multipliers, shifts = np.full_like(r.multipliers, r.multipliers[0]), np.full_like(r.shifts, r.shifts[0])
    return layers.with_factors(layer, multipliers, shifts)


def kernel_for(layer: OpView, density: Density, byte_worth: float = 8) -> Kernel | Refusal:
    source, target = (Layout(Order.PIXELS, shape) for shape in (layer.input_shape, layer.output_shape))
    return dense(layer, source, target, density, CodeWorth(byte_worth))


def check(layer: OpView, density: Density, x: np.ndarray, byte_worth: float = 8) -> Kernel:
    kernel = kernel_for(layer, density, byte_worth)
    assert isinstance(kernel, Kernel), kernel.reason
    run = laboratory.run(kernel, x.view(np.uint8))
    np.testing.assert_array_equal(run.output.view(np.int8), reference.dense(layer, x).ravel())
    assert run.instructions == kernel.instructions
    assert run.stack_bytes == kernel.stack_bytes
    return kernel


@pytest.mark.parametrize("density", list(Density))
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_random_products(seed: int, shared: bool, density: Density):
    rng = np.random.default_rng(seed)
    inputs, outputs = int(rng.integers(1, 300)), int(rng.integers(1, 40))
    layer = layers.dense(rng, inputs, outputs, relu=bool(seed % 2), extreme=seed % 4 == 3 and inputs < 200)
    layer = with_one_multiplier(layer) if shared else layer
    x = layers.activations(rng, (inputs,), extreme=seed % 3 == 2)
    check(layer, density, x)


@pytest.mark.parametrize("shift", [-1, -2, -5])
@pytest.mark.parametrize("multiplier", [1 << 30, (1 << 30) + 1])
def test_ties_of_both_roundings(multiplier: int, shift: int) -> None:
    """Half of odd sums, and quarters or less of what that makes: SMMLAR rounds the first time."""
    rng = np.random.default_rng(7)
    layer = layers.dense(rng, 12, 40, relu=False)
    layer = layers.with_weights(layer, rng.integers(-1, 2, (40, 12)).astype(np.int8))
    layer = layers.with_factors(layer, np.full(40, multiplier), np.full(40, shift))
    for _ in range(4):
        kernel = check(layer, Density.HALFWORDS, rng.integers(-20, 20, 12).astype(np.int8))
        assert "smmlar" in laboratory.assembly_of(kernel)


# Instructions per product, as measured for prototypes by hand.
@pytest.mark.parametrize(
    ("inputs", "outputs", "density", "prototype"),
    [
        (640, 128, Density.HALFWORDS, 0.645),
        (640, 128, Density.BYTES, 0.870),
        (128, 128, Density.HALFWORDS, 0.668),
        (128, 128, Density.BYTES, 0.903),
        (8, 128, Density.BYTES, 1.706),
    ],
)
def test_no_more_instructions_than_the_prototypes(inputs, outputs, density, prototype):
    rng = np.random.default_rng(2)
    layer = with_one_multiplier(layers.dense(rng, inputs, outputs))
    kernel = check(layer, density, layers.activations(rng, (inputs,), extreme=False), byte_worth=0)
    assert kernel.instructions <= prototype * macs(layer.net, layer.op)


def test_one_multiplier_leaves_weights_and_biases_only():
    layer = with_one_multiplier(layers.dense(np.random.default_rng(1), 128, 128))
    kernel = check(layer, Density.BYTES, np.zeros(128, np.int8))
    assert kernel.constant_bytes == 128 * 128 + 4 * 128 + 12


def test_both_assemblers_agree_with_the_predicted_size():
    for density in Density:
        kernel = kernel_for(layers.dense(np.random.default_rng(3), 70, 9, relu=False), density)
        assert isinstance(kernel, Kernel)
        laboratory.check_assemblers(kernel)


def test_a_weight_of_minus_128_does_not_fit_beside_another():
    layer = layers.dense(np.random.default_rng(3), 16, 4)
    refused = kernel_for(layers.with_weights(layer, np.full((4, 16), -128, np.int8)), Density.BYTES)
    assert isinstance(refused, Refusal)
    assert "-128" in refused.reason
