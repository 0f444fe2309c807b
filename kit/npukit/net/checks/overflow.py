"""Check for overflow of the 32-bit integers that every kernel computes with.

On overflow the reference, the core, the accelerators and TFLite all wrap. A net with a possible overflow is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.ops import Mean, Softmax
from npukit.net.requantize import (
    SATURATES,
    Multiplier,
    add_rescaling,
    effective_scales,
    exact_scales,
    matmul_rescaling,
    mean_rescaling,
    output_channel_axis,
    quantization,
    requantization,
    softmax_scaling,
    subtract_rescaling,
)

LIMIT = 1 << 31
TOLERANCE = 1e-3
"""Relative error allowed for a factor computed in single precision, where the error could change a result."""


def check_range(net: Net, op: Op) -> None:
    """Raise an error if a number can leave the range in which the op is exact."""
    if op.kind in _CHECKS:
        _CHECKS[op.kind](net, op)


def _reach(net: Net, name: str) -> int:
    """The largest magnitude of a tensor's integers minus their zero point."""
    limits, zero = np.iinfo(np.dtype(net.tensor(name).dtype)), quantization(net, name).zero_point
    return max(limits.max - zero, zero - limits.min)


def _weighted(net: Net, op: Op) -> None:
    factors, sums = requantization(net, op), _largest_sums(net, op)
    _refuse_wrapping(int(np.max(sums << np.maximum(factors.shifts, 0))))
    for used, exact in zip(effective_scales(net, op), exact_scales(net, op), strict=True):
        _refuse_imprecise(used, exact, int(sums.max()))


def _largest_sums(net: Net, op: Op) -> np.ndarray:
    """The largest magnitude of each output channel's sum."""
    weights, bias, reach = net.constants[op.inputs[1]], net.constant(op, 2), _reach(net, op.inputs[0])
    axis = output_channel_axis(op)
    others = tuple(each for each in range(weights.ndim) if each != axis)
    magnitudes = np.abs(weights.astype(np.int16)).sum(axis=others, dtype=np.int64) * reach
    return magnitudes if bias is None else magnitudes + np.abs(bias.astype(np.int64))


def _matmul(net: Net, op: Op) -> None:
    factor = matmul_rescaling(net, op)
    first, second = op.inputs
    largest = _reach(net, first) * _reach(net, second) * net.tensor(first).shape[-1]
    _refuse_wrapping(_shifted(largest, factor))
    exact = quantization(net, first).scale * quantization(net, second).scale / quantization(net, op.output).scale
    _refuse_imprecise(factor.multiplier * 2.0 ** (factor.shift - 31), exact, largest)


def _mean(net: Net, op: Op) -> None:
    assert isinstance(op.attributes, Mean)
    shape = net.tensor(op.inputs[0]).shape
    count = int(np.prod([shape[axis] for axis in op.attributes.axes], dtype=np.int64))
    _refuse_wrapping(_shifted(_reach(net, op.inputs[0]) * count, mean_rescaling(net, op, count)))


def _sum(net: Net, op: Op) -> None:
    factors = add_rescaling(net, op) if op.kind == "add" else subtract_rescaling(net, op)
    if factors.output.shift > 0:
        scales = [quantization(net, name).scale for name in (*op.inputs, op.output)]
        told = ", ".join(f"{scale:g}" for scale in scales)
        raise NpukitError(f"its scales {told} are too far apart to add", tries=_WAYS)


def _softmax(net: Net, op: Op) -> None:
    assert isinstance(op.attributes, Softmax)
    scale, beta = quantization(net, op.inputs[0]).scale, op.attributes.beta
    if not (np.isfinite(beta) and beta > 0):
        raise NpukitError(f"its beta is {beta}, not a number above 0")
    if softmax_scaling(scale, beta).left_shift < 0:
        raise NpukitError(f"its input's scale {scale:g} is too small for its fixed point", tries=_WAYS)


def _shifted(largest: int, factor: Multiplier) -> int:
    return largest << max(factor.shift, 0)


def _refuse_wrapping(largest: int) -> None:
    if largest >= LIMIT:
        raise NpukitError(
            f"its sums, scaled to its output, can reach {largest:,}, beyond the 32 bits they are computed in",
            tries=_WAYS,
        )


def _refuse_imprecise(used: float, exact: float, largest: int) -> None:
    """Refuse if TFLite's single-precision factor differs from the exact ratio of scales enough to change results."""
    if exact * largest >= TOLERANCE and exact < SATURATES and abs(used - exact) > TOLERANCE * exact:
        raise NpukitError("its scales are too small or too large for single precision", tries=_WAYS)


_WAYS = ("look at its scales: an output's usually spans what the op makes of its inputs", "quantise the model again")

_CHECKS: Mapping[str, Callable[[Net, Op], None]] = {
    **dict.fromkeys(("add", "subtract"), _sum),
    **dict.fromkeys(("conv2d", "dense", "depthwise_conv2d", "transpose_conv2d"), _weighted),
    "matmul": _matmul,
    "mean": _mean,
    "softmax": _softmax,
}
