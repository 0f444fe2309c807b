"""The MAC array's stand-in on the core computes the results of the hardware manual."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import firmware.array_reference as ref
from firmware.array_command import Command, Packed
from firmware.array_reference import Addition, Layer, expected
from firmware.host import host_library

FLAGS = {
    ref.CONVOLUTION: [
        pixels | flag
        for pixels in (0, ref.PIXELS, ref.SECOND, ref.SECOND | ref.PIXELS, ref.NIBBLES, ref.NIBBLES | ref.PIXELS)
        for flag in (0, ref.RAW, ref.ACCUMULATE, ref.RAW | ref.ACCUMULATE, ref.RESIDUAL)
    ],
    ref.DEPTHWISE: [0, ref.RESIDUAL, ref.NIBBLES],
    ref.ADD: [0, ref.PRODUCT],
    ref.MAXIMUM_POOL: [0],
    ref.AVERAGE_POOL: [0],
}


@pytest.fixture(scope="module")
def array(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return host_library(tmp_path_factory.mktemp("array"), "mac_array/mac_array_on_core.c")


@pytest.mark.parametrize(("kind", "flags"), [(kind, flags) for kind, all_flags in FLAGS.items() for flags in all_flags])
def test_every_kind_and_flag_equals_the_manual(array: ctypes.CDLL, kind: int, flags: int) -> None:
    for seed in range(40):
        random = np.random.default_rng([kind, flags, seed])
        packed = Packed(random_layer(random, kind, flags), int(random.integers(0, 3)), int(random.integers(0, 3)))
        assert array.mac_array_run_one(ctypes.byref(packed.command)) == 0
        np.testing.assert_array_equal(packed.result(), expected(packed.layer), f"seed {seed}")
        assert packed.untouched()


def test_sums_wrap_at_29_bits(array: ctypes.CDLL) -> None:
    layer = random_layer(np.random.default_rng(1), ref.CONVOLUTION, ref.RAW)
    layer.bias = np.full_like(layer.bias, (1 << 28) - 1)
    layer.input, layer.filter = np.ones_like(layer.input), np.ones_like(layer.filter)
    layer.input_zero = 1
    packed = Packed(layer)
    array.mac_array_run_one(ctypes.byref(packed.command))
    assert (packed.result() < 0).all()
    np.testing.assert_array_equal(packed.result(), expected(layer))


def test_a_chain_runs_to_its_end_and_one_command_alone(array: ctypes.CDLL) -> None:
    random = np.random.default_rng(2)
    first, second = (Packed(random_layer(random, ref.MAXIMUM_POOL, 0)) for _ in range(2))
    first.command.next = ctypes.addressof(second.command)
    array.mac_array_run_one(ctypes.byref(first.command))
    assert (second.result() == 0x55).all()
    array.mac_array_run(ctypes.byref(first.command))
    np.testing.assert_array_equal(second.result(), expected(second.layer))


def test_nonsense_is_refused_as_on_the_hardware(array: ctypes.CDLL) -> None:
    assert array.mac_array_run(ctypes.byref(Command(kind=6))) == 3
    assert array.mac_array_run(ctypes.byref(Command(kind=ref.ADD))) == 6
    for field, value in (("stride_x", 0), ("kernel_height", 0), ("input_width", 0), ("output_channels", 0)):
        packed = Packed(random_layer(np.random.default_rng(3), ref.CONVOLUTION, 0))
        setattr(packed.command, field, value)
        assert array.mac_array_run(ctypes.byref(packed.command)) == 6, field


def test_results_at_the_edge_of_32_bits_saturate(array: ctypes.CDLL) -> None:
    layer = random_layer(np.random.default_rng(4), ref.CONVOLUTION, 0)
    layer.shift, layer.multiplier = np.full_like(layer.shift, 3), np.full_like(layer.multiplier, (1 << 31) - 1)
    layer.bias, layer.output_zero, layer.clamp = np.full_like(layer.bias, (1 << 28) - 1), 127, (-128, 127)
    layer.filter = np.zeros_like(layer.filter)
    packed = Packed(layer)
    array.mac_array_run_one(ctypes.byref(packed.command))
    np.testing.assert_array_equal(packed.result(), expected(layer))
    assert (packed.result() == 127).all()


def random_layer(random: np.random.Generator, kind: int, flags: int) -> Layer:
    """A valid layer with random numbers from the full ranges."""
    channels = int(random.integers(1, 40))
    kernel = tuple(int(n) for n in random.integers(1, 4, 2)) if kind != ref.ADD else (1, 1)
    input_shape = (*(int(n) for n in random.integers(3, 8, 2)), channels)
    output_shape = (*(int(n) for n in random.integers(1, 5, 2)), channels)
    if kind == ref.CONVOLUTION:
        output_shape = (*output_shape[:2], int(random.integers(1, 40)))
    if kind == ref.ADD:
        input_shape = output_shape
    low, high = sorted(int(n) for n in random.integers(-128, 128, 2))
    layer = Layer(kind, flags, _int8(random, input_shape), output_shape, kernel, clamp=(low, high))
    layer.output_zero = int(random.integers(-128, 128))
    if kind != ref.ADD:
        layer.stride, layer.dilation = (1, int(random.integers(1, 3))), (int(random.integers(1, 3)), 1)
        layer.pad = (int(random.integers(0, 2)), int(random.integers(0, 2)))
    if kind in (ref.MAXIMUM_POOL, ref.AVERAGE_POOL):
        layer.pad = (min(layer.pad[0], kernel[0] - 1), min(layer.pad[1], kernel[1] - 1))
        layer.output_shape = (_covered(layer, 0), _covered(layer, 1), channels)
    return _with_operands(random, layer)


def _covered(layer: Layer, axis: int) -> int:
    """Number of output positions whose windows begin inside the input: an empty window has no average."""
    return max(1, (layer.input.shape[axis] - 1 + layer.pad[axis]) // layer.stride[axis])


def _with_operands(random: np.random.Generator, layer: Layer) -> Layer:
    if layer.kind == ref.ADD:
        layer.second = _int8(random, layer.output_shape)
        layer.addition = _addition(random)
    if layer.kind in (ref.CONVOLUTION, ref.DEPTHWISE):
        channels = layer.output_shape[2]
        depth = layer.input.shape[2] if layer.kind == ref.CONVOLUTION else 1
        layer.input_zero, layer.second_zero = (int(zero) for zero in random.integers(-128, 128, 2))
        layer.filter = _int8(random, (channels, *layer.kernel, depth)) >> (4 if layer.flags & ref.NIBBLES else 0)
        layer.bias = random.integers(-(1 << 20), 1 << 20, channels)
        layer.multiplier = random.integers(1 << 30, 1 << 31, channels)
        layer.shift = random.integers(-14, 3, channels)
    if layer.flags & ref.ACCUMULATE:
        layer.extra = random.integers(-(1 << 31), 1 << 31, layer.output_shape)
    if layer.flags & ref.RESIDUAL:
        layer.extra, layer.addition = _int8(random, layer.output_shape), _addition(random)
        layer.residual_zero = int(random.integers(-128, 128))
        layer.residual_clamp = (int(random.integers(-128, 0)), int(random.integers(0, 128)))
    return layer


def _addition(random: np.random.Generator) -> Addition:
    zero1, zero2 = (int(n) for n in random.integers(-128, 128, 2))
    by1, by2, by = (int(n) for n in random.integers(1 << 30, 1 << 31, 3))
    shift1, shift2 = (int(n) for n in random.integers(-6, 1, 2))
    return Addition((zero1, by1, shift1, zero2, by2, shift2, by, -int(random.integers(15, 21))))


def _int8(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.integers(-128, 128, shape)
