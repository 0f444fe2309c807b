"""Reference of the MAC array's commands in numpy, from the hardware manual (sections 3.2 to 3.4), for tests alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

CONVOLUTION, DEPTHWISE, ADD, MAXIMUM_POOL, AVERAGE_POOL = 1, 2, 3, 4, 5
PIXELS, RAW, ACCUMULATE, RESIDUAL, SECOND, NIBBLES, PRODUCT = 1, 2, 4, 8, 16, 32, 64


@dataclass
class Addition:
    """zero1, multiplier1, shift1, zero2, multiplier2, shift2, multiplier, shift."""

    constants: tuple[int, int, int, int, int, int, int, int]

    def of(self, a: np.ndarray, b: np.ndarray, *, product: bool = False) -> np.ndarray:
        zero1, multiplier1, shift1, zero2, multiplier2, shift2, multiplier, shift = self.constants
        scaled_a = requantize((a - zero1) << 20, multiplier1, shift1)
        scaled_b = requantize((b - zero2) << 20, scaled_a if product else multiplier2, shift2)
        return requantize(scaled_b if product else wrap(scaled_a + scaled_b, 32), multiplier, shift)


@dataclass
class Layer:
    """A command's numbers, with tensors for addresses: input [y, x, c], filter [channel, ky, kx, input channel]."""

    kind: int
    flags: int
    input: np.ndarray
    output_shape: tuple[int, ...]
    kernel: tuple[int, ...] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)
    input_zero: int = 0
    second_zero: int = 0
    output_zero: int = 0
    clamp: tuple[int, int] = (-128, 127)
    filter: np.ndarray = field(default_factory=lambda: np.zeros(0))
    bias: np.ndarray = field(default_factory=lambda: np.zeros(0))
    multiplier: np.ndarray = field(default_factory=lambda: np.zeros(0))
    shift: np.ndarray = field(default_factory=lambda: np.zeros(0))
    second: np.ndarray = field(default_factory=lambda: np.zeros(0))
    extra: np.ndarray = field(default_factory=lambda: np.zeros(0))
    addition: Addition | None = None
    residual_zero: int = 0
    residual_clamp: tuple[int, int] = (-128, 127)


def expected(layer: Layer) -> np.ndarray:
    """The output, [y, x, c]."""
    if layer.kind == ADD:
        assert layer.addition is not None
        total = layer.addition.of(layer.input, layer.second, product=bool(layer.flags & PRODUCT))
        return np.clip(total + layer.output_zero, *layer.clamp)
    if layer.kind in (MAXIMUM_POOL, AVERAGE_POOL):
        return np.clip(_pooled(layer), *layer.clamp)
    return _multiplied(layer)


def wrap(values: np.ndarray, bits: int) -> np.ndarray:
    half = 1 << (bits - 1)
    return (values + half) % (1 << bits) - half


def requantize(values: np.ndarray, multiplier: np.ndarray | int, shift: np.ndarray | int) -> np.ndarray:
    """TFLite's MultiplyByQuantizedMultiplier with its two roundings, in floor divisions of wide integers."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    product = wrap(values << left, 32) * np.asarray(multiplier, dtype=np.int64)
    high = np.where(product >= 0, (product + (1 << 30)) >> 31, -((-product + (1 << 30) - 1) >> 31))
    half = np.where(right > 0, 1 << np.maximum(right - 1, 0), 0)
    away = np.where((right > 0) & (high < 0), 1, 0)
    return (high + half - away) >> right


def _windows(layer: Layer) -> tuple[np.ndarray, np.ndarray]:
    """[y, x, ky, kx, c] of the inputs under the kernel, and whether each lies inside the input."""
    height, width, _ = layer.input.shape
    out_y, out_x, _ = layer.output_shape
    y = np.arange(out_y)[:, None] * layer.stride[0] + np.arange(layer.kernel[0]) * layer.dilation[0] - layer.pad[0]
    x = np.arange(out_x)[:, None] * layer.stride[1] + np.arange(layer.kernel[1]) * layer.dilation[1] - layer.pad[1]
    inside = ((y >= 0) & (y < height))[:, None, :, None] & ((x >= 0) & (x < width))[None, :, None, :]
    rows, columns = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    return layer.input[rows[:, None, :, None], columns[None, :, None, :]], inside


def _pooled(layer: Layer) -> np.ndarray:
    values, inside = _windows(layer)
    if layer.kind == MAXIMUM_POOL:
        return np.where(inside[..., None], values, -128).max(axis=(2, 3))
    total = np.where(inside[..., None], values, 0).sum(axis=(2, 3))
    count = inside.sum(axis=(2, 3))[..., None]
    return np.sign(total) * ((2 * np.abs(total) + count) // (2 * count))


def _multiplied(layer: Layer) -> np.ndarray:
    values, inside = _windows(layer)
    values = np.where(inside[..., None], values, layer.input_zero)
    if layer.kind == DEPTHWISE:
        total = np.einsum("yxklc,ckl->yxc", values, layer.filter[..., 0])
    elif layer.flags & SECOND:
        total = np.einsum("yxkli,ckli->yxc", values - layer.input_zero, layer.filter - layer.second_zero)
    else:
        total = np.einsum("yxkli,ckli->yxc", values, layer.filter)
    start = layer.extra if layer.flags & ACCUMULATE else layer.bias
    total = wrap(total + start, 29)
    if layer.flags & RAW:
        return total
    scaled = requantize(total, layer.multiplier, layer.shift)
    value = np.clip(scaled + layer.output_zero, *layer.clamp)
    if not layer.flags & RESIDUAL:
        return value
    assert layer.addition is not None
    return np.clip(layer.addition.of(value, layer.extra) + layer.residual_zero, *layer.residual_clamp)
