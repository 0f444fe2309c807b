"""Matrix-vector products, four output channels at a time.

Layers with a single multiplier keep the multiplier in the stack frame: the stream contains only weights and biases.
Blocks alternate between reading the inputs forwards and backwards.
"""

from __future__ import annotations

import numpy as np

from npukit.accel.cortex_m.code.assembly import PUSHED_BYTES, USUAL_WORTH, WORD_ORDER, CodeWorth
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.code.dense_code import FRAME_BYTES, STEP, DensePlan, emit
from npukit.accel.cortex_m.code.requantize import (
    FastRequantization,
    clamp_refusal,
    common_exponents,
    exponents,
    fast_requantization,
    overflow,
    prescale_refusal,
    rounded_overflow,
    rounded_requantization,
)
from npukit.accel.cortex_m.code.stream import BYTE_BITS, bytes_refusal, packed
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.value_ranges import LOWEST

_UNROLLINGS = tuple((blocks, steps) for blocks in (2, 4, 8) for steps in (2, 4, 8, 16, 20))
"""Candidate unrollings: blocks of outputs, and steps. The cheapest is chosen: with the fewest alone anomaly detection
takes 5.8 % longer (`benchmarks/core/kernel_constants.md`)."""


def dense(
    layer: OpView, source: Layout, target: Layout, density: Density, worth: CodeWorth = USUAL_WORTH
) -> Kernel | Refusal:
    """The product with weights of one density, for any tensor with contiguous elements."""
    variant = f"dense{density.value}"
    if not (source.plain and target.plain):
        return Refusal(variant, "the elements do not lie together in the order of the model")
    reason = clamp_refusal(layer.clamp)
    if reason:
        return Refusal(variant, reason)
    shared, magnitude, reason = _has_one_multiplier(layer), layer.accumulators.magnitude, ""
    if fast := _rounded(layer, density, magnitude) if shared else None:
        return _fastest(layer, (source, target), fast, density, shared, worth)
    choices = common_exponents(layer.requantization)
    if shared and density is Density.BYTES:  # leaves the first sum of a pair unshifted
        choices = [choices[-1] + BYTE_BITS - 2]
    for exponent in choices:
        fast = fast_requantization(layer.requantization, layer.output_zero, exponent)
        reason = overflow(fast, magnitude) or _density_refusal(layer, fast, density, magnitude) or ""
        if not reason:
            return _fastest(layer, (source, target), fast, density, shared, worth)
    return Refusal(variant, reason)


def _has_one_multiplier(layer: OpView) -> bool:
    r = layer.requantization
    return bool((r.multipliers == r.multipliers[0]).all() and (r.shifts == r.shifts[0]).all())


def _rounded(layer: OpView, density: Density, magnitude: np.ndarray) -> FastRequantization | None:
    """The requantisation with one instruction for ties instead of two; None without ties, or on overflow."""
    if density is Density.BYTES or layer.output_zero == LOWEST or exponents(layer.requantization).min() < 1:
        return None
    fast = rounded_requantization(layer.requantization, layer.output_zero)
    return None if rounded_overflow(fast, magnitude) or _density_refusal(layer, fast, density, magnitude) else fast


def _density_refusal(layer: OpView, fast: FastRequantization, density: Density, magnitude: np.ndarray) -> str | None:
    weights = layer.filter.weights.astype(np.int64)
    if density is Density.HALFWORDS:
        return prescale_refusal(fast, np.abs(weights).max(1) << fast.prescale)
    return bytes_refusal(weights, fast, magnitude)


def _fastest(
    layer: OpView,
    layouts: tuple[Layout, Layout],
    fast: FastRequantization,
    density: Density,
    shared: bool,
    worth: CodeWorth,
) -> Kernel:
    outputs, inputs = layer.filter.weights.shape
    left, rounded = bool(fast.prescale[0::2].min() >= BYTE_BITS), bool(fast.prescale[0] == 1)
    exponent, ties = int(fast.exponents[0]), fast.needs_ties
    plans = [
        DensePlan(inputs, outputs, density, exponent, ties, shared, rounded, left, blocks, steps)
        for blocks, steps in _UNROLLINGS
    ]
    plan = min(plans, key=lambda plan: emit(plan).cost(worth))
    return Kernel(
        symbol=layer.name,
        variant=f"dense{density.value}",
        condition=f"exponent {plan.exponent}, " + ("one multiplier" if shared else "a multiplier per channel"),
        body=emit(plan),
        constants=(Constant(f"{layer.name}_stream", _stream(layer, fast, plan)),),
        inputs=layouts[:1],
        output=layouts[1],
        scratch_bytes=2 * STEP * plan.steps,
        stack_bytes=FRAME_BYTES + PUSHED_BYTES,
        reads_beyond=3,
    )


def _stream(layer: OpView, fast: FastRequantization, plan: DensePlan) -> np.ndarray:
    weights, biases = _padded(layer, plan)
    prescale = _rows(fast.prescale, plan)
    if plan.density is Density.HALFWORDS:
        weights, biases = weights << prescale[:, None], biases << prescale
        shifts = None
    else:
        biases[0::2] = 256 * biases[0::2] + biases[1::2]
        shifts = prescale.copy()
        shifts[0::2] = (prescale[0::2] - BYTE_BITS) * (1 if plan.left_shift else -1)
    words: list[np.ndarray] = []
    if plan.shared:
        words.append(np.array([fast.multipliers[0], fast.addends[0], fast.ties[0]], np.int64))
    for index in range(plan.blocks):
        rows = slice(4 * index, 4 * index + 4)
        words += [biases[rows], _block_weights(weights[rows], plan, backwards=index % 2 == 1)]
        if not plan.shared:
            words += _block_constants(fast, plan, rows, shifts)
    return (np.concatenate(words) & 0xFFFFFFFF).astype(np.uint32)


def _padded(layer: OpView, plan: DensePlan) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases in reading order, with zero points folded in, padded with rows and columns."""
    weights = np.zeros((4 * plan.blocks, STEP * plan.steps), np.int64)
    weights[: plan.outputs, : plan.inputs] = layer.filter.weights
    biases = layer.filter.bias - layer.input_zero * layer.filter.weights.astype(np.int64).sum(1)
    ordered = weights.reshape(len(weights), -1, 4)[:, :, list(WORD_ORDER)].reshape(weights.shape)
    return ordered, _rows(biases, plan)


def _rows(values: np.ndarray, plan: DensePlan) -> np.ndarray:
    return np.append(values, np.zeros(4 * plan.blocks - plan.outputs, np.int64)).astype(np.int64)


def _block_weights(weights: np.ndarray, plan: DensePlan, *, backwards: bool) -> np.ndarray:
    """The words of a block: for each input word one word of every stream, steps in reading order."""
    if plan.density is Density.BYTES:
        weights = 256 * weights[0::2] + weights[1::2]
    steps = packed(weights).reshape(len(weights), plan.steps, STEP // 2).transpose(1, 2, 0)
    return (steps[::-1] if backwards else steps).ravel()


def _block_constants(
    fast: FastRequantization, plan: DensePlan, rows: slice, shifts: np.ndarray | None
) -> list[np.ndarray]:
    tables = [_rows(values, plan)[rows] for values in (fast.multipliers, fast.addends, fast.ties)]
    words = [] if shifts is None else [shifts[rows]]
    if not plan.ties:
        return [*words, *tables[:2]]
    return [*words, *(table[pair : pair + 2] for pair in (0, 2) for table in tables)]
