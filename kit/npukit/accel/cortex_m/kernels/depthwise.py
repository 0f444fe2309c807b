"""Depthwise convolutions on channel planes. Borders are skipped instead of stored.

Planes hold values relative to the zero point: a tap outside the image is a product less. The weights of a 3x3 kernel
stay in registers for a channel's whole plane; the weights of other kernels are loaded row by row.
"""

from __future__ import annotations

import numpy as np

from npukit.accel.cortex_m.code.assembly import PUSHED_BYTES, REACH, USUAL_WORTH, CodeWorth
from npukit.accel.cortex_m.code.depthwise_code import FRAME_BYTES, DepthwisePlan, emit, scalars_of
from npukit.accel.cortex_m.code.planes import (
    RESIDENT_KERNEL,
    RESIDENT_ROWS,
    WIDEST_KERNEL,
    Line,
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
    prescale_refusal,
    smallest_exponents,
)
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import INT8, OpView

_COLUMN_ROUNDS = (1, 2, 3, 4, 6, 8, 12)
"""Candidate numbers of column groups per pass of the loop, besides all groups. The cheapest is chosen: with one alone
visual wake words takes 0.2 % longer (`benchmarks/core/kernel_constants.md`)."""


def depthwise(layer: OpView, source: Layout, target: Layout, worth: CodeWorth = USUAL_WORTH) -> Kernel | Refusal:
    """The depthwise convolution from planes to another layout. `worth`: the time that code must save."""
    variant = f"depthwise {source.order.value} to {target.order.value}"
    if reason := _refusal(layer, source, target):
        return Refusal(variant, reason)
    for exponents in (*common_exponents(layer.requantization), smallest_exponents(layer.requantization)):
        unsigned = target.order is not Order.PIXELS
        fast = fast_requantization(layer.requantization, layer.output_zero, exponents, unsigned=unsigned)
        largest = np.abs(layer.filter.weights.astype(np.int64)).max((0, 1, 2)) << fast.prescale
        reason = overflow(fast, layer.accumulators.magnitude) or prescale_refusal(fast, largest)
        if not reason:
            return _fastest(layer, source, target, fast, variant, worth)
    return Refusal(variant, str(reason))


def _refusal(layer: OpView, source: Layout, target: Layout) -> str | None:
    if source.order is Order.PIXELS:
        return "reads planes, not pixels"
    if max(layer.window.kernel) > WIDEST_KERNEL:
        return f"a row of a {layer.window.kernel[0]}x{layer.window.kernel[1]} kernel does not fit the registers"
    if source.order is Order.PLANES8 and layer.input_zero != INT8[0]:
        return f"planes8 need the zero point {INT8[0]}, it is {layer.input_zero}"
    if target.order is not Order.PIXELS and layer.output_zero != INT8[0]:
        return f"planes need the zero point {INT8[0]}, it is {layer.output_zero}"
    if source.transposed != target.transposed:
        return "input and output are transposed differently"
    if any(side >= layer.window.kernel[axis % 2] for axis, side in enumerate(layer.window.padding)):
        return f"the padding {layer.window.padding} reaches beyond the kernel"
    if (max(layer.window.kernel) + 2) * max(source.row_stride, source.column_stride) > REACH:
        return f"rows of {source.shape[1]} are too long for immediate offsets"
    return clamp_refusal(layer.clamp)


def _fastest(
    layer: OpView, source: Layout, target: Layout, fast: FastRequantization, variant: str, worth: CodeWorth
) -> Kernel:
    plan = min(_plans(layer, source, target, fast), key=lambda plan: emit(plan).cost(worth))
    weights = layer.filter.weights[0].astype(np.int64) << fast.prescale
    planes = weights.transpose(2, 1, 0) if plan.source.transposed else weights.transpose(2, 0, 1)
    biases = layer.filter.bias << fast.prescale
    registers = weight_words(plan.weights, planes, resident=plan.resident)
    scalars = (fast.multipliers, fast.addends, fast.ties, fast.exponents, biases)
    words = np.stack([*(scalars[index] for index in scalars_of(plan)), *registers], axis=1)
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition=f"exponents up to {fast.exponents.max()}, input zero point {layer.input_zero}",
        body=emit(plan),
        constants=(Constant(f"{layer.name}_channels", (words & 0xFFFFFFFF).astype(np.uint32).ravel()),),
        inputs=(source,),
        output=target,
        stack_bytes=FRAME_BYTES + PUSHED_BYTES,
        reads_beyond=3,
    )


def _plans(layer: OpView, source: Layout, target: Layout, fast: FastRequantization) -> list[DepthwisePlan]:
    """One plan per number of unrolled column groups."""
    down, across = _lines(layer, source)
    kernel, halfwords = (down.kernel, across.kernel), source.order is Order.PLANES16
    resident = kernel == RESIDENT_KERNEL
    weights = resident_weights(halfwords=halfwords) if resident else streamed_weights(kernel, halfwords=halfwords)
    height = RESIDENT_ROWS if resident else 1
    columns = tuple(groups(across, height, halfwords=halfwords))
    common = layer.input_shape[2], down.stride, source, target, fast.exponent, fast.needs_ties, resident, weights
    rows = tuple(tiles(down, height))
    return [DepthwisePlan(*common, rows, columns, unrolled) for unrolled in (*_COLUMN_ROUNDS, len(columns))]


def _lines(layer: OpView, source: Layout) -> tuple[Line, Line]:
    """The lines down and across the planes as stored, transposed or not."""
    sizes = (layer.input_shape, layer.output_shape, layer.window.kernel, layer.window.strides, layer.window.padding)
    down, across = (Line(*(size[axis] for size in sizes)) for axis in (0, 1))
    return (across, down) if source.transposed else (down, across)
