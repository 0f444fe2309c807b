"""Depthwise convolutions on channel planes, borders skipped instead of stored.

Planes hold values counted from the zero point, so that a tap outside the image is one product less. The weights of a
3x3 kernel stay in registers while a channel's plane is computed; those of others are loaded row by row.
"""

from __future__ import annotations

import numpy as np

from npukit.accel.cortex_m.code.assembly import BYTE_WORTH
from npukit.accel.cortex_m.code.depthwise_code import emit, scalars_of
from npukit.accel.cortex_m.code.depthwise_group import REACH
from npukit.accel.cortex_m.code.depthwise_plan import (
    FRAME_BYTES,
    Plan,
)
from npukit.accel.cortex_m.code.planes import (
    RESIDENT_KERNEL,
    WIDEST_KERNEL,
    groups,
    resident_weights,
    streamed_weights,
    tiles,
    weight_words,
)
from npukit.accel.cortex_m.code.requantize import (
    FastRequantization,
    clamp_refusal,
    common_exponents,
    fast_requantization,
    overflow,
    smallest_exponents,
)
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal, entry_costs, routine
from npukit.accel.cortex_m.layer import INT8, DepthwiseLayer
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.ranges import accumulators

_PUSHED_BYTES = 36
_LARGEST_WEIGHT = 32767
_COLUMN_ROUNDS = (1, 2, 3, 4, 6, 8, 12)


def depthwise(
    layer: DepthwiseLayer, source: Layout, target: Layout, byte_worth: float = BYTE_WORTH
) -> Kernel | Refusal:
    """The depthwise convolution from planes to another layout; `byte_worth` is what a byte of code must save."""
    variant = f"depthwise {source.order.value} to {target.order.value}"
    reason = _refusal(layer, source, target)
    if reason:
        return Refusal(variant, reason)
    for exponents in (*common_exponents(layer.requantization), smallest_exponents(layer.requantization)):
        fast = fast_requantization(layer.requantization, exponents, unsigned=target.order is not Order.PIXELS)
        reason = overflow(fast, accumulators(layer).magnitude) or _weights_refusal(layer, fast)
        if not reason:
            return _fastest(layer, source, target, fast, variant, byte_worth)
    return Refusal(variant, str(reason))


def _refusal(layer: DepthwiseLayer, source: Layout, target: Layout) -> str | None:
    if source.order is Order.PIXELS:
        return "reads planes, not pixels"
    if max(layer.kernel) > WIDEST_KERNEL:
        return f"a row of a {layer.kernel[0]}x{layer.kernel[1]} kernel does not fit the registers"
    if source.order is Order.PLANES8 and layer.input_zero != INT8[0]:
        return f"planes8 need the zero point {INT8[0]}, it is {layer.input_zero}"
    if target.order is not Order.PIXELS and layer.requantization.zero_point != INT8[0]:
        return f"planes need the zero point {INT8[0]}, it is {layer.requantization.zero_point}"
    if source.transposed != target.transposed:
        return "input and output are transposed differently"
    if any(side >= layer.kernel[axis % 2] for axis, side in enumerate(layer.padding)):
        return f"the padding {layer.padding} reaches beyond the kernel"
    if (max(layer.kernel) + 2) * max(source.row_stride, source.column_stride) > REACH:
        return f"rows of {source.shape[1]} are too long for immediate offsets"
    return clamp_refusal(layer.requantization)


def _weights_refusal(layer: DepthwiseLayer, fast: FastRequantization) -> str | None:
    largest = np.abs(layer.weights.astype(np.int64)).max((0, 1)) << fast.prescale
    if largest.max() > _LARGEST_WEIGHT:
        return f"right shifts that differ by {int(np.ptp(fast.prescale))} push prescaled weights out of 16 bits"
    return None


def _fastest(
    layer: DepthwiseLayer, source: Layout, target: Layout, fast: FastRequantization, variant: str, byte_worth: float
) -> Kernel:
    layer = _along_planes(layer, source)
    plans = _plans(layer, source, target, fast)
    emitted = [(plan, emit(plan)) for plan in plans]
    plan, body = min(emitted, key=lambda e: e[1].cost(byte_worth))
    instructions, cycles = entry_costs(body, constants=True)
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition=f"exponents up to {fast.exponents.max()}, input zero point {layer.input_zero}",
        routine=routine(body),
        constants=(Constant(f"{layer.name}_channels", _constants(layer, plan, fast)),),
        inputs=(source,),
        output=target,
        instructions=instructions,
        cycles=cycles,
        scratch_bytes=0,
        stack_bytes=FRAME_BYTES + _PUSHED_BYTES,
        reads_beyond=3,
    )


def _plans(layer: DepthwiseLayer, source: Layout, target: Layout, fast: FastRequantization) -> list[Plan]:
    """One plan for each number of column groups written out."""
    halfwords, resident = source.order is Order.PLANES16, layer.kernel == RESIDENT_KERNEL
    place = resident_weights if resident else lambda *, halfwords: streamed_weights(layer.kernel, halfwords=halfwords)
    across = tuple(groups(layer, halfwords=halfwords))
    return [
        Plan(
            layer.input_shape[2],
            layer.strides[0],
            source,
            target,
            fast.exponent,
            fast.needs_ties,
            resident,
            place(halfwords=halfwords),
            tuple(tiles(layer)),
            across,
            unrolled,
        )
        for unrolled in (*_COLUMN_ROUNDS, len(across))
    ]


def _along_planes(layer: DepthwiseLayer, source: Layout) -> DepthwiseLayer:
    """The layer as the planes store it: transposed if they are."""
    if not source.transposed:
        return layer
    height, width, channels = layer.input_shape
    top, left, bottom, right = layer.padding
    return DepthwiseLayer(
        layer.name,
        (width, height, channels),
        layer.weights.transpose(1, 0, 2),
        layer.bias,
        layer.input_zero,
        layer.requantization,
        (layer.strides[1], layer.strides[0]),
        (left, top, right, bottom),
        layer.input_range,
    )


def _constants(layer: DepthwiseLayer, plan: Plan, fast: FastRequantization) -> np.ndarray:
    """Per channel: the scalars of the frame, then the weights' registers."""
    weights = layer.weights.astype(np.int64) << fast.prescale
    biases = layer.bias.astype(np.int64) << fast.prescale
    registers = weight_words(plan.weights, weights.transpose(2, 0, 1), resident=plan.resident)
    scalars = (fast.multipliers, fast.addends, fast.ties, fast.exponents, biases)
    words = np.stack([*(scalars[index] for index in scalars_of(plan)), *registers], axis=1)
    return (words & 0xFFFFFFFF).astype(np.uint32).ravel()
