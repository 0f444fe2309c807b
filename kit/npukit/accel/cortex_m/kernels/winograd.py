"""3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3), exact in integers.

With G doubled, the transformed weights are integers. The outputs are then four times too large, which provides two bits
of the prescaling for the requantisation. Two tiles side by side, 2x4 outputs, are the pixel pair of a 2x2 block.

Inputs are transformed down columns once for a whole line of tiles, then across for each pair of tiles. In the middle
the four products of a row of transformed points are accumulated onto each other in the order 1, 2, 3, 0, so that the
accumulators perform the output's transformation across. After points 1 and 2 they hold the sum. Twice the first minus
the sum is the difference. The weights of point 3 are negated.
"""

from __future__ import annotations

import numpy as np

from npukit.accel.cortex_m.code.assembly import PUSHED_BYTES, REACH, USUAL_WORTH, WORD_ORDER, CodeWorth
from npukit.accel.cortex_m.code.requantize import (
    LARGEST_WEIGHT,
    FastRequantization,
    clamp_refusal,
    common_exponents,
    fast_requantization,
    overflow,
)
from npukit.accel.cortex_m.code.stream import packed
from npukit.accel.cortex_m.code.winograd_code import (
    FRAME_BYTES,
    PAIR_COLUMNS,
    POINT_ORDER,
    RESULT_BYTES,
    TILE_ROWS,
    WinogradPlan,
    emit,
    store_offsets,
)
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView

VARIANT = "winograd"
WEIGHT_TRANSFORM = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
_GAIN_BITS = 2


def winograd(layer: OpView, source: Layout, target: Layout, worth: CodeWorth = USUAL_WORTH) -> Kernel | Refusal:
    """The convolution from pixels to pixels."""
    if reason := _refusal(layer, source, target):
        return Refusal(VARIANT, reason)
    for exponent in common_exponents(layer.requantization):
        fast = fast_requantization(layer.requantization, layer.output_zero, exponent)
        g = WEIGHT_TRANSFORM
        points = np.einsum("ia,nabc,jb->nijc", g, layer.filter.weights.astype(np.int64), g)
        points[:, :, 3] *= -1
        ordered = points[:, :, POINT_ORDER]
        shift = np.maximum(fast.prescale - _GAIN_BITS, 0)
        weights = ordered << shift[:, None, None, None]
        largest = int(np.abs(weights).max())
        reason = overflow(fast, layer.accumulators.magnitude)
        if not reason and largest > LARGEST_WEIGHT:
            reason = f"a transformed weight of {largest} exceeds 16 bits"
        if not reason:
            return _generated(layer, source, target, fast, weights, worth)
    return Refusal(VARIANT, str(reason))


def _generated(
    layer: OpView, source: Layout, target: Layout, fast: FastRequantization, weights: np.ndarray, worth: CodeWorth
) -> Kernel:
    exponent, origin = int(fast.exponents[0]), layer.window_origin(source)
    streams = {looped: _stream(layer, weights, fast, looped) for looped in (False, True)}
    plans = (
        WinogradPlan(source, target, origin, exponent, fast.needs_ties, stream.nbytes, looped)
        for looped, stream in streams.items()
    )
    plan = min(plans, key=lambda plan: emit(plan).cost(worth))
    body, stream = emit(plan), streams[plan.looped]
    return Kernel(
        symbol=layer.name,
        variant=VARIANT,
        condition=f"exponent {exponent}, transformed weights within 16 bits",
        body=body,
        constants=(Constant(f"{layer.name}_stream", stream),),
        inputs=(source,),
        output=target,
        scratch_bytes=plan.scratch_bytes,
        stack_bytes=FRAME_BYTES + PUSHED_BYTES + RESULT_BYTES,
        reads_beyond=3,
        sweeps=-(-target.shape[0] // TILE_ROWS) * -(-target.shape[1] // PAIR_COLUMNS),
        may_overwrite=(0,) if target.shape[0] % TILE_ROWS == 0 and source.follows(target) else (),
    )


def _refusal(layer: OpView, source: Layout, target: Layout) -> str | None:
    height, width, channels = layer.output_shape
    if layer.window.kernel != (3, 3) or layer.window.strides != (1, 1) or layer.window.dilation != (1, 1):
        return "only 3x3 windows of stride 1 without dilation"
    if source.order is not Order.PIXELS or target.order is not Order.PIXELS:
        return "from pixels to pixels only"
    if source.transposed or target.transposed:
        return "not for transposed tensors"
    if height < TILE_ROWS or width < PAIR_COLUMNS:
        return f"an output of {height}x{width} holds no pair of tiles"
    if channels % 2:
        return f"an odd number of output channels, {channels}"
    if max(store_offsets(target)) + 1 > REACH or 3 * source.row_stride > REACH or 32 * (width + 2) > REACH:
        return f"rows of {width} pixels are too long for immediate offsets"
    return layer.border_refusal(source) or clamp_refusal(layer.clamp)


def _stream(layer: OpView, weights: np.ndarray, fast: FastRequantization, looped: bool) -> np.ndarray:
    """The stream, by channel pair: weights in reading order, biases before row 1, constants of both channels. If
    `looped`, every row has biases: row 1 the channels' biases, the other rows 0."""
    channels, depth = len(weights), weights.shape[-1]
    padded = np.zeros((*weights.shape[:3], -(-depth // 4) * 4), np.int64)
    padded[..., :depth] = weights
    ordered = padded.reshape(*weights.shape[:3], -1, 4)[..., list(WORD_ORDER)]
    words = packed(ordered).reshape(channels // 2, 2, 4, -1).transpose(0, 2, 3, 1)
    biases = layer.filter.bias - layer.input_zero * layer.filter.weights.astype(np.int64).sum((1, 2, 3))
    biases = (biases << fast.prescale).reshape(-1, 2)
    tables = (fast.ties,) if fast.needs_ties else ()
    constants = np.stack([*tables, fast.multipliers, fast.addends], 1).reshape(channels // 2, -1)
    none = biases[0] * 0 if looped else biases[0, :0]
    parts: list[np.ndarray] = []
    for rows, bias, last in zip(words, biases, constants, strict=True):
        parts += [none, rows[0].ravel(), bias, rows[1].ravel(), none, rows[2].ravel(), none, rows[3].ravel(), last]
    return (np.concatenate(parts) & 0xFFFFFFFF).astype(np.uint32)
