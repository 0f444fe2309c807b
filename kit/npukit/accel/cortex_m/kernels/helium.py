"""Helium kernels: convolutions, depthwise convolutions and dense layers on pixels, for any shifts and zero points.

The bias includes the input's zero point, so a border of zero points adds nothing. Weights that fill up a vector are
zero, so the input bytes under them do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from npukit.accel.cortex_m.code import helium_depthwise, helium_products
from npukit.accel.cortex_m.code.assembly import REACH, USUAL_WORTH, Assembly, CodeWorth
from npukit.accel.cortex_m.code.convolution_code import PairWalk
from npukit.accel.cortex_m.code.gather import ByteRun
from npukit.accel.cortex_m.code.helium import CHUNK, LANES, SAVED_BYTES
from npukit.accel.cortex_m.code.helium_depthwise import CHANNEL_ORDER, MOST_TAPS, HeliumDepthwisePlan
from npukit.accel.cortex_m.code.helium_products import ProductsPlan, unrollings
from npukit.accel.cortex_m.code.requantize import clamp_refusal
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.kernels.convolution import runs, walk_over
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops import Dense

_ONE_PIXEL = PairWalk(1, 1, 0, 0, 0, 0)
_LEAST_WEIGHT = -127


def products(layer: OpView, source: Layout, target: Layout, worth: CodeWorth = USUAL_WORTH) -> Kernel | Refusal:
    """The kernel of a convolution or a dense layer."""
    variant = "Helium products"
    reason = _layouts_refusal(layer, source, target)
    if reason:
        return Refusal(variant, reason)
    if _is_dense(layer):
        windows, walk, origin = [ByteRun(0, layer.filter.weights[0].size, 0)], _ONE_PIXEL, 0
    else:
        windows, walk = [*runs(layer, source)], walk_over(layer, source, target) or _ONE_PIXEL
        origin = layer.window_origin(source)
    chunks = tuple(run.start + at for run in windows for at in range(0, run.length, CHUNK))
    steps = [*np.abs(np.diff(chunks)).tolist(), walk.input_step, walk.output_step]
    if max(steps) > REACH:
        return Refusal(variant, f"steps of {max(steps)} bytes are too long for an immediate")
    plans = [
        ProductsPlan(walk, chunks, layer.output_shape[2], *_rounding(layer), origin, target.origin, unrolled)
        for unrolled in unrollings(chunks)
    ]
    body = min((helium_products.emit(plan) for plan in plans), key=lambda each: each.cost(worth))
    stream = _block_stream(layer, list(_chunked(layer, windows)))
    return _kernel(layer, variant, source, target, body, np.append(_limits(layer), stream))


def depthwise(layer: OpView, source: Layout, target: Layout) -> Kernel | Refusal:
    """The kernel of a depthwise convolution."""
    variant = "Helium depthwise"
    reason = _layouts_refusal(layer, source, target) or clamp_refusal(layer.clamp) or _taps_refusal(layer)
    if reason:
        return Refusal(variant, reason)
    height, width, channels = layer.output_shape
    (down, across), (wide, near) = layer.window.strides, layer.window.dilation
    steps = (across * source.column_stride, target.column_stride, down * source.row_stride, target.row_stride)
    taps = product(*map(range, layer.window.kernel))
    plan = HeliumDepthwisePlan(
        PairWalk(height, width, *steps),
        tuple(y * wide * source.row_stride + x * near * source.column_stride for y, x in taps),
        channels,
        *_rounding(layer),
        layer.window_origin(source),
        target.origin,
    )
    constants = np.append(_limits(layer)[-1:], _channel_stream(layer))
    return _kernel(layer, variant, source, target, helium_depthwise.emit(plan), constants)


def takes_pixels(layer: OpView) -> bool:
    """True for a depthwise convolution with a Helium kernel, given a border around its input."""
    return layer.helium and not (clamp_refusal(layer.clamp) or _taps_refusal(layer))


def _layouts_refusal(layer: OpView, source: Layout, target: Layout) -> str | None:
    if source.order is not Order.PIXELS or target.order is not Order.PIXELS:
        return "planes are not pixels"
    if _is_dense(layer):
        return None if source.plain and target.plain else "the elements do not lie together in the order of the model"
    return layer.border_refusal(source)


def _taps_refusal(layer: OpView) -> str | None:
    if layer.window.taps > MOST_TAPS:
        return f"a window of {layer.window.taps} taps wants more pointers than there are registers"
    if layer.filter.weights.min() < _LEAST_WEIGHT:
        return "two products with the weight -128 do not fit 16 bits"
    return None


def _is_dense(layer: OpView) -> bool:
    return isinstance(layer.attributes, Dense) and layer.rows == 1


def _rounding(layer: OpView) -> tuple[bool, bool]:
    """True if any channel is shifted to the left; True if the rounding of negative halves is visible in the output."""
    shifts = layer.requantization.shifts
    return bool((shifts > 0).any()), bool((shifts < 0).any()) and layer.clamp[0] < layer.output_zero


def _kernel(
    layer: OpView, variant: str, source: Layout, target: Layout, body: Assembly, constants: np.ndarray
) -> Kernel:
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition="any shifts",
        body=body,
        constants=(Constant(f"{layer.name}_stream", constants),),
        inputs=(source,),
        output=target,
        stack_bytes=SAVED_BYTES + (helium_depthwise if "depthwise" in variant else helium_products).FRAME_BYTES,
        reads_beyond=CHUNK - 1,
    )


def _limits(layer: OpView) -> np.ndarray:
    return np.array([*layer.clamp, layer.output_zero], np.int32)


def _chunked(layer: OpView, windows: list[ByteRun]) -> Iterator[np.ndarray]:
    """The weights of all output channels for each chunk of 16 inputs."""
    weights = layer.filter.weights.reshape(layer.output_shape[2], -1)
    for run in windows:
        for at in range(0, run.length, CHUNK):
            some = weights[:, run.position + at : run.position + min(at + CHUNK, run.length)]
            yield np.pad(some, ((0, 0), (0, CHUNK - some.shape[1])))


def _block_stream(layer: OpView, chunks: list[np.ndarray]) -> np.ndarray:
    """The constants in reading order: for each four channels biases, weights, then the factors of the sums."""
    sums = layer.filter.weights.reshape(layer.output_shape[2], -1).astype(np.int64).sum(1)
    biases, factors = _biases(layer, sums), _factors(layer)
    parts = []
    for first in range(0, layer.output_shape[2], LANES):
        few = slice(first, first + LANES)
        weights = [_filled(chunk[few], LANES).ravel().view(np.int32) for chunk in chunks]
        parts += [_filled(biases[few], LANES), *weights, *(_filled(each[few], LANES) for each in factors)]
    return np.concatenate(parts)


def _channel_stream(layer: OpView) -> np.ndarray:
    """The constants in reading order: for each 16 channels biases, weights by tap, and the factors of each vector."""
    taps = layer.filter.weights.reshape(-1, layer.output_shape[2])
    biases, factors = _biases(layer, taps.astype(np.int64).sum(0)), _factors(layer)
    order, parts = np.array(CHANNEL_ORDER), []
    for first in range(0, layer.output_shape[2], CHUNK):
        few = slice(first, first + CHUNK)
        parts += [_filled(biases[few], CHUNK)[order]]
        parts += [_filled(tap[few], CHUNK).view(np.int32) for tap in taps]
        scaled = np.stack([_filled(each[few], CHUNK)[order].reshape(-1, LANES) for each in factors], 1)
        parts += [scaled.ravel()]
    return np.concatenate(parts)


def _biases(layer: OpView, weights: np.ndarray) -> np.ndarray:
    return (layer.filter.bias.astype(np.int64) - layer.input_zero * weights).astype(np.int32)


def _factors(layer: OpView) -> list[np.ndarray]:
    shifts = np.asarray(layer.requantization.shifts, np.int32)
    left = [np.maximum(shifts, 0)] if _rounding(layer)[0] else []
    return [np.asarray(layer.requantization.multipliers, np.int64).astype(np.int32), np.minimum(shifts, 0), *left]


def _filled(values: np.ndarray, count: int) -> np.ndarray:
    """The values, filled up to `count` channels with zeros."""
    missing = count - len(values)
    return np.ascontiguousarray(np.pad(values, ((0, missing), *((0, 0) for _ in values.shape[1:]))))
