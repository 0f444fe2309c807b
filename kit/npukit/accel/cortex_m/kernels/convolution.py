"""Convolutions as matrix products of 2x2 blocks: 1x1, any window by im2row, any stride, any channel counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from npukit.accel.cortex_m.code.assembly import PUSHED_BYTES, REACH, USUAL_WORTH, CodeWorth
from npukit.accel.cortex_m.code.block import BlockShape, Density, Packing, Stores, Unrolling
from npukit.accel.cortex_m.code.convolution_code import FRAME_BYTES, ConvolutionPlan, PairWalk, emit
from npukit.accel.cortex_m.code.gather import ByteRun, Gather
from npukit.accel.cortex_m.code.requantize import (
    FastRequantization,
    clamp_refusal,
    common_exponents,
    fast_requantization,
    overflow,
    prescale_refusal,
    smallest_exponent,
    smallest_exponents,
)
from npukit.accel.cortex_m.code.stream import BYTE_BITS, Blocks, block_stream, bytes_refusal
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import INT8, OpView

_PAIR_WORDS_EXPONENT = 16
_UNROLLINGS = tuple(Unrolling(blocks, steps) for blocks in (2, 4, 8) for steps in (4, 8, 16, 32))
"""Candidate unrollings. The cheapest is chosen: with the smallest alone the MLPerf Tiny networks take up to 4.3 %
longer (`benchmarks/core/kernel_constants.md`)."""


def convolution(
    layer: OpView, source: Layout, target: Layout, density: Density, worth: CodeWorth = USUAL_WORTH
) -> Kernel | Refusal:
    """The convolution from one layout to another. `worth`: the time that code must save."""
    variant = f"gemm{density.value} to {target.order.value}"
    if reason := _refusal(layer, source, target):
        return Refusal(variant, reason)
    if not (walk := walk_over(layer, source, target)):
        return Refusal(variant, "a single output pixel has no pair")
    reasons: list[str] = []
    packings = (Packing.PAIR_WORDS, Packing.HALFWORDS) if target.order is Order.PLANES16 else (Packing.BYTES,)
    for packing, exponents in ((p, e) for p in packings for e in _exponent_choices(layer, density, p)):
        attempt = _attempt(layer, source, target, density, packing, exponents, walk, worth)
        if isinstance(attempt, Kernel):
            return attempt
        reasons.append(attempt)
    return Refusal(variant, "; ".join(dict.fromkeys(reasons)))


def _refusal(layer: OpView, source: Layout, target: Layout) -> str | None:
    if source.order is not Order.PIXELS:
        return f"reads pixels, not {source.order.value}"
    if target.order is not Order.PIXELS and layer.output_zero != INT8[0]:
        return f"planes need the zero point {INT8[0]}, it is {layer.output_zero}"
    return layer.border_refusal(source) or clamp_refusal(layer.clamp)


def _exponent_choices(layer: OpView, density: Density, packing: Packing) -> list[int | np.ndarray]:
    """Common exponents worth trying; and one exponent per channel, if a single final shift can be by a register."""
    if packing is Packing.PAIR_WORDS:
        return [_PAIR_WORDS_EXPONENT]
    if density is Density.HALFWORDS:
        return [*common_exponents(layer.requantization), smallest_exponents(layer.requantization)]
    smallest = smallest_exponent(layer.requantization)
    lowest = int(smallest_exponents(layer.requantization).min())
    return [*common_exponents(layer.requantization), max(lowest + BYTE_BITS - 2, smallest), smallest + BYTE_BITS - 2]


def walk_over(layer: OpView, source: Layout, target: Layout) -> PairWalk | None:
    """Pairs of pixels along the contiguous axis of planes, or else along the axis with fewer wasted pixels."""
    height, width, _ = layer.output_shape
    down = (layer.window.strides[0] * source.row_stride, target.row_stride)
    across = (layer.window.strides[1] * source.column_stride, target.column_stride)
    walks = [PairWalk(height, width, *across, *down), PairWalk(width, height, *down, *across)]
    walks = [_flattened(walk) for walk in walks if walk.pixels > 1]
    if target.order is not Order.PIXELS:
        walks = [walk for walk in walks if walk.output_step == target.element_bytes]
    return min(walks, key=lambda walk: walk.lines * walk.pairs, default=None)


def _flattened(walk: PairWalk) -> PairWalk:
    """The walk with contiguous lines merged."""
    gapless = (walk.pixels * walk.input_step, walk.pixels * walk.output_step)
    if (walk.input_line, walk.output_line) != gapless:
        return walk
    return replace(walk, lines=1, pixels=walk.lines * walk.pixels)


def runs(layer: OpView, source: Layout) -> Iterator[ByteRun]:
    """The bytes of a window, contiguous bytes merged."""
    (rows, columns), channels = layer.window.kernel, layer.input_shape[2]
    across = source.column_stride * layer.window.dilation[1]
    joined = across == channels
    for row, column in product(range(rows), range(1 if joined else columns)):
        start = row * layer.window.dilation[0] * source.row_stride + column * across
        yield ByteRun(start, channels * (columns if joined else 1), (row * columns + column) * channels)


def _attempt(
    layer: OpView,
    source: Layout,
    target: Layout,
    density: Density,
    packing: Packing,
    exponents: int | np.ndarray,
    walk: PairWalk,
    worth: CodeWorth,
) -> Kernel | str:
    unsigned = target.order is not Order.PIXELS
    fast = fast_requantization(layer.requantization, layer.output_zero, exponents, unsigned=unsigned)
    scaled = packing is Packing.PAIR_WORDS and density is Density.HALFWORDS
    multiple, line_step = 4 if density is Density.HALFWORDS else 8, walk.input_line if walk.lines > 1 else 0
    windows, origin = tuple(runs(layer, source)), layer.window_origin(source)
    gather = Gather(windows, walk.input_step, scaled, multiple, origin, line_step)
    blocks = _blocks(layer, gather, fast, density)
    if isinstance(blocks, str):
        return blocks
    if walk.output_step > REACH:
        return f"pixels of {walk.output_step} bytes are too large for immediate offsets"
    stores, channels = Stores(packing, walk.output_step, target.channel_stride, unsigned), layer.output_shape[2]
    shape = BlockShape(gather.depth, channels, density, fast.exponent, fast.needs_ties, blocks.left_shift, stores)
    plan = ConvolutionPlan(walk, gather, shape, gather.origin, target.origin)
    return _fastest(layer, source, target, plan, blocks, worth)


def _blocks(layer: OpView, gather: Gather, fast: FastRequantization, density: Density) -> Blocks | str:
    """Weights and biases in the form of the stream, or the reason why they do not fit."""
    magnitude = layer.accumulators.magnitude
    if reason := overflow(fast, magnitude):
        return reason
    flat = layer.filter.weights.astype(np.int64).reshape(layer.output_shape[2], -1)
    weights = np.where(gather.order >= 0, flat[:, np.maximum(gather.order, 0)], 0)
    biases = layer.filter.bias - layer.input_zero * flat.sum(1)
    if density is Density.HALFWORDS:
        prescale = fast.prescale - (BYTE_BITS if gather.scaled else 0)
        if prescale.min() < 0:
            return "inputs scaled by 256 already exceed the prescaling"
        scaled = weights << prescale[:, None]
        return prescale_refusal(fast, scaled) or Blocks(scaled, biases << fast.prescale, fast, None)
    if reason := bytes_refusal(weights, fast, magnitude):
        return reason
    first = fast.prescale[0::2]
    left = bool(first.min() >= BYTE_BITS)
    shifts = fast.prescale.copy()
    shifts[0::2] = first - BYTE_BITS if left else BYTE_BITS - first
    return Blocks(weights, biases, fast, shifts, left)


def _fastest(
    layer: OpView, source: Layout, target: Layout, plan: ConvolutionPlan, blocks: Blocks, worth: CodeWorth
) -> Kernel:
    """The kernel with the cheapest unrolling."""
    shape, fast = plan.shape, blocks.fast
    body = min((emit(plan, unrolling) for unrolling in _unrollings(shape)), key=lambda body: body.cost(worth))
    return Kernel(
        symbol=layer.name,
        variant=f"gemm{shape.density.value} to {target.order.value}, {shape.stores.packing.value}",
        condition=f"exponents {_span(fast.exponents)}, prescaled by 2^{_span(fast.prescale)}",
        body=body,
        constants=(Constant(f"{layer.name}_stream", block_stream(blocks, shape)),),
        inputs=(source,),
        output=target,
        scratch_bytes=4 * shape.depth,
        stack_bytes=FRAME_BYTES + PUSHED_BYTES,
        sweeps=plan.walk.lines * plan.walk.pairs,
    )


def _span(values: np.ndarray) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}..{high}"


def _unrollings(shape: BlockShape) -> Iterator[Unrolling]:
    """The candidate unrollings that differ for the shape and keep the stores within reach."""
    seen: set[tuple[int, int]] = set()
    for unrolling in _UNROLLINGS:
        blocks = min(unrolling.blocks, max(shape.channels // 4 * 2, 2))
        if shape.stores.far or 2 * blocks * shape.stores.channel_step + shape.stores.pixel_step > REACH:
            blocks = 2
        known = blocks, min(unrolling.steps, shape.steps)
        if known not in seen:
            seen.add(known)
            yield Unrolling(blocks, unrolling.steps)
